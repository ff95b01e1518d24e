import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { newOwner } from "../../src/actors/EffectLedgerOwner.ts"
import * as RunClaim from "../../src/effects/RunClaim.ts"
import { directory } from "../kit/cli.ts"

/** No process has this number: it is above what any kernel gives out. */
const nobody = 2 ** 30

describe("RunClaim", () => {
  it.effect("lets one program at a time have a run, and leaves nothing behind", () =>
    Effect.gen(function* () {
      const run = yield* directory
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* RunClaim.hold(run)
          const refused = yield* Effect.flip(Effect.scoped(RunClaim.hold(run)))
          assert.include(refused.message, `in process ${process.pid}: wait for its end, or end it first`)
          assert.strictEqual((yield* Effect.flip(RunClaim.refuseHeld(run))).message, refused.message)
        })
      )
      assert.isFalse(existsSync(RunClaim.fileIn(run)))
      yield* RunClaim.refuseHeld(run)
    })
  )

  it.effect("takes no notice of who is gone, who lives elsewhere, and of a file that says nothing", () =>
    Effect.gen(function* () {
      const me = newOwner()
      const others = [
        JSON.stringify({ ...me, pid: nobody }),
        JSON.stringify({ ...me, started: "1" }),
        JSON.stringify({ ...me, pid: 0 }),
        JSON.stringify({ ...me, pid: -1 }),
        JSON.stringify({ ...me, place: "another machine" }),
        JSON.stringify({ pid: process.pid }),
        "",
        "{"
      ]
      for (const text of others) {
        const run = yield* directory
        writeFileSync(RunClaim.fileIn(run), text)
        yield* RunClaim.refuseHeld(run)
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* RunClaim.hold(run)
            assert.strictEqual(JSON.parse(readFileSync(RunClaim.fileIn(run), "utf8")).pid, process.pid, text)
          })
        )
        assert.isFalse(existsSync(RunClaim.fileIn(run)), text)
      }
    })
  )

  it.effect("leaves what somebody else has written meanwhile", () =>
    Effect.gen(function* () {
      const run = yield* directory
      const other = JSON.stringify({ ...newOwner(), pid: process.ppid })
      yield* Effect.scoped(
        Effect.andThen(
          RunClaim.hold(run),
          Effect.sync(() => writeFileSync(RunClaim.fileIn(run), other))
        )
      )
      assert.strictEqual(readFileSync(RunClaim.fileIn(run), "utf8"), other)
    })
  )

  it.effect("says where it could not be written", () =>
    Effect.gen(function* () {
      const run = yield* directory
      mkdirSync(RunClaim.fileIn(run))
      const failed = yield* Effect.flip(Effect.scoped(RunClaim.hold(run)))
      assert.include(failed.message, join(run, "running.json"))
      assert.isTrue(existsSync(RunClaim.fileIn(run)))
    })
  )
})
