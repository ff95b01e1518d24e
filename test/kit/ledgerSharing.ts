/** What every ledger that several programs share has to do, whatever keeps it. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import type { LedgerError } from "../../src/actors/EffectLedgerError.ts"
import { intent, succeeded } from "./ledger.ts"
import { child, directory, open } from "./ledgerAt.ts"

const flip = (effect: Effect.Effect<unknown, LedgerError>) => Effect.flip(effect)

const { key } = intent(0)

type Place = Effect.Effect<string, never, Scope.Scope>

const closing = (backend: string, place: Place): void => {
  describe(`${backend}: a ledger that closes`, () => {
    it.live("an intent that was left when its ledger closed is unknown, and can be taken over", () =>
      Effect.gen(function* () {
        const path = yield* place
        yield* open(path, (ledger) => ledger.begin(intent(0)))
        yield* open(path, (ledger) =>
          Effect.gen(function* () {
            assert.strictEqual((yield* ledger.begin(intent(0)))._tag, "Unknown")
            assert.strictEqual((yield* flip(ledger.settle(key, succeeded("not mine")))).reason, "not_owner")
            assert.strictEqual((yield* ledger.retake(intent(0)))._tag, "New")
            yield* ledger.settle(key, succeeded("mine"))
          })
        )
      })
    )

    it.live("a ledger that is closed refuses instead of forgetting", () =>
      Effect.gen(function* () {
        const path = yield* place
        const ledger = yield* open(path, Effect.succeed)
        assert.strictEqual((yield* flip(ledger.begin(intent(0)))).reason, "closed")
      })
    )

    it.live("calls that are asked for together are all answered when the ledger closes right after", () =>
      Effect.gen(function* () {
        const path = yield* place
        const fibers = yield* open(path, (ledger) =>
          Effect.forEach(
            Array.from({ length: 300 }, (_, n) => intent(n)),
            (one) => Effect.forkDetach(ledger.begin(one), { startImmediately: true })
          )
        )
        const begun = yield* Effect.forEach(fibers, Fiber.join)
        assert.isTrue(begun.every(({ _tag }) => _tag === "New"))
        assert.lengthOf(yield* open(path, (ledger) => ledger.list({ standing: "unknown" })), 300)
      })
    )
  })
}

const together = (backend: string, place: Place): void => {
  describe(`${backend}: several ledgers in one process`, () => {
    it.live("are single flight: the second waits for the first one's outcome", () =>
      Effect.gen(function* () {
        const path = yield* place
        yield* open(path, (first) =>
          open(path, (second) =>
            Effect.gen(function* () {
              yield* first.begin(intent(0))
              const waiting = yield* Effect.forkChild(second.begin(intent(0)), { startImmediately: true })
              assert.strictEqual((yield* second.get(key))!.standing, "running")
              assert.strictEqual((yield* flip(second.settle(key, succeeded("not mine")))).reason, "not_owner")
              yield* first.settle(key, succeeded("first"))
              assert.deepStrictEqual(yield* Fiber.join(waiting), { _tag: "Settled", outcome: succeeded("first") })
            })
          )
        )
      })
    )
  })
}

const processes = (backend: string, place: Place): void => {
  describe(`${backend}: several processes`, () => {
    it.live("that deliver the same calls at once cause each effect once and give byte-equal replies", () =>
      Effect.gen(function* () {
        const path = yield* place
        const effects = join(yield* directory, "effects")
        writeFileSync(effects, "")
        const both = [yield* child(path, "deliver", effects), yield* child(path, "deliver", effects)]
        for (const { line } of both) assert.strictEqual(yield* line, "ready")
        for (const { tell } of both) yield* tell
        const replies = yield* Effect.forEach(both, ({ line }) => line, { concurrency: 2 })
        assert.strictEqual(replies[0], replies[1])
        assert.lengthOf(JSON.parse(replies[0]!), 40)
        const done = readFileSync(effects, "utf8").trim().split("\n").map(Number)
        assert.deepStrictEqual(
          done.sort((a, b) => a - b),
          Array.from({ length: 20 }, (_, n) => n)
        )
      })
    )

    it.live("the second waits for the first, and learns what it came to", () =>
      Effect.gen(function* () {
        const path = yield* place
        const holder = yield* child(path, "hold")
        assert.strictEqual(yield* holder.line, "begun")
        const begun = yield* open(path, (ledger) =>
          Effect.gen(function* () {
            const waiting = yield* Effect.forkChild(ledger.begin(intent(0)), { startImmediately: true })
            assert.strictEqual((yield* ledger.get(key))!.standing, "running")
            yield* holder.tell
            return yield* Fiber.join(waiting)
          })
        )
        assert.deepStrictEqual(begun, { _tag: "Settled", outcome: succeeded("held") })
      })
    )
  })
}

const killed = (backend: string, place: Place): void => {
  describe(`${backend}: a process that is killed`, () => {
    it.live(
      "kill -9 between intent and settle leaves an unknown effect, for whoever waits and whoever comes later",
      () =>
        Effect.gen(function* () {
          const path = yield* place
          const holder = yield* child(path, "hold")
          assert.strictEqual(yield* holder.line, "begun")
          const begun = yield* open(path, (ledger) =>
            Effect.gen(function* () {
              const waiting = yield* Effect.forkChild(ledger.begin(intent(0)), { startImmediately: true })
              assert.strictEqual((yield* ledger.get(key))!.standing, "running")
              yield* holder.kill
              return yield* Fiber.join(waiting)
            })
          )
          assert.strictEqual(begun._tag, "Unknown")
          yield* open(path, (ledger) =>
            Effect.gen(function* () {
              assert.strictEqual((yield* ledger.begin(intent(0)))._tag, "Unknown")
              yield* ledger.resolve(key, { outcome: succeeded("INV-9"), by: "ada", reason: "it is in the portal" })
              assert.strictEqual((yield* ledger.begin(intent(0)))._tag, "Settled")
            })
          )
        })
    )

    it.live("kill -9 at any moment loses nothing that was returned from", () =>
      Effect.gen(function* () {
        for (const length of [1, 2, 7, 30]) {
          const path = yield* place
          const streamer = yield* child(path, "stream")
          for (let said = 0; said < length; said++) yield* streamer.line
          yield* streamer.kill
          // What it said before it died but was not read yet counts as well.
          let last: string | undefined
          for (let line = yield* streamer.line; line !== undefined; line = yield* streamer.line) last = line
          const said = last ?? (length % 2 === 1 ? `begun ${(length - 1) / 2}` : `settled ${length / 2 - 1}`)
          const [what, n] = said.split(" ") as [string, string]
          yield* open(path, (ledger) =>
            Effect.gen(function* () {
              for (let at = 0; at < Number(n); at++) {
                assert.deepStrictEqual(yield* ledger.begin(intent(at)), {
                  _tag: "Settled",
                  outcome: succeeded(String(at))
                })
              }
              const begun = yield* ledger.begin(intent(Number(n)))
              // A settlement may have reached the disk and not the reader; an intent never turns new again.
              assert.include(what === "settled" ? ["Settled"] : ["Settled", "Unknown"], begun._tag)
            })
          )
        }
      })
    )
  })
}

/** `place` gives a ledger that nobody has used. */
export const sharedLedger = (backend: string, place: Place): void => {
  for (const part of [closing, together, processes, killed]) part(backend, place)
}
