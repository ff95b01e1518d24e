/** Phases and routes of a recorded run, for its repetition: what holds in each phase, who decided, and where it talked. */
import type { EventData } from "../../actors/TraceEvent.ts"
import * as Registry from "../../tools/Registry.ts"
import type { Routed } from "../Beginning.ts"
import { fromRecord, type PhaseOverrides, type RecordedPhase } from "../Phases.ts"
import type { Control, RunOptions } from "../Run.ts"
import type { Session } from "../RunContext.ts"
import { Transcript } from "../Transcript.ts"
import type { TraceRecord } from "./TraceReader.ts"

/** Options that say of phases what the record says. */
export const phaseOptions = ({ data }: TraceRecord): Pick<RunOptions, "clarify" | "phase" | "phases"> => {
  const { clarify, phase } = (data["profile"] ?? {}) as NonNullable<EventData<"provenance">["profile"]>
  const recorded = (data["phases"] ?? {}) as Readonly<Record<string, RecordedPhase>>
  const phases = Object.fromEntries(Object.entries(recorded).map(([name, one]) => [name, fromRecord(one)]))
  return {
    phases: phases as PhaseOverrides,
    ...(phase === undefined ? {} : { phase }),
    // Records from before there were questions of this kind have none.
    clarify: clarify ?? false
  }
}

const textIn = (record: TraceRecord | undefined): string => String(record?.data["content"] ?? "")

/** What the user said to a question: a message of its own. */
export const replyIn = (records: ReadonlyArray<TraceRecord>): string | undefined => {
  const said = records.find(({ data, event_type: type }) => type === "message_committed" && data["role"] === "user")
  return said === undefined ? undefined : textIn(said)
}

/** How the run was routed, and the session it talked in, if it did. */
export const routeOf = (
  records: ReadonlyArray<TraceRecord>,
  task: Session,
  context: Session["context"]
): Pick<Control, "chat" | "routed"> => {
  const found = records.find(({ event_type: type }) => type === "routed")
  if (found === undefined) return {}
  const { by, duration_ms: millis, output_tokens: tokens, reason, route, text } = found.data as EventData<"routed">
  const routed: Routed = {
    route,
    by: by === "chat" ? "model" : by,
    reason,
    ...(text === undefined ? {} : { text: String(text) }),
    ...(tokens === undefined ? {} : { tokens }),
    ...(millis === undefined ? {} : { millis })
  }
  if (route !== "chat") return { routed }
  const system = textIn(
    records.find(({ data, event_type: type }) => type === "message_committed" && data["role"] === "system")
  )
  const { model, codec, codecReason } = task
  const chat: Session = {
    model,
    codec,
    codecReason,
    context,
    registry: Registry.none,
    system,
    transcript: new Transcript(),
    frameSizes: new Map(),
    opened: false,
    turnLeft: false,
    owed: undefined,
    busy: false
  }
  return { routed, chat }
}
