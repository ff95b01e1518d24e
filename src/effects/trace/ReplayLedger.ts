/** A ledger that knows of each key what the record shows it to have known. Keeps nothing. */
import * as Effect from "effect/Effect"
import { type Begun, EffectLedger, notTransactional } from "../../actors/EffectLedger.ts"
import type { Intent, LedgerEntry, SettledOutcome } from "../../actors/EffectLedgerEntry.ts"
import { LedgerError } from "../../actors/EffectLedgerError.ts"
import { argumentsDigest } from "../../actors/EffectLedgerKey.ts"
import { canonical, type Json } from "../../tools/JsonText.ts"
import type { Answer } from "../../tools/ToolCall.ts"
import { maxAttempts } from "../Backoff.ts"
import { loopsOwn, reasonOf } from "./ReplayPool.ts"
import type { Tape } from "./ReplayTape.ts"
import type { TraceRecord } from "./TraceReader.ts"

type Data = TraceRecord["data"]

const answerOf = (tape: Tape, call: string): string => {
  const found = tape.find("tool_result_committed", call) ?? tape.find("tool_result_uncommitted", call)
  return String(found?.record.data["answer"] ?? "{}")
}

/** An entry with as many tries as are known to have been made. What each came to is not asked for. */
const entryOf = (intent: Partial<Intent>, tries: number, more: Partial<LedgerEntry> = {}): LedgerEntry =>
  ({ ...intent, attempts: Array.from({ length: tries }, () => ({ owner: "", at: 0 })), ...more }) as LedgerEntry

const failsLedger = (tape: Tape): boolean => tape.terminal?.data["class"] === "ledger"

const ledgerError = (tape: Tape, operation: "begin" | "settle"): LedgerError =>
  new LedgerError({ operation, reason: "unavailable", message: String(tape.terminal?.data["error"]) })

/** The next event that says what the ledger let this call do. */
const following = new Set([
  "effect_intent",
  "effect_settled",
  "effect_probed",
  "retry_scheduled",
  "precondition_checked"
])

const nextOf = (tape: Tape, call: string): TraceRecord | undefined =>
  tape.coming(({ data, event_type: type }) => following.has(type) && data["call"] === call)

const isInquiry = (tape: Tape, call: string): boolean =>
  tape.records.some(
    ({ data, event_type: type }) =>
      type === "legality_checked" && data["call"] === call && data["cause"] === "superseded_by_ledger"
  )

/** What was known from before, as the model was told it. */
const settledOf = (tape: Tape, call: string, said: unknown): SettledOutcome => {
  const answer = answerOf(tape, call)
  const { ok } = JSON.parse(answer) as Answer
  const state = said as "succeeded" | "failed"
  return { ok, answer, effect: state === "succeeded" ? "present" : "none", state }
}

/** It failed before and left nothing: the name is free again. */
const leftNothing: SettledOutcome = { ok: false, answer: "", effect: "none", state: "failed" }

const begun = (tape: Tape, intent: Intent): Effect.Effect<Begun, LedgerError> =>
  Effect.suspend((): Effect.Effect<Begun, LedgerError> => {
    const { callId } = intent
    const { data, event_type: type } = nextOf(tape, callId) ?? { data: {} as Data, event_type: "" }
    const tries = Number(data["attempt"] ?? 1)
    if (type === "effect_intent") {
      if (tries === 1) return Effect.succeed({ _tag: "New" })
      return Effect.succeed(
        isInquiry(tape, callId)
          ? { _tag: "Unknown", entry: entryOf(intent, tries - 1) }
          : { _tag: "Settled", outcome: leftNothing }
      )
    }
    if (type === "effect_probed" || type === "retry_scheduled" || type === "precondition_checked") {
      const again = tape.find("effect_intent", callId)?.record.data["attempt"]
      const made = type === "effect_probed" && typeof again === "number" ? again - 1 : tries
      return Effect.succeed({ _tag: "Unknown", entry: entryOf(intent, made) })
    }
    if (answerOf(tape, callId).includes('"idempotency_conflict"')) {
      return Effect.succeed({ _tag: "Conflict", entry: entryOf(intent, 1) })
    }
    if (data["replayed"] === true) {
      return Effect.succeed(
        data["outcome"] === "unknown"
          ? { _tag: "Unknown", entry: entryOf(intent, maxAttempts) }
          : { _tag: "Settled", outcome: settledOf(tape, callId, data["outcome"]) }
      )
    }
    return failsLedger(tape) ? Effect.fail(ledgerError(tape, "begin")) : Effect.succeed({ _tag: "New" })
  })

/** The right to try again, or what the key came to in the meantime. */
const retaken = (tape: Tape, intent: Intent): Effect.Effect<Begun, LedgerError> =>
  Effect.suspend((): Effect.Effect<Begun, LedgerError> => {
    const { callId } = intent
    const next = nextOf(tape, callId)
    if (next?.event_type === "effect_intent") return Effect.succeed({ _tag: "New" })
    const finished = tape.find("tool_execution_finished", callId)?.record
    if (finished?.data["ok"] === true) {
      return Effect.succeed({ _tag: "Settled", outcome: settledOf(tape, callId, "succeeded") })
    }
    if (next?.data["replayed"] === true && next.data["outcome"] !== "unknown") {
      return Effect.succeed({ _tag: "Settled", outcome: settledOf(tape, callId, next.data["outcome"]) })
    }
    return Effect.succeed({ _tag: "Unknown", entry: entryOf(intent, 1) })
  })

/** Asked about before a precondition, about a key that is used once more, or about all tries of what is left to a person. */
const known = (tape: Tape): LedgerEntry | undefined => {
  const { data, event_type: type } = tape.next()?.record ?? { data: {} as Data, event_type: "" }
  if (type === "effect_escalated") {
    const attempts = data["attempts"] as ReadonlyArray<Data>
    return entryOf({}, 0, {
      attempts: attempts.map((one) => ({
        owner: "",
        at: Number(one["at_ms"]),
        ...(one["kind"] === null && one["effect"] === "unknown"
          ? {}
          : {
              settled: {
                at: 0,
                outcome: {
                  ok: false,
                  answer: "",
                  kind: one["kind"] ?? undefined,
                  effect: one["effect"],
                  state: "unknown"
                } as SettledOutcome
              }
            })
      }))
    })
  }
  if (type === "effect_intent") return entryOf({}, Number(data["attempt"] ?? 1))
  if (type !== "legality_checked") return undefined
  const call = String(data["call"])
  if (data["cause"] === "idempotency_conflict") return entryOf({ argumentsDigest: "" }, 1)
  if (data["cause"] !== "superseded_by_ledger") return undefined
  const validated = tape.find("tool_call_validated", call)?.record.data ?? {}
  const args = (validated["effective"] ?? validated["arguments"]) as Json
  return entryOf({ argumentsDigest: argumentsDigest(canonical(args)) }, 1)
}

/**
 * Could the recorded run's ledger execute statements of tools? If a call was turned away by the ledger's gate for its
 * contract, and its tool was never let through, that was the reason.
 */
const tookStatements = ({ records }: Tape): boolean => {
  const acted = new Set(
    records.flatMap(({ data, event_type: type }) => (type === "effect_intent" ? [data["tool"]] : []))
  )
  return !records.some(
    ({ data, event_type: type }) =>
      type === "tool_call_rejected" &&
      data["kind"] === "contract_fault" &&
      data["stage"] === "ledger" &&
      !acted.has(data["tool"])
  )
}

/** Lets a call act if it acted, and knows what it was known to have come to. */
export const ledger = (tape: Tape): EffectLedger["Service"] =>
  EffectLedger.of({
    begin: (intent) => begun(tape, intent),
    retake: (intent) => retaken(tape, intent),
    settle: () =>
      Effect.suspend(() => {
        const finished = tape.records.find(
          ({ event_type: type }, at) => at >= tape.compared && type === "tool_execution_finished"
        )
        return failsLedger(tape) && finished !== undefined && reasonOf(finished) === loopsOwn.unsettled
          ? Effect.fail(ledgerError(tape, "settle"))
          : Effect.void
      }),
    // The outcome on the record is what the database made of it: nothing of a recorded call is still staged.
    commit: (_, outcome) => Effect.succeed(outcome),
    transactional: tookStatements(tape) || notTransactional,
    late: () => Effect.void,
    resolve: () => Effect.void,
    get: () =>
      Effect.sync(() => {
        const entry = known(tape)
        return entry === undefined ? undefined : ({ entry } as never)
      }),
    list: () => Effect.succeed([])
  })
