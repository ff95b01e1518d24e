import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Agent from "../../src/effects/Agent.ts"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import * as Wiring from "../../src/effects/Wiring.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import * as Registry from "../../src/tools/Registry.ts"

it.live(
  "a plain answer that is cut goes on once on a real model, and what there is then is the answer's beginning",
  () =>
    Effect.gen(function* () {
      const session = yield* Agent.session({ tools: yield* Registry.make([]) })
      const say = (outputTokens: number) => Agent.runIn(session, "hello", { limits: { outputTokens } })
      const cut = yield* say(3)
      assert.deepInclude(cut.stop, { _tag: "Limit", kind: "output_tokens" })
      assert.strictEqual(cut.usage.outputTokens, 6)
      const next = yield* say(4)
      assert.notStrictEqual(next.stop._tag, "Failed")
      const traces = yield* MemoryTraces
      for (const { runId } of [cut, next]) assert.deepStrictEqual(validateText(traces.text(runId)).violations, [])
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.merge(
          layerScripted({ turns: [] }),
          Wiring.layerModel({ modelHash: false, contextTokens: 2_048, sessions: 1 })
        )
      )
    )
)
