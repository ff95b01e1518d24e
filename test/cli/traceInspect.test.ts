import { appendFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, start, until } from "../kit/cli.ts"
import { good } from "../kit/traces.ts"

describe("writ trace inspect --follow", () => {
  it.live("shows a run while it runs and ends with it", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const path = join(cwd, "trace.jsonl")
      const lines = (yield* good["one tool"]).split("\n").filter((line) => line !== "")
      writeFileSync(path, `${lines.slice(0, 12).join("\n")}\n`)
      const running = start(["trace", "inspect", "--follow", "--no-color", path], { cwd })
      yield* until(running, () => running.said().includes("call "))
      assert.notInclude(running.said(), "status", "it is not over")
      appendFileSync(path, `${lines.slice(12).join("\n")}\n`)
      const { code, out } = yield* Effect.promise(() => running.ended)
      assert.strictEqual(code, 0)
      assert.match(out, /final answer +It is 2\./)
      assert.match(out, /status +completed/)
    })
  )
})
