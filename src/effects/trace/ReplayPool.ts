/** A tool pool that answers what is on the record, try by try. Nothing is executed. */
import * as Effect from "effect/Effect"
import type { ArtifactRef } from "../../actors/ArtifactStore.ts"
import { type AdmittedCall, ToolPool } from "../../actors/ToolPool.ts"
import type { Json } from "../../tools/JsonText.ts"
import type { Answer, ProducedArtifact, ToolOutcome } from "../../tools/ToolCall.ts"
import { ReplayedDefect, type Tape } from "./ReplayTape.ts"
import { hintOf } from "./ReplayTerms.ts"
import type { TraceRecord } from "./TraceReader.ts"

/** Artifacts of recorded calls stand for what they were published as: their bytes are not in a trace. */
export type Published = WeakMap<ProducedArtifact, ArtifactRef>

const empty = new Uint8Array()

const refOf = ({ data }: TraceRecord): ArtifactRef => ({
  artifactId: String(data["artifact_id"]),
  name: String(data["name"]),
  sha256: String(data["sha256"]),
  bytes: Number(data["size_bytes"]),
  mediaType: String(data["media_type"]),
  path: undefined
})

/** What the loop itself puts down as the outcome of a call that it stopped, or that failed around the tool. */
export const loopsOwn = {
  stopped: "the run was stopped while this call was running",
  failed: "the runtime failed while this call was running",
  unsettled: "what this call came to could not be recorded"
}

const errorsOf = (payload: unknown): Extract<Answer, { readonly ok: false }>["errors"] => {
  try {
    return (JSON.parse(String(payload)) as Extract<Answer, { readonly ok: false }>).errors
  } catch {
    return [{ path: "", reason: String(payload) }]
  }
}

const outcomeOf = ({ data }: TraceRecord, artifacts: ReadonlyArray<ProducedArtifact>): ToolOutcome =>
  data["ok"] === true
    ? { _tag: "Succeeded", result: data["payload"] as never, artifacts, millis: 0 }
    : {
        _tag: "Failed",
        kind: data["failure_kind"] as never,
        errors: errorsOf(data["payload"]),
        effect: data["effect"] as never,
        millis: 0,
        ...hintOf(data["payload"]),
        // What a tool answered instead of its result was kept.
        ...(data["failure_kind"] === "bad_result" && artifacts[0] !== undefined ? { raw: artifacts[0] } : {})
      }

/** What the tool said of itself, where the contract decided otherwise: the postcondition says so again. */
const ownWord = (record: TraceRecord, tape: Tape, artifacts: ReadonlyArray<ProducedArtifact>): ToolOutcome => {
  const { call, failure_kind: kind, stage } = record.data
  const settled = tape.coming(({ data, event_type: type }) => type === "effect_settled" && data["call"] === call)
  const { source } = (settled?.data["evidence"] ?? {}) as { readonly source?: string }
  const judged = kind === "postcondition_failed" || (kind === "contract_fault" && stage === "postcondition")
  return judged || (kind === "outcome_unknown" && source === "person")
    ? { _tag: "Succeeded", result: null, artifacts, millis: 0 }
    : outcomeOf(record, artifacts)
}

/** Events inside an execution that say how one try of it ended. */
const ending = new Set([
  "retry_scheduled",
  "effect_probed",
  "effect_accepted",
  "precondition_checked",
  "tool_execution_finished"
])

/** A try whose answer was lost: something follows it. */
const lost = (finished: TraceRecord | undefined, risk: string): ToolOutcome => {
  const { class: kind, effect, failure_kind } = finished?.data ?? {}
  const last = finished?.data["ok"] === false && (kind === "timeout" || effect === "none")
  return {
    _tag: "Failed",
    kind: last ? (failure_kind as never) : "unavailable",
    errors: last ? errorsOf(finished.data["payload"]) : [],
    effect: risk === "read" ? "none" : "unknown",
    millis: 0
  }
}

export const reasonOf = ({ data }: TraceRecord): string =>
  data["ok"] === true ? "" : (errorsOf(data["payload"])[0]?.reason ?? "")

/** Answers each try of a call with what came of it, in the recorded order. */
class Attempts {
  readonly #tape: Tape
  readonly #published: Published

  constructor(tape: Tape, published: Published) {
    this.#tape = tape
    this.#published = published
  }

  readonly run = (call: AdmittedCall): Effect.Effect<ToolOutcome> => {
    const tape = this.#tape
    const found = tape.find("tool_execution_finished", call.callId)
    const inside = tape.find("child_run_started", call.callId)
    const next = tape.coming(({ data, event_type: type }) => ending.has(type) && data["call"] === call.callId)
    // One of a later try is that one's.
    if (inside !== undefined && inside.at < tape.placeOf(next)) return this.#inside(inside, call)
    const tried = next === undefined || next === found?.record ? undefined : this.#try(next, found?.record, call)
    if (tried !== undefined) return Effect.andThen(tape.reach(tape.records.indexOf(next!), "the end of a try"), tried)
    return this.#last(call.callId, found)
  }

  /** A call that was a run of its own said so; that run has its own record. */
  #inside({ at, record }: { readonly at: number; readonly record: TraceRecord }, call: AdmittedCall) {
    const { data, step } = record
    const told = Effect.sync(() =>
      this.#tape.take([{ type: "child_run_started", step, phase: "execute", data: data as never }])
    )
    return this.#tape
      .reach(at, "child_run_started")
      .pipe(Effect.andThen(told), Effect.andThen(Effect.suspend(() => this.run(call))))
  }

  /** A try that was not the last thing to happen to its call. */
  #try(
    { data, event_type: type }: TraceRecord,
    finished: TraceRecord | undefined,
    { ready, tool }: AdmittedCall
  ): Effect.Effect<ToolOutcome> | undefined {
    const { artifacts } = this.#artifacts(String(data["call"]), this.#tape.placeOf(finished))
    if (type === "precondition_checked") {
      if (data["after"] !== "queue" || ready === undefined) return undefined
      return Effect.map(
        ready,
        (unready) =>
          unready ??
          (finished === undefined ? lost(finished, tool.contract.risk) : ownWord(finished, this.#tape, artifacts))
      )
    }
    if (type !== "effect_accepted") return Effect.succeed(lost(finished, tool.contract.risk))
    const result = finished?.data["ok"] === true ? (finished.data["payload"] as Json) : null
    return Effect.succeed({ _tag: "Succeeded", result, artifacts, millis: 0 })
  }

  #last(callId: string, found: { readonly at: number; readonly record: TraceRecord } | undefined) {
    const tape = this.#tape
    if (found === undefined && tape.terminal !== undefined) {
      // An engine cannot fail here: what is left is a stop.
      return Effect.orDie(tape.interruption("tool_execution_finished"))
    }
    const { artifacts, first } = this.#artifacts(callId, found?.at ?? tape.records.length)
    const reached = tape.reach(first, "tool_execution_finished")
    // The record breaks off while this call was running, or was being put down.
    if (found === undefined)
      return Effect.as(reached, { _tag: "Succeeded", result: null, artifacts, millis: 0 } as const)
    const reason = reasonOf(found.record)
    const outcome =
      reason === loopsOwn.stopped
        ? tape.enactStop({ _tag: "Cancelled", at: "tool" })
        : reason === loopsOwn.failed
          ? Effect.die(new ReplayedDefect(String(tape.terminal?.data["error"])))
          : reason === loopsOwn.unsettled
            ? Effect.succeed<ToolOutcome>({ _tag: "Succeeded", result: null, artifacts, millis: 0 })
            : Effect.succeed(ownWord(found.record, tape, artifacts))
    return Effect.andThen(reached, outcome)
  }

  /** What the call published directly before its end, and where that begins. */
  #artifacts(call: string, end: number) {
    const { records } = this.#tape
    let first = end
    while (records[first - 1]?.event_type === "artifact_written" && records[first - 1]!.data["call"] === call) first--
    const artifacts = records.slice(first, end).map((record) => {
      const ref = refOf(record)
      const artifact: ProducedArtifact = { name: ref.name, mediaType: ref.mediaType, bytes: empty }
      this.#published.set(artifact, ref)
      return artifact
    })
    return { first, artifacts }
  }
}

/** A pool that runs nothing. */
export const pool = (tape: Tape, published: Published): ToolPool["Service"] => {
  const attempts = new Attempts(tape, published)
  return ToolPool.of({
    run: (call, late) =>
      Effect.suspend(() => {
        if (late !== undefined) tape.late.set(call.callId, late)
        return attempts.run(call)
      })
  })
}
