/** Pool, artifact store, ledger and approver that answer what is on the record. Nothing is executed, written or asked. */
import * as Effect from "effect/Effect"
import { ArtifactError, type ArtifactRef, ArtifactStore } from "../../actors/ArtifactStore.ts"
import { type Begun, EffectLedger } from "../../actors/EffectLedger.ts"
import type { Intent, LedgerEntry, SettledOutcome } from "../../actors/EffectLedgerEntry.ts"
import { LedgerError } from "../../actors/EffectLedgerError.ts"
import { ToolPool } from "../../actors/ToolPool.ts"
import type { Answer, ProducedArtifact, ToolOutcome } from "../../tools/ToolCall.ts"
import type { Approver, Decision } from "../Policy.ts"
import { ReplayedDefect, type Tape } from "./ReplayTape.ts"
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
const loopsOwn = {
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
        millis: 0
      }

const reasonOf = ({ data }: TraceRecord): string =>
  data["ok"] === true ? "" : (errorsOf(data["payload"])[0]?.reason ?? "")

/** Answers each call with its recorded outcome, in the recorded order. */
export const pool = (tape: Tape, published: Published): ToolPool["Service"] => {
  const artifactsOf = (call: string, end: number) => {
    let first = end
    while (
      tape.records[first - 1]?.event_type === "artifact_written" &&
      tape.records[first - 1]!.data["call"] === call
    ) {
      first--
    }
    const artifacts = tape.records.slice(first, end).map((record) => {
      const ref = refOf(record)
      const artifact: ProducedArtifact = { name: ref.name, mediaType: ref.mediaType, bytes: empty }
      published.set(artifact, ref)
      return artifact
    })
    return { first, artifacts }
  }
  return ToolPool.of({
    run: (call, late) =>
      Effect.suspend(() => {
        if (late !== undefined) tape.late.set(call.callId, late)
        const found = tape.find("tool_execution_finished", call.callId)
        if (found === undefined && tape.terminal !== undefined) {
          // An engine cannot fail here: what is left is a stop.
          return Effect.orDie(tape.interruption("tool_execution_finished"))
        }
        const { artifacts, first } = artifactsOf(call.callId, found?.at ?? tape.records.length)
        if (found === undefined) {
          // The record breaks off while this call was running, or was being put down.
          const reached = tape.reach(first, "tool_execution_finished")
          return Effect.as(reached, { _tag: "Succeeded", result: null, artifacts, millis: 0 } as const)
        }
        const reason = reasonOf(found.record)
        const outcome =
          reason === loopsOwn.stopped
            ? tape.enactStop({ _tag: "Cancelled", at: "tool" })
            : reason === loopsOwn.failed
              ? Effect.die(new ReplayedDefect(String(tape.terminal?.data["error"])))
              : reason === loopsOwn.unsettled
                ? Effect.succeed<ToolOutcome>({ _tag: "Succeeded", result: null, artifacts, millis: 0 })
                : Effect.succeed(outcomeOf(found.record, artifacts))
        return Effect.andThen(tape.reach(first, "tool_execution_finished"), outcome)
      })
  })
}

/** Gives recorded artifacts the references they had; what the loop itself puts down is kept by `memory`, bytes and all. */
export const artifacts = (
  tape: Tape,
  published: Published,
  memory: ArtifactStore["Service"]
): ArtifactStore["Service"] =>
  ArtifactStore.of({
    get: memory.get,
    put: (runId, artifact) =>
      Effect.suspend(() => {
        const known = published.get(artifact)
        if (known !== undefined) return Effect.succeed(known)
        return tape.next()?.record.event_type === "artifact_written"
          ? memory.put(runId, artifact)
          : Effect.fail(new ArtifactError({ message: "the artifact could not be kept when the run was recorded" }))
      })
  })

const answerOf = (tape: Tape, call: string): string => {
  const found = tape.find("tool_result_committed", call) ?? tape.find("tool_result_uncommitted", call)
  return String(found?.record.data["answer"] ?? "{}")
}

const entryOf = (intent: Intent): LedgerEntry => ({ ...intent, attempts: [] }) as unknown as LedgerEntry

const failsLedger = (tape: Tape): boolean => tape.terminal?.data["class"] === "ledger"

const ledgerError = (tape: Tape, operation: "begin" | "settle"): LedgerError =>
  new LedgerError({ operation, reason: "unavailable", message: String(tape.terminal?.data["error"]) })

const begun = (tape: Tape, intent: Intent): Effect.Effect<Begun, LedgerError> =>
  Effect.suspend((): Effect.Effect<Begun, LedgerError> => {
    const { callId } = intent
    const answer = answerOf(tape, callId)
    const entry = entryOf(intent)
    if (tape.find("effect_intent", callId) !== undefined) return Effect.succeed({ _tag: "New" })
    if (answer.includes('"idempotency_conflict"')) return Effect.succeed({ _tag: "Conflict", entry })
    if (answer.includes('"outcome_unknown"')) return Effect.succeed({ _tag: "Unknown", entry })
    const settled = tape.find("effect_settled", callId)?.record.data
    if (settled?.["replayed"] === true) {
      const { ok } = JSON.parse(answer) as Answer
      const state = settled["outcome"] as "succeeded" | "failed"
      const outcome: SettledOutcome = { ok, answer, effect: state === "succeeded" ? "present" : "none", state }
      return Effect.succeed({ _tag: "Settled", outcome })
    }
    return failsLedger(tape) ? Effect.fail(ledgerError(tape, "begin")) : Effect.succeed({ _tag: "New" })
  })

/** Lets a call act if it acted, and knows what it was known to have come to. */
export const ledger = (tape: Tape): EffectLedger["Service"] =>
  EffectLedger.of({
    begin: (intent) => begun(tape, intent),
    retake: (intent) => begun(tape, intent),
    settle: () =>
      Effect.suspend(() => {
        const finished = tape.records.find(
          ({ event_type: type }, at) => at >= tape.compared && type === "tool_execution_finished"
        )
        return failsLedger(tape) && finished !== undefined && reasonOf(finished) === loopsOwn.unsettled
          ? Effect.fail(ledgerError(tape, "settle"))
          : Effect.void
      }),
    late: () => Effect.void,
    resolve: () => Effect.void,
    get: () => Effect.succeed(undefined),
    list: () => Effect.succeed([])
  })

/** Decides as was decided. */
export const approver = (tape: Tape, name: string): Approver => ({
  name,
  decide: ({ callId }) =>
    Effect.suspend(() => {
      const next = tape.next()?.record
      return next?.event_type === "approval_decided" && next.data["call"] === callId
        ? Effect.succeed(next.data["decision"] as Decision)
        : Effect.orDie(tape.interruption("approval_decided"))
    })
})
