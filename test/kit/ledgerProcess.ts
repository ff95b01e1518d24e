/**
 * A process that shares an effect ledger with a test: `node ledgerProcess.ts FILE|URL ROLE [ARGUMENT]`. It says what it did on
 * stdout, a line each, and goes on when it is sent a line.
 */

import { appendFileSync, writeSync } from "node:fs"
import { createInterface } from "node:readline"
import * as Effect from "effect/Effect"
import { EffectLedger } from "../../src/actors/EffectLedger.ts"
import { intent, succeeded } from "./ledger.ts"
import { layerAt } from "./ledgerAt.ts"

const [path = "", role = "", argument = ""] = process.argv.slice(2)

const say = (line: string) => Effect.sync(() => writeSync(1, `${line}\n`))

const lines = createInterface({ input: process.stdin })
const told = Effect.callback<void>((resume) => {
  lines.once("line", () => resume(Effect.void))
})

/** Delivers call `n`: acts once, which leaves a line in the file `argument`. Gives the answer. */
const deliver = Effect.fnUntraced(function* (n: number) {
  const ledger = yield* EffectLedger
  const begun = yield* ledger.begin(intent(n))
  if (begun._tag === "Settled") return begun.outcome.answer
  if (begun._tag !== "New") return begun._tag
  yield* Effect.sync(() => appendFileSync(argument, `${n}\n`))
  const outcome = succeeded(`${process.pid} did ${n}`)
  yield* ledger.settle(intent(n).key, outcome)
  return outcome.answer
})

const roles: Record<string, Effect.Effect<void, unknown, EffectLedger>> = {
  deliver: Effect.gen(function* () {
    yield* say("ready")
    yield* told
    const calls = Array.from({ length: 40 }, (_, at) => at % 20)
    yield* say(JSON.stringify(yield* Effect.forEach(calls, deliver, { concurrency: "unbounded" })))
  }),
  hold: Effect.gen(function* () {
    const ledger = yield* EffectLedger
    yield* ledger.begin(intent(0))
    yield* say("begun")
    yield* told
    yield* ledger.settle(intent(0).key, succeeded("held"))
    yield* say("settled")
  }),
  stream: Effect.gen(function* () {
    const ledger = yield* EffectLedger
    for (let n = 0; ; n++) {
      yield* ledger.begin(intent(n))
      yield* say(`begun ${n}`)
      yield* ledger.settle(intent(n).key, succeeded(String(n)))
      yield* say(`settled ${n}`)
    }
  })
}

await Effect.runPromise(Effect.provide(roles[role]!, layerAt(path)))
lines.close()
