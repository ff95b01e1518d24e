import { assert, describe, it } from "@effect/vitest"
import type * as McpSchema from "effect/ai/McpSchema"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { execute } from "../../../src/tools/Execution.ts"
import type { JsonObject } from "../../../src/tools/JsonText.ts"
import type { ServerForm } from "../../../src/tools/mcp/McpContractFile.ts"
import { read, together } from "../../../src/tools/mcp/McpDescriptor.ts"
import { registeredName } from "../../../src/tools/mcp/McpNames.ts"
import { type Call, problemText, toolsOf } from "../../../src/tools/mcp/McpTool.ts"

const text = { type: "string" }
const object = { type: "object", properties: { path: text } }

const made = (list: ReadonlyArray<unknown>, form?: ServerForm, call: Call = () => Effect.die("not called")) =>
  toolsOf("s", together(list.map(read)), form, call)

const one = (form: ServerForm | undefined, more: JsonObject = {}) =>
  made([{ name: "t", inputSchema: object, ...more }], form)

const contractOf = (form: ServerForm | undefined, more: JsonObject = {}) =>
  Effect.map(one(form, more), ({ tools }) => ({ source: tools[0]!.source, contract: tools[0]!.registered.contract }))

const worst = { risk: "external", ledger: "none", retry: "never", reversible: false, stated: false } as const

describe("the contract of a server's tool", () => {
  it.effect("is the worst kind while nobody says anything, whatever the server hints at", () =>
    Effect.gen(function* () {
      const hints = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }
      for (const annotations of [{}, hints]) {
        const { contract, source } = yield* contractOf(undefined, { annotations })
        assert.deepInclude(contract, worst)
        assert.strictEqual(source, "nobody")
      }
    })
  )

  it.effect("is that of a reading tool on its server's word only where the file trusts it", () =>
    Effect.gen(function* () {
      const trusted = yield* contractOf({ hints: "trust" }, { annotations: { readOnlyHint: true } })
      assert.deepInclude(trusted.contract, { risk: "read" })
      assert.strictEqual(trusted.source, "hints")
      // Other hints make nothing milder even then.
      const written = yield* contractOf(
        { hints: "trust" },
        { annotations: { destructiveHint: false, idempotentHint: true } }
      )
      assert.deepInclude(written.contract, worst)
    })
  )

  it.effect("is what the file says of the tool, else of the server", () =>
    Effect.gen(function* () {
      const form: ServerForm = { default: { risk: "read" }, tools: { t: { risk: "read", scopes: ["x"] } } }
      assert.deepInclude((yield* contractOf(form)).contract, { risk: "read", scopes: ["x"], stated: true })
      assert.strictEqual((yield* contractOf({ default: { risk: "read" } })).source, "file default")
    })
  )

  it.effect("touches what the template says", () =>
    Effect.gen(function* () {
      const { tools } = yield* one({
        tools: { t: { risk: "read", touches: [{ verb: "read", resource: "workspace:{path}" }] } }
      })
      const { registered } = tools[0]!
      const args = Result.getOrThrow(registered.check({ path: "a" }))
      assert.deepStrictEqual(registered.terms.touches(args), [{ verb: "read", resource: "workspace:a" }])
    })
  )

  it.effect("is a problem with its place where it lacks what a tool that acts owes", () =>
    Effect.gen(function* () {
      const { problems, tools } = yield* one({ tools: { t: { risk: "local-write" } } })
      assert.deepStrictEqual(tools, [])
      assert.deepStrictEqual(problems.map(problemText), [
        'servers.s.tools.t: its contract says risk "local-write" and lacks ledger, retry, reversible, evidence, post'
      ])
    })
  )

  it.effect("is a problem where it speaks of tools or parameters that are not there", () =>
    Effect.gen(function* () {
      const form: ServerForm = {
        tools: { tt: {}, t: { risk: "read", touches: [{ verb: "read", resource: "f:{pth}" }] } }
      }
      const { problems } = yield* one(form)
      assert.deepStrictEqual(problems.map(problemText), [
        'servers.s.tools.tt: the server has no such tool; did you mean "t"?',
        'servers.s.tools.t.touches[0].resource: the tool has no parameter "pth"; did you mean "path"?'
      ])
    })
  )

  it.effect("can keep a tool from being offered", () =>
    Effect.map(one({ tools: { t: { hidden: true } } }), ({ problems, refused, tools }) =>
      assert.deepStrictEqual([problems, refused, tools], [[], [], []])
    )
  )
})

describe("a tool that cannot be one", () => {
  it.effect("is refused by name, and the others stay", () =>
    Effect.gen(function* () {
      const schema = (a: JsonObject) => ({ type: "object", properties: { a } })
      const { refused, tools } = yield* made([
        { name: "good", inputSchema: object },
        { name: "type", inputSchema: schema({ type: "dict" }) },
        { name: "pattern", inputSchema: schema({ type: "string", pattern: "(" }) },
        { name: "remote", inputSchema: schema({ $ref: "https://example.invalid/x" }) },
        { name: "output", inputSchema: object, outputSchema: schema({ type: "float" }) }
      ])
      assert.deepStrictEqual(
        tools.map(({ registered }) => registered.name),
        ["s__good"]
      )
      assert.deepStrictEqual(
        refused.map(({ name, reason }) => `${name}: ${reason.split(":")[0]}`),
        [
          "type: its schema is refused",
          "pattern: its schema is refused",
          "remote: its schema is refused",
          "output: its output schema is refused"
        ]
      )
    })
  )

  it.effect("is refused where it would get the name of another", () =>
    Effect.gen(function* () {
      // The second is what the first is called after its letters are replaced.
      const names = ["a b", registeredName("s", "a b").slice("s__".length)]
      const { refused, tools } = yield* made(names.map((name) => ({ name, inputSchema: object })))
      assert.deepStrictEqual(
        tools.map(({ descriptor }) => descriptor.name),
        ["a b"]
      )
      assert.match(refused[0]!.reason, /^another tool of this server is called s__a_b_\w{8} already$/)
    })
  )
})

describe("a call", () => {
  const answering = Effect.fnUntraced(function* (
    result: unknown,
    more: JsonObject = {},
    form?: ServerForm,
    args: JsonObject = {}
  ) {
    const call: Call = () => Effect.succeed(result as McpSchema.CallToolResult)
    const { tools } = yield* made([{ name: "t", inputSchema: object, ...more }], form, call)
    const { registered } = tools[0]!
    return yield* execute(registered, Result.getOrThrow(registered.check(args)), { settings: { fixtures: {} } })
  })

  it.effect("with one text for an answer has that text for a result", () =>
    Effect.map(answering({ content: [{ type: "text", text: "hi" }] }), (outcome) =>
      assert.deepInclude(outcome, { _tag: "Succeeded", result: "hi" })
    )
  )

  it.effect("has structure for a result where there is one, and the parts where there are several", () =>
    Effect.gen(function* () {
      const structured = yield* answering({ content: [{ type: "text", text: '{"a":1}' }], structuredContent: { a: 1 } })
      assert.deepInclude(structured, { result: { a: 1 } })
      const link = { type: "resource_link", uri: "file:///a", name: "a" }
      const parts = yield* answering({ content: [{ type: "text", text: "x" }, link] })
      assert.deepInclude(parts, { result: { content: [{ type: "text", text: "x" }, link] } })
    })
  )

  it.effect("hands bytes over as artifacts, named after the tool and what they are", () =>
    Effect.gen(function* () {
      const image = { type: "image", data: new Uint8Array([1, 2, 3]), mimeType: "image/png" }
      const blob = {
        type: "resource",
        resource: { uri: "x:y", blob: new Uint8Array([4]), mimeType: "not a type; evil" }
      }
      const outcome = yield* answering({ content: [image, blob] })
      assert(outcome._tag === "Succeeded")
      assert.deepStrictEqual(
        outcome.artifacts.map(({ bytes, mediaType, name }) => [name, mediaType, bytes.length]),
        [
          ["s__t-039058c6f2c0.png", "image/png", 3],
          ["s__t-e52d9c508c50.bin", "application/octet-stream", 1]
        ]
      )
      assert.include(JSON.stringify(outcome.result), '"artifact":"s__t-039058c6f2c0.png"')
    })
  )

  it.effect("that the tool says failed may have been done, unless the contract says otherwise", () =>
    Effect.gen(function* () {
      const broken = { content: [{ type: "text", text: "it broke" }], isError: true }
      const assumed = yield* answering(broken)
      assert.deepInclude(assumed, { _tag: "Failed", kind: "execution_failed", effect: "unknown" })
      assert.deepInclude(yield* answering(broken, {}, { default: { failure: "none" } }), { effect: "none" })
      assert.deepInclude(yield* answering(broken, {}, { default: { risk: "read" } }), { effect: "none" })
    })
  )

  it.effect("whose answer is not what the tool promises has a bad result", () =>
    Effect.gen(function* () {
      const outputSchema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] }
      const answers = [
        { content: [] },
        { content: [], structuredContent: { n: "1" } },
        { content: [], structuredContent: {} }
      ]
      for (const answer of answers) {
        const outcome = yield* answering(answer, { outputSchema })
        assert.deepInclude(outcome, { _tag: "Failed", kind: "bad_result", effect: "present" })
      }
      const more = yield* answering({ content: [], structuredContent: { n: 1, more: true } }, { outputSchema })
      assert.strictEqual(more._tag, "Succeeded")
    })
  )

  it.effect("is not held up by a pattern that takes for ever, in either direction", () =>
    Effect.gen(function* () {
      const slow = { type: "object", properties: { path: { type: "string", pattern: "^(a+)+$" } } }
      const path = `${"a".repeat(40)}b`
      const outcome = yield* answering({ content: [], structuredContent: { path } }, { outputSchema: slow })
      assert.deepInclude(outcome, { _tag: "Failed", kind: "bad_result" })
      const { tools } = yield* made([{ name: "t", inputSchema: slow }])
      const checked = tools[0]!.registered.check({ path })
      assert.isTrue(Result.isFailure(checked))
      assert.isTrue(Result.isSuccess(tools[0]!.registered.check({ path: "aaa" })))
    })
  )
})
