/**
 * The call a run waits with, from its record: what was asked, with the arguments it was asked about, and what would change now.
 * Reads and looks; decides and performs nothing.
 */
import { hash } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { look } from "../effects/legality/ContractTerms.ts"
import type { ApprovalRequest } from "../effects/Policy.ts"
import * as RunDirectory from "../effects/RunDirectory.ts"
import type { Settings } from "../effects/SettingFields.ts"
import { redactedReason } from "../effects/trace/Concealed.ts"
import type { TraceRecord } from "../effects/trace/TraceReader.ts"
import type { Evidence, RiskLevel } from "../tools/Contract.ts"
import { canonical, isObject, type Json, type JsonObject } from "../tools/JsonText.ts"
import type { Registry } from "../tools/Registry.ts"
import { type UsageError, usage } from "./Ending.ts"
import type { Found } from "./Resuming.ts"

/** Why a run does not wait, by the last thing in its record. */
const ends: Readonly<Record<string, string>> = {
  run_completed: "it completed",
  run_cancelled: "it was cancelled; writ run --resume continues it",
  run_needs_input: "it asks a question; answer with writ run --resume RUN --answer TEXT",
  run_terminated: "it was stopped",
  run_failed: "it failed"
}

const notOver = "its newest part has no end: it is running, or it crashed, and then writ run --resume continues it"

/** The newest part, and the call it waits with. A part that died before its first line has changed nothing. */
const waitingIn = ({ traces }: Found) => {
  const records = traces.findLast((part) => part.length > 0) ?? []
  const last = records.at(-1)
  return last?.event_type === "run_awaiting_approval"
    ? { records, call: String(last.data["call"]) }
    : { why: last === undefined ? notOver : (ends[last.event_type] ?? notOver) }
}

const newestOf = (records: ReadonlyArray<TraceRecord>, type: string, call: string) =>
  records.findLast(({ data, event_type }) => event_type === type && data["call"] === call)?.data

const numberOf = (value: unknown): number => (typeof value === "number" ? value : value === null ? Infinity : 0)

interface Asked {
  readonly tool: string
  readonly risk: RiskLevel
  readonly raw: JsonObject
  readonly request: Omit<ApprovalRequest, "preview">
}

/** What was asked, as it is on record; the digest has to be that of the arguments beside it. */
const askedIn = (records: ReadonlyArray<TraceRecord>, call: string, runId: string): Asked | undefined => {
  const asked = newestOf(records, "approval_requested", call)
  const validated = newestOf(records, "tool_call_validated", call)
  const raw = validated?.["arguments"] as Json | undefined
  if (asked === undefined || validated === undefined || raw === undefined || !isObject(raw)) return undefined
  const [tool, risk] = [String(validated["tool"]), validated["risk"] as RiskLevel]
  const digest = hash("sha256", canonical([tool, raw]))
  if (digest !== asked["digest"]) return undefined
  return {
    tool,
    risk,
    raw,
    request: {
      runId,
      callId: call,
      tool,
      risk,
      arguments: (validated["effective"] as JsonObject | undefined) ?? raw,
      digest,
      cost: numberOf(asked["cost"]),
      hazard: numberOf(asked["hazard"]),
      reversible: asked["reversible"] === true,
      evidence: (asked["evidence"] as Evidence | undefined) ?? { source: "self", describes: "its own answer" }
    }
  }
}

/** What would change, looked at now. Tools that are not there, or have changed, cannot say. */
const previewNow = Effect.fnUntraced(function* ({ raw, tool: name }: Asked, registry: Registry, settings: Settings) {
  const tool = registry.get(name)
  const preview = tool?.terms.preview
  const checked = tool?.check(raw)
  if (preview === undefined || checked === undefined || Result.isFailure(checked)) return undefined
  const tools = { workspace: settings.workspace, fixtures: settings.fixture }
  const shown = yield* look("preview", () => preview(checked.success), tools)
  if (Result.isSuccess(shown)) return shown.success
  return `no preview: ${"fault" in shown.failure ? shown.failure.fault : shown.failure.message}`
})

export interface Waits {
  readonly call: string
  /** The newest part of the run. */
  readonly records: ReadonlyArray<TraceRecord>
  readonly runId: string
  /** The run's directory, as it is shown. */
  readonly name: string
}

/**
 * The call that the run waits with.
 * @param call the one that somebody names, if they do; it has to be this one
 */
export const waits = Effect.fnUntraced(function* (
  found: Found,
  call: string | undefined
): Effect.fn.Return<Waits, UsageError> {
  const name = RunDirectory.shown(found.directory)
  const at = waitingIn(found)
  if ("why" in at) return yield* usage(`the run in ${name} does not wait for an approval: ${at.why}`)
  if (call !== undefined && call !== at.call) {
    return yield* usage(`the run in ${name} waits with ${at.call}, not with ${call}`)
  }
  const first = found.traces[0]?.[0]
  if (first?.data["content"] !== true) {
    return yield* usage(
      `the run in ${name} waits with ${at.call}, and was recorded without content: it cannot be shown and cannot go on. Start the task again with --trace-content`
    )
  }
  const redacted = redactedReason(found.traces.flat())
  if (redacted !== undefined) {
    return yield* usage(`the run in ${name} waits with ${at.call}, and can neither be shown nor go on: ${redacted}`)
  }
  return { ...at, runId: first.run_id, name }
})

/** What somebody decides about. */
export const waitingFor = Effect.fnUntraced(function* (
  { call, name, records, runId }: Waits,
  registry: Registry,
  settings: Settings
): Effect.fn.Return<ApprovalRequest, UsageError> {
  const asked = askedIn(records, call, runId)
  if (asked === undefined) {
    return yield* usage(`the record in ${name} does not say, or not truthfully, what ${call} was asked about`)
  }
  const preview = yield* previewNow(asked, registry, settings)
  return preview === undefined ? asked.request : { ...asked.request, preview }
})
