import { chmodSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, invoke, unprivileged } from "../kit/cli.ts"
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

  it.effect("shows in CSV what would act on a terminal, and keeps a run on one line", () =>
    Effect.gen(function* () {
      const path = yield* directory
      const text = (yield* good["one tool"]).replace('"name":"script"', '"name":"a\\u001b]0;b\\u0007\\nc"')
      writeFileSync(join(path, "trace.jsonl"), text)
      const { out } = yield* stats("--csv", path)
      assert.lengthOf(out.split(/\r?\n/), 2)
      assert.include(out, ",a\\u001b]0;b\\u0007\\nc,")
    })
  )

  it.effect(
    "ends with 2 where a part of the directory cannot be read, since its numbers would not be those of all runs",
    () =>
      Effect.gen(function* () {
        const path = yield* runs
        chmodSync(path, 0o755)
        const closed = join(path, "closed")
        mkdirSync(closed, { mode: 0o000 })
        const { code, err } = yield* unprivileged(stats(path))
        assert.strictEqual(code, 2)
        assert.match(err, /it cannot be read whole: EACCES/)
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
