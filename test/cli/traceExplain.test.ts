import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, invoke } from "../kit/cli.ts"
import { good } from "../kit/traces.ts"

const traced = Effect.gen(function* () {
  const path = join(yield* directory, "trace.jsonl")
  writeFileSync(path, yield* good.denied)
  return path
})

describe("writ trace explain", () => {
  it.effect("follows a call and says what became of it", () =>
    Effect.gen(function* () {
      const { code, out } = yield* invoke(["trace", "explain", "--no-color", yield* traced, "call-0-0"])
      assert.strictEqual(code, 0)
      assert.match(out, /^send call-0-0: denied$/m)
      assert.match(out, /approval +deny by nobody \(event \d+\)/)
      assert.include(out, "It was never executed: it was denied; the model was told of its failure.")
    })
  )

  it.effect("prints one document with --json", () =>
    Effect.gen(function* () {
      const { out } = yield* invoke(["trace", "explain", "--json", yield* traced, "1"])
      const document = JSON.parse(out)
      assert.deepInclude(document, { call: "call-0-0", tool: "send", fate: "denied", turn: 0, ordinal: 0 })
      assert.strictEqual(document.steps[0].stage, "proposal")
    })
  )

  it.effect("lists the calls there are when that one is not", () =>
    Effect.gen(function* () {
      const { code, err } = yield* invoke(["trace", "explain", yield* traced, "call-7-0"])
      assert.strictEqual(code, 2)
      assert.include(err, "its calls are call-0-0 (send, denied)")
    })
  )
})
