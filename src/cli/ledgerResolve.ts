/** `writ ledger resolve KEY`: a person settles an effect of which nobody knows whether it happened, and says how they know. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { SettledOutcome } from "../actors/EffectLedgerEntry.ts"
import type { LedgerError } from "../actors/EffectLedgerError.ts"
import { parse } from "../tools/JsonText.ts"
import { answerText } from "../tools/ToolCall.ts"
import { inJson, type UsageError, usage } from "./Ending.ts"
import { findEffect, type LedgerFlags, withLedger } from "./LedgerPlace.ts"
import { document, wordOf } from "./LedgerView.ts"
import { personOf } from "./Person.ts"
import { inline, jsonText } from "./Printable.ts"
import * as Screen from "./Screen.ts"

export interface ResolveFlags extends LedgerFlags {
  readonly key: string
  readonly happened: boolean
  readonly didNotHappen: boolean
  readonly failed: boolean
  readonly result: string | undefined
  readonly reason: string | undefined
  readonly by: string | undefined
}

const leftNothing = (kind: "not_executed" | "execution_failed", reason: string): SettledOutcome => ({
  ok: false,
  answer: answerText({ ok: false, kind, errors: [{ path: "", reason }] }),
  kind,
  effect: "none",
  state: "failed"
})

/** What the model of a resumed run is told. The reason stays in the ledger: it is between people. */
const outcomeFrom = Effect.fnUntraced(function* (flags: ResolveFlags): Effect.fn.Return<SettledOutcome, UsageError> {
  const said = [flags.happened, flags.didNotHappen, flags.failed].filter(Boolean).length
  if (said !== 1) return yield* usage("say what you found: one of --happened, --did-not-happen, --failed")
  if (flags.result !== undefined && !flags.happened) return yield* usage("--result goes with --happened")
  if (flags.didNotHappen) return leftNothing("not_executed", "it was checked by a person: this did not happen")
  if (flags.failed) return leftNothing("execution_failed", "it was checked by a person: this failed and left nothing")
  if (flags.result === undefined) {
    const answer = answerText({ ok: true, result: "it was checked by a person: this happened" })
    return { ok: true, answer, effect: "present", state: "succeeded" }
  }
  const read = parse(flags.result, { maxDepth: 100 })
  if (Result.isFailure(read)) {
    const { position, reason } = read.failure
    return yield* usage(`--result: it is not JSON: ${reason} (at character ${position})`)
  }
  return { ok: true, answer: answerText({ ok: true, result: read.success }), effect: "present", state: "succeeded" }
})

/** What the rules refuse does not fit what was asked; any other trouble is the ledger's. */
const refused = (error: LedgerError): Effect.Effect<never, UsageError | LedgerError> =>
  ["running", "settled", "invalid", "missing"].includes(error.reason) ? usage(error.message) : Effect.fail(error)

export const resolveEffect = (flags: ResolveFlags) =>
  Effect.gen(function* () {
    const outcome = yield* outcomeFrom(flags)
    const reason = flags.reason ?? ""
    if (reason.trim() === "") return yield* usage("say how you know: --reason TEXT is kept with the effect")
    const by = yield* personOf(flags.by)
    return yield* withLedger(flags, (open) =>
      Effect.gen(function* () {
        const { entry } = yield* findEffect(open, flags.key)
        yield* Effect.catchTag(open.ledger.resolve(entry.key, { outcome, by, reason }), "LedgerError", refused)
        const after = (yield* open.ledger.get(entry.key))!
        if (flags.json) return yield* Console.log(jsonText(document(after, open.place)))
        const paint = yield* Screen.paintFor(flags.color)
        return yield* Console.log(
          `${inline(entry.tool)} ${entry.key.slice(0, 12)}: ${paint.green(wordOf(after))}, says ${inline(by)}`
        )
      })
    )
  }).pipe(inJson(flags.json))
