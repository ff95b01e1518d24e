/** Lists of calls of tau-bench and tau2-bench as a workload: written, read back, and checked against their schemas. */
import { assert, describe, it, vi } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as CallLists from "../../../../src/effects/eval/external/CallLists.ts"
import * as Families from "../../../../src/engine/codecs/Families.ts"
import { conformance } from "../../../kit/codecs.ts"

// A bound for what hangs: hundreds of schemas are compiled.
vi.setConfig({ testTimeout: 300_000 })

const codec = (id: string) => Result.getOrThrow(Families.byId(id))

const ship = {
  type: "function",
  function: {
    name: "ship",
    description: "Ships an order.",
    parameters: {
      type: "object",
      properties: { order: { type: "string" }, items: { type: "array", items: { type: "integer" } } },
      required: ["order"]
    }
  }
}

const task = (id: string, expected_calls: ReadonlyArray<object>, tools: ReadonlyArray<object> = [ship]) =>
  JSON.stringify({ id, instruction: "?", expected_calls, tools })

const call = (input: object, name = "ship") => ({ name, arguments: input })

const checked = (lines: ReadonlyArray<string>, id = "qwen2.5") =>
  Effect.flatMap(Effect.fromResult(CallLists.read(lines.join("\n"))), (tasks) => CallLists.check(tasks, codec(id)))

describe("call lists", () => {
  it.effect("are counted call by call: read back, valid, without a schema", () =>
    Effect.gen(function* () {
      const found = yield* checked([
        task("a", [call({ order: '#1 "</tool_call>"\n' }), call({ order: "#2", items: [1, 2] })]),
        task("b", []),
        task("c", [call({ x: 1 }, "elsewhere")], [])
      ])
      assert.deepStrictEqual(found, { tasks: 3, calls: 3, read: 3, valid: 2, withoutSchema: 1, problems: [] })
    })
  )

  it.effect("name each call that is not valid, with every reason", () =>
    Effect.gen(function* () {
      const found = yield* checked([task("a", [call({ order: "#1" }), call({ items: ["x"], more: 1 })])])
      assert.deepStrictEqual([found.calls, found.read, found.valid], [2, 2, 1])
      assert.strictEqual(found.problems.length, 1)
      for (const part of ["a #1: ship:", "missing required argument", "unknown field", "expected integer"]) {
        assert.include(found.problems[0], part)
      }
    })
  )

  it("are refused by line where they are none", () => {
    const read = CallLists.read(`${task("a", [])}\n{}`)
    assert.isTrue(Result.isFailure(read) && read.failure.startsWith("line 2 is no task with calls"))
  })
})

const rows = conformance<{
  readonly calls_valid: ReadonlyArray<boolean> | null
  readonly expected_calls: ReadonlyArray<object>
}>("agent-task-calls")

if (rows === undefined) {
  it.skip("tau-bench: conformance/agent-task-calls.jsonl is not here (WRIT_CONFORMANCE), so its calls are not checked", () => {})
} else {
  describe("tau-bench and tau2-bench", () => {
    const lines = rows.map((row) => JSON.stringify(row))
    const verdicts = rows.flatMap(({ calls_valid }) => calls_valid ?? [])
    const calls = rows.reduce((all, row) => all + row.expected_calls.length, 0)

    for (const id of ["qwen2.5", "qwen3-coder", "llama3", "mistral", "gpt-oss"]) {
      it.effect(`calls are all read back by ${id}, and valid where another validator says so`, () =>
        Effect.gen(function* () {
          const found = yield* checked(lines, id)

          assert.deepStrictEqual(found.problems, [])
          assert.deepStrictEqual(
            [found.tasks, found.calls, found.valid, found.withoutSchema],
            [rows.length, calls, verdicts.filter((valid) => valid).length, calls - verdicts.length]
          )
          assert.strictEqual(found.read, calls)
        })
      )
    }
  })
}
