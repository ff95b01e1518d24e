import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { layerInline, ToolPool } from "../../src/actors/ToolPool.ts"
import { failed } from "../../src/tools/Execution.ts"
import { admitted } from "../kit/toolCalls.ts"
import { directoryOf, opened, reads, scripted } from "../kit/toolFiles.ts"
import * as TestTools from "../kit/tools.ts"

const counted = `const fs=require("node:fs"); fs.appendFileSync("log","+"); setTimeout(()=>{fs.appendFileSync("log","-"); console.log(1)},200)`

describe("the tools of a directory in a pool", () => {
  it.live("run at most eight at a time; whoever waited is asked whether it still may", () =>
    Effect.gen(function* () {
      const directory = yield* directoryOf({ "a.tool.json": scripted(counted, reads) })
      const { layer, registry } = yield* opened(directory)
      const { run } = yield* Effect.provide(ToolPool, yield* Layer.build(layer(layerInline())))
      let asked = 0
      const call = {
        ...admitted(registry, "a"),
        ready: Effect.sync(() => (++asked === 1 ? failed("precondition_failed", "none", "moved", 0) : undefined))
      }
      const outcomes = yield* Effect.all(
        Array.from({ length: 12 }, () => run(call)),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(outcomes.map(({ _tag }) => _tag).sort(), ["Failed", ...Array(11).fill("Succeeded")])
      assert.strictEqual(asked, 4)
      let [now, most] = [0, 0]
      for (const sign of readFileSync(join(directory, "log"), "utf8")) {
        now += sign === "+" ? 1 : -1
        most = Math.max(most, now)
      }
      assert.isAtMost(most, 8)
      assert.strictEqual(now, 0)
    })
  )

  it.live("leave every other tool to the pool, also one of the same name", () =>
    Effect.gen(function* () {
      const directory = yield* directoryOf({ "add.tool.json": scripted("console.log(0)", reads) })
      const { layer, registry } = yield* opened(directory)
      const { run } = yield* Effect.provide(ToolPool, yield* Layer.build(layer(layerInline())))
      const others = (yield* TestTools.make()).registry
      assert.deepInclude(yield* run(admitted(others, "add", { a: 2, b: 3 })), { result: 5 })
      assert.deepInclude(yield* run(admitted(registry, "add")), { result: 0 })
      assert.deepInclude(yield* run(admitted(registry, "add", {}, { deadlineMillis: 0 })), {
        kind: "timed_out",
        effect: "none"
      })
    })
  )
})
