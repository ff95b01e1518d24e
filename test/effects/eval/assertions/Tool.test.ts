/** Tools as judges: only what reads, arguments checked, and whose fault it is when one fails. */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { layerInline, ToolPool } from "../../../../src/actors/ToolPool.ts"
import type { Assertion } from "../../../../src/effects/eval/assertions/Kinds.ts"
import type { ToolDoor } from "../../../../src/effects/eval/Kind.ts"
import { registry } from "../../../../src/tools/builtin/index.ts"
import { failed } from "../../../../src/tools/Execution.ts"
import type { Json } from "../../../../src/tools/JsonText.ts"
import { assistant, blank, decide, nowhere, talk, user } from "../../../kit/evals.ts"

const asks = (tool: string, with_args?: Readonly<Record<string, Json>>): Assertion => ({
  type: "tool",
  tool_call: { tool, ...(with_args === undefined ? {} : { with_args }) }
})

const tried = (assertion: Assertion, answer: string, run?: ToolDoor["run"]) =>
  Effect.gen(function* () {
    const pool = Context.get(yield* Layer.build(layerInline()), ToolPool)
    const settings = { fixtures: { known: "yes" } }
    const tools: ToolDoor = {
      registry: yield* registry,
      run:
        run ??
        ((tool, args) =>
          pool.run({ callId: "c", tool, arguments: args, deadlineMillis: Number.POSITIVE_INFINITY, settings }))
    }
    return yield* decide(assertion, talk([user("?"), assistant(answer)]), { ...nowhere, tools })
  }).pipe(Effect.scoped, Effect.orDie)

describe("tool", () => {
  it.effect("passes where the tool succeeds with the answer as its argument", () =>
    Effect.gen(function* () {
      const verdict = yield* tried(asks("calculate", { expression: "{{response}}" }), "2 + 3")
      assert.deepStrictEqual(verdict, { outcome: "pass" })
    })
  )

  it.effect("fails where the tool cannot do it with this answer", () =>
    Effect.gen(function* () {
      const verdict = yield* tried(asks("calculate", { expression: "{{response}}" }), "two plus three")
      assert.strictEqual(verdict.outcome, "fail", verdict.reason)
    })
  )

  it.effect("an answer that does not fit is the candidate's fault, an argument the suite's", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* tried(asks("calculate", { expression: "{{response}}" }), "")).outcome, "fail")
      assert.strictEqual((yield* tried(asks("calculate", { expression: 5 }), "x")).outcome, "malformed")
      assert.strictEqual((yield* tried(asks("calculate"), "x")).outcome, "malformed")
    })
  )

  it.effect("a tool that does more than read is not called", () =>
    Effect.gen(function* () {
      const never: ToolDoor["run"] = () => Effect.die(new Error("called"))
      const verdict = yield* tried(asks("write_artifact", { name: "x", content: "{{response}}" }), "x", never)
      assert.strictEqual(verdict.outcome, "deferred", verdict.reason)
    })
  )

  it.effect("a tool that could not do its work says nothing about the answer", () =>
    Effect.gen(function* () {
      const slow: ToolDoor["run"] = () => Effect.succeed(failed("timed_out", "none", "too slow", 1))
      const verdict = yield* tried(asks("calculate", { expression: "{{response}}" }), "2", slow)
      assert.deepStrictEqual(verdict, { outcome: "errored", reason: "timed_out: calculate: too slow" })
    })
  )

  it.effect("without tools, without this tool and without an answer", () =>
    Effect.gen(function* () {
      const calculate = asks("calculate", { expression: "1" })
      assert.strictEqual((yield* decide(calculate, talk([user("?"), assistant("x")]))).outcome, "deferred")
      assert.strictEqual((yield* tried(asks("nothing"), "x")).outcome, "deferred")
      const door = { registry: yield* registry, run: () => Effect.die(new Error("called")) }
      const unfilled = yield* decide(calculate, talk([user("?"), blank]), { ...nowhere, tools: door })
      assert.strictEqual(unfilled.outcome, "fail")
    })
  )
})
