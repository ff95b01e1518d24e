import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, invoke } from "../kit/cli.ts"
import { emberText } from "../kit/records.ts"
import { good } from "../kit/traces.ts"

const runs = Effect.gen(function* () {
  const path = yield* directory
  const texts = {
    a: yield* good["one tool"],
    b: yield* good["failing tool"],
    c: yield* good["engine failure"],
    e: emberText
  }
  for (const [name, text] of Object.entries(texts)) {
    mkdirSync(join(path, name))
    writeFileSync(join(path, name, "trace.jsonl"), text)
  }
  writeFileSync(join(path, "cases.jsonl"), '{"not":"a trace"}\n')
  return path
})

const stats = (...args: ReadonlyArray<string>) => invoke(["trace", "stats", "--no-color", ...args])

describe("writ trace stats", () => {
  it.effect("counts every run below a directory, and nothing that is no trace", () =>
    Effect.gen(function* () {
      const { code, out } = yield* stats(yield* runs)
      assert.strictEqual(code, 0)
      assert.match(out, /^runs +4$/m)
      assert.match(out, /^outcomes +completed 3, failed 1$/m)
      assert.match(out, /^tool errors +execution_failed 1$/m)
      assert.match(out, /^classes +postcondition 1$/m)
      assert.match(out, /^cost +no prices on record$/m)
      assert.match(out, /^failed of +engine 1$/m)
      assert.match(out, /^run .* 4$/m)
    })
  )

  it.effect("prints one document with --json", () =>
    Effect.gen(function* () {
      const document = JSON.parse((yield* stats("--json", yield* runs)).out)
      assert.deepInclude(document, { runs: 4, outcomes: { completed: 3, failed: 1 }, tool_calls: 3 })
      assert.deepStrictEqual(
        document.each.map(({ file }: { file: string }) => file),
        ["a", "b", "c", "e"].map((name) => join(name, "trace.jsonl"))
      )
      assert.strictEqual(document.latency_ms.tool.count, 3)
      assert.deepStrictEqual([document.failure_classes, document.cost], [{ postcondition: 1 }, null])
    })
  )

  it.effect("prints one line of CSV per run, in which no text is a formula", () =>
    Effect.gen(function* () {
      const path = yield* runs
      writeFileSync(
        join(path, "a", "trace.jsonl"),
        (yield* good["one tool"]).replace('"name":"script"', '"name":"=1+1,\\"x\\""')
      )
      const { out } = yield* stats("--csv", path)
      const [head, first, ...rest] = out.split("\r\n")
      assert.match(head!, /^file,run_id,status,model,/)
      const at = (head ?? "").split(",").indexOf("classes")
      assert.strictEqual(rest[0]?.split(",")[at], "postcondition:1")
      assert.lengthOf(rest, 3)
      assert.include(first, `"'=1+1,""x"""`)
    })
  )

  it.effect("ends with 2 where there is nothing to count", () =>
    Effect.gen(function* () {
      const path = yield* directory
      assert.strictEqual((yield* stats(path)).code, 2)
      assert.strictEqual((yield* stats(join(path, "no"))).code, 2)
      assert.strictEqual((yield* stats("--json", "--csv", path)).code, 2)
    })
  )
})
