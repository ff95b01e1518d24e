/** The entry "effect-writ/files", as a program uses it. */
import { readFileSync } from "node:fs"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { FileTools } from "../src/files.ts"
import { Agent } from "../src/index.ts"
import { layerScripted, MemoryTraces } from "../src/testing.ts"
import { call } from "./kit/script.ts"
import { directoryOf, reads, scripted } from "./kit/toolFiles.ts"

it.live("a program opens a directory of tools, runs an agent with them, and grants what they see", () =>
  Effect.gen(function* () {
    const looking = `console.log(JSON.stringify(process.env.GREETING ?? null))`
    const directory = yield* directoryOf({ "look.tool.json": scripted(looking, reads) })
    const answered = Effect.fnUntraced(function* (env: Readonly<Record<string, string>> | undefined) {
      const files = yield* FileTools.open(directory, env === undefined ? {} : { env })
      assert.deepStrictEqual(files.problems, [])
      return yield* Effect.gen(function* () {
        const { runId } = yield* Agent.run({ task: "t", tools: files.registry, trace: { content: true } })
        return (yield* MemoryTraces).text(runId)
      }).pipe(Effect.provide(files.layer(layerScripted({ turns: [call("look", {}), "done"] }))))
    }, Effect.provide(NodeServices.layer))
    assert.include(yield* answered(undefined), String.raw`{\"ok\":true,\"result\":null}`)
    assert.include(yield* answered({ GREETING: "hi" }), String.raw`{\"ok\":true,\"result\":\"hi\"}`)
  })
)

it("is an entry of the package, and not part of the one that every program loads", () => {
  const { exports } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"))
  assert.deepStrictEqual(exports["./files"], { types: "./dist/files.d.ts", default: "./dist/files.js" })
  assert.notInclude(readFileSync(new URL("../src/index.ts", import.meta.url), "utf8"), "FileTools")
})
