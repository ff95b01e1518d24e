import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { ToolPool } from "../../src/actors/ToolPool.ts"
import * as Wiring from "../../src/effects/Wiring.ts"
import { registry } from "../fixtures/toolkits/hostile.ts"
import { admitted } from "../kit/toolCalls.ts"

const toolkit = new URL("../fixtures/toolkits/hostile.ts", import.meta.url)

describe("the tools of a wired run", () => {
  it.live("see no variable of this process, and those that are granted", () =>
    Effect.gen(function* () {
      const tools = yield* registry
      const seen = (options: Wiring.WiringOptions) =>
        Effect.flatMap(ToolPool, ({ run }) => run(admitted(tools, "environment"))).pipe(
          Effect.provide(Wiring.layerTools({ toolkit, ...options }))
        )
      assert.deepInclude(yield* seen({}), { result: [] })
      assert.deepInclude(yield* seen({ toolEnv: { API_KEY: "x", LANG: "C" } }), { result: ["API_KEY", "LANG"] })
    })
  )
})
