import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { exportBody, type Span, spansOf } from "../../../src/effects/trace/TraceSpans.ts"
import { emberText, runOf } from "../../kit/records.ts"
import { play } from "../../kit/run.ts"
import { call } from "../../kit/script.ts"
import { type GoodName, good } from "../../kit/traces.ts"

const epochMillis = 1_760_000_000_123.5

const spans = (text: string) => spansOf(runOf(text), { epochMillis })

const valueOf = (value: Record<string, unknown>): unknown =>
  "arrayValue" in value
    ? (value["arrayValue"] as { values: ReadonlyArray<Record<string, unknown>> }).values.map(valueOf)
    : Object.values(value)[0]

const attributes = (span: Span | undefined): Record<string, unknown> =>
  Object.fromEntries((span?.attributes ?? []).map(({ key, value }) => [key, valueOf(value as never)]))

const operation = (of: string) => (span: Span) => attributes(span)["gen_ai.operation.name"] === of

describe("the spans of a run", () => {
  it.effect("are an agent, its turns and its tools, with parent links, in the conventions' terms", () =>
    Effect.gen(function* () {
      const found = spans(yield* good["two calls"])
      assert.deepStrictEqual(
        found.map(({ name }) => name),
        ["invoke_agent writ", "chat script", "chat script", "execute_tool add", "execute_tool add"]
      )
      const [root, ...others] = found
      assert.isUndefined(root?.parentSpanId)
      assert.strictEqual(new Set(found.map(({ spanId }) => spanId)).size, found.length)
      for (const span of found) {
        assert.match(span.traceId, /^[0-9a-f]{32}$/)
        assert.match(span.spanId, /^[0-9a-f]{16}$/)
        assert.strictEqual(span.traceId, root?.traceId)
        assert.isTrue(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano))
        assert.deepStrictEqual(span.status, { code: 0 })
      }
      for (const span of others) assert.strictEqual(span.parentSpanId, root?.spanId)
      assert.strictEqual(root?.startTimeUnixNano, "1760000000123500000")
      assert.deepInclude(attributes(root), {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "script",
        "gen_ai.conversation.id": "run-1",
        "writ.outcome": "run_completed"
      })
      assert.deepInclude(attributes(found[1]), {
        "gen_ai.request.max_tokens": 512,
        "gen_ai.response.finish_reasons": ["tool_calls"],
        "gen_ai.usage.input_tokens": 573,
        "gen_ai.usage.output_tokens": 33
      })
      assert.deepInclude(attributes(found[4]), {
        "gen_ai.tool.name": "add",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call-0-1",
        "gen_ai.tool.call.arguments": '{"a":2,"b":2}',
        "gen_ai.tool.call.result": "4"
      })
    })
  )

  for (const name of Object.keys(good) as ReadonlyArray<GoodName>) {
    it.effect(`are one for each start on record, and the same each time: ${name}`, () =>
      Effect.gen(function* () {
        const run = runOf(yield* good[name])
        const found = spansOf(run, { epochMillis })
        const starts = (type: string) => run.records.filter((record) => record.event_type === type).length
        assert.lengthOf(found.filter(operation("chat")), starts("model_call_started"))
        assert.lengthOf(found.filter(operation("execute_tool")), starts("tool_execution_started"))
        assert.lengthOf(found.filter(operation("invoke_agent")), 1)
        assert.deepStrictEqual(spansOf(run, { epochMillis }), found)
      })
    )
  }

  it.effect("say what failed by error.type, and that a question is no failure", () =>
    Effect.gen(function* () {
      const failed = spans(yield* good["failing tool"]).find(operation("execute_tool"))
      assert.deepStrictEqual(failed?.status, { code: 2 })
      assert.strictEqual(attributes(failed)["error.type"], "execution_failed")
      const cut = spans(yield* good["cancelled in generation"])
      assert.deepStrictEqual(
        cut.map((span) => attributes(span)["error.type"]),
        ["cancelled", "cancelled"]
      )
      assert.strictEqual(attributes(spans(yield* good["model turns"])[0])["error.type"], "model_turns")
      assert.strictEqual(spans(yield* good["needs input"])[0]?.status.code, 0)
    })
  )

  it.effect("mark what never ran on the run's span", () =>
    Effect.gen(function* () {
      const [root] = spans(yield* good.denied)
      assert.includeMembers(
        root!.events.map(({ name }) => name),
        ["writ.approval_decided", "writ.tool_call_rejected"]
      )
    })
  )

  it.effect("hold no content when the record holds none", () =>
    Effect.gen(function* () {
      const secret = "Kq7secretZw9"
      const turns = [call("save", { name: `${secret}.txt`, content: secret }), call(secret, { secret }), secret]
      const played = (content: boolean) => play(turns, { task: secret, trace: { content } })
      const without = JSON.stringify(exportBody(runOf((yield* played(false)).text), { epochMillis, version: "1" }))
      assert.notInclude(without, secret)
      assert.notInclude(without, "hmac")
      for (const name of ["messages", "arguments", 'result"']) assert.notInclude(without, name)
      assert.include(JSON.stringify(spans((yield* played(true)).text)), secret)
    })
  )

  it("of an Ember trace have what is on record there", () => {
    const found = spans(emberText)
    assert.deepStrictEqual(
      found.map(({ name }) => name),
      ["invoke_agent writ", "chat small.gguf", "chat small.gguf", "execute_tool calculate"]
    )
    assert.strictEqual(attributes(found[1])["gen_ai.usage.output_tokens"], 28)
  })
})
