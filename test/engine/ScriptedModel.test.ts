import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { control, text } from "../../src/engine/Prompt.ts"
import * as ScriptedModel from "../../src/engine/ScriptedModel.ts"

const request = { maxTokens: 20, stops: [], sampling: { temperature: 0, topK: 40, topP: 0.95, seed: 1 } }

describe("a scripted session", () => {
  it.effect("goes back to where a commit or a keep ended, and its log with it", () =>
    Effect.gen(function* () {
      const { logs, model } = ScriptedModel.make({ turns: ["first turn", "second turn"] })
      const session = yield* model.session
      const system = yield* session.commit([text("system")])
      yield* Stream.runDrain(session.turn([control("<a>")], request))
      const kept = yield* session.keep([control("</a>")])
      yield* session.commit([text("more")])
      assert.strictEqual(logs[0]!.committed(), "system<a>first turn</a>more")
      yield* session.rewind(kept.end)
      assert.deepStrictEqual([logs[0]!.committed(), yield* session.length], ["system<a>first turn</a>", kept.end])
      yield* session.rewind(system.end)
      assert.strictEqual(logs[0]!.committed(), "system")
      assert.strictEqual((yield* Effect.flip(session.rewind(kept.end))).reason, "bad_request")
      yield* session.rewind(0)
      assert.deepStrictEqual(yield* session.commit([text("anew")]), { start: 0, end: 1 })
      assert.strictEqual(logs[0]!.committed(), "anew")
    })
  )

  it.effect("drops the open turn even where it refuses", () =>
    Effect.gen(function* () {
      const { model } = ScriptedModel.make({ turns: ["one", "two"] })
      const session = yield* model.session
      const { end } = yield* session.commit([text("system text")])
      yield* Stream.runDrain(session.turn([], request))
      assert.strictEqual((yield* Effect.flip(session.rewind(end - 1))).reason, "bad_request")
      assert.strictEqual((yield* Effect.flip(session.keep([]))).reason, "bad_request")
      assert.strictEqual(yield* session.length, end)
    })
  )
})
