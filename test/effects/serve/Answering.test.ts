/** What one request may find that another one has left, and whose a call is. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { parse } from "../../../src/effects/serve/Tokens.ts"
import { validateText } from "../../../src/effects/trace/TraceValidator.ts"
import * as Registry from "../../../src/tools/Registry.ts"
import { call, lines } from "../../kit/script.ts"
import { hello, post, serving } from "../../kit/serve.ts"

interface Completion {
  readonly choices: ReadonlyArray<{
    readonly finish_reason: string
    readonly message: {
      readonly content: string | null
      readonly tool_calls?: ReadonlyArray<{
        readonly id: string
        readonly function: { readonly name: string; readonly arguments: string }
      }>
    }
  }>
  readonly usage: { readonly prompt_tokens_details: { readonly cached_tokens: number } }
}

const completionOf = ({ body, text }: { readonly body: unknown; readonly text: string }): Completion => {
  if (!("choices" in (body as object))) throw new Error(text)
  return body as Completion
}

const parameters = {
  type: "object",
  properties: { a: { type: "number" }, b: { type: "number" } },
  required: ["a", "b"]
} as const

const sum = { name: "sum", description: "Adds two numbers.", parameters }

/** A tool of the server's that declares just what one of a client's does. */
const serversOwn = Effect.gen(function* () {
  const performed: Array<string> = []
  const tools = yield* Registry.fromDynamic([
    {
      name: sum.name,
      description: sum.description,
      schema: parameters,
      contract: { risk: "read" },
      run: (args) =>
        Effect.sync(() => {
          performed.push(JSON.stringify(args))
          return Number(args["a"]) + Number(args["b"])
        })
    }
  ])
  return { performed, tools }
})

describe("a tool that a client brings", () => {
  it.live("has its answer read behind its call: what the user asked is not said a second time", () =>
    Effect.gen(function* () {
      const one = call("sum", { a: 1, b: 2 })
      const { contexts, trace, url } = yield* serving([one, "It is 3.", "It is 4."], { sessions: 1 })
      const brought = { ...hello, tools: [{ type: "function", function: sum }] }
      const first = completionOf(yield* post(url, brought))
      const said = { role: "assistant", ...first.choices[0]!.message }
      const ids = (said.tool_calls ?? []).map(({ id }) => id)
      const told = (content: string) => {
        const answers = ids.map((id) => ({ role: "tool", tool_call_id: id, content }))
        return post(url, { ...brought, messages: [...hello.messages, said, ...answers] })
      }
      const warm = completionOf(yield* told("3"))
      assert.strictEqual(warm.choices[0]?.message.content, "It is 3.")
      const asked = () => contexts().map((text) => text.split(hello.messages[0]!.content).length - 1)
      assert.deepStrictEqual(asked(), [1])
      assert.include(trace(2), '"phase":"tool"')
      assert.notInclude(trace(2), '"phase":"plan"')
      // Another answer to the same call: the session goes back to before the one it was told.
      const other = completionOf(yield* told("4"))
      assert.strictEqual(other.choices[0]?.message.content, "It is 4.")
      assert.deepStrictEqual([...new Set(asked())], [1])
      for (const run of [1, 2, 3]) assert.deepStrictEqual(validateText(trace(run)).violations, [])
    })
  )

  it.live("is never mistaken for one of the server's that looks the same, in the same session or another", () =>
    Effect.gen(function* () {
      const { performed, tools } = yield* serversOwn
      const one = call("sum", { a: 1, b: 2 })
      const { trace, url } = yield* serving([one, one, "It is 3.", one], { tools, sessions: 1 })
      const brought = { ...hello, tools: [{ type: "function", function: sum }] }
      const first = completionOf(yield* post(url, brought))
      assert.strictEqual(first.choices[0]?.finish_reason, "tool_calls")
      assert.deepStrictEqual(performed, [])
      // The same conversation goes on, and now the server's tools are meant.
      const said = { role: "assistant", ...first.choices[0]!.message }
      const ids = (said.tool_calls ?? []).map(({ id }) => id)
      const answers = ids.map((id) => ({ role: "tool", tool_call_id: id, content: "3" }))
      const second = completionOf(yield* post(url, { ...hello, messages: [...hello.messages, said, ...answers] }))
      assert.strictEqual(second.choices[0]?.message.content, "It is 3.")
      assert.lengthOf(performed, 1)
      const third = completionOf(yield* post(url, brought))
      assert.strictEqual(third.choices[0]?.finish_reason, "tool_calls")
      assert.lengthOf(performed, 1)
      for (const run of [1, 2, 3]) assert.deepStrictEqual(validateText(trace(run)).violations, [])
    })
  )

  it.live("may be called like the server's own way to ask for an object, and is called like any other", () =>
    Effect.gen(function* () {
      const { trace, url } = yield* serving([call("final_answer", { a: 1, b: 2 })])
      const tools = [{ type: "function", function: { ...sum, name: "final_answer" } }]
      const { choices } = completionOf(yield* post(url, { ...hello, tools }))
      assert.strictEqual(choices[0]?.finish_reason, "tool_calls")
      assert.deepInclude(choices[0]?.message.tool_calls?.[0]?.function, {
        name: "final_answer",
        arguments: '{"a":1,"b":2}'
      })
      assert.deepStrictEqual(validateText(trace(1)).violations, [])
    })
  )
})

describe("what one key has said", () => {
  const tokens = Result.getOrThrow(parse("ann:0123456789abcdef\nbob:fedcba9876543210"))
  const ann = { headers: { authorization: "Bearer 0123456789abcdef" } }
  const bob = { headers: { authorization: "Bearer fedcba9876543210" } }
  const cachedIn = (response: { readonly body: unknown; readonly text: string }) =>
    completionOf(response).usage.prompt_tokens_details.cached_tokens

  it.live("is told to no other, not even that it was said", () =>
    Effect.gen(function* () {
      const { contexts, url } = yield* serving(["Hi.", "Hi.", "Hi."], { tokens, withTools: false, sessions: 2 })
      const { model, messages } = hello
      const on = [...messages, { role: "assistant", content: "Hi." }, { role: "user", content: "And?" }]
      yield* post(url, hello, ann)
      assert.strictEqual(cachedIn(yield* post(url, { model, messages: on }, bob)), 0)
      // The one who said it has it still.
      assert.isAbove(cachedIn(yield* post(url, { model, messages: on }, ann)), 0)
      assert.lengthOf(contexts(), 2)
    })
  )
})

describe("an answer that has to be an object", () => {
  it.live("is refused by the name of the field that cannot be used", () =>
    Effect.gen(function* () {
      const { url } = yield* serving([])
      const schema = { type: "object", $ref: "https://elsewhere.example/schema" }
      const format = { type: "json_schema", json_schema: { name: "answer", schema } }
      const { body, status } = yield* post(url, { ...hello, response_format: format })
      const { error } = body as { readonly error: { readonly param: string } }
      assert.deepStrictEqual([status, error.param], [400, "response_format.json_schema.schema"])
    })
  )
})

describe("a conversation that goes on with other thinking", () => {
  it.live("is shown to the model as if it had been so from the start", () =>
    Effect.gen(function* () {
      const { contexts, url } = yield* serving(["Hi.", "Yes."], { codec: "qwen3", withTools: false, sessions: 1 })
      const { model, messages } = hello
      yield* post(url, { ...hello, reasoning_effort: "none" })
      const on = [...messages, { role: "assistant", content: "Hi." }, { role: "user", content: "And?" }]
      const response = yield* post(url, { model, messages: on, reasoning_effort: "high" })
      assert.strictEqual(completionOf(response).usage.prompt_tokens_details.cached_tokens, 0)
      assert.notInclude(contexts().at(-1)!, "<think>\n\n</think>")
    })
  )
})

describe("a temperature of 0", () => {
  it.live("may be asked for where the server samples each turn several times", () =>
    Effect.gen(function* () {
      const options = { withTools: false, gates: { candidates: 2 }, sampling: { temperature: 1 } }
      const { url } = yield* serving(["Hi.", "Hi.", "Hi."], options)
      const { choices } = completionOf(yield* post(url, { ...hello, temperature: 0 }))
      assert.strictEqual(choices[0]?.message.content, "Hi.")
    })
  )
})

describe("max_tokens", () => {
  it.live("asks for no more than the server gives, also where the server says nothing of it", () =>
    Effect.gen(function* () {
      const { trace, url } = yield* serving(["Hi.", "Hi."])
      yield* post(url, { ...hello, max_tokens: 1_000_000 })
      yield* post(url, { ...hello, max_tokens: 7 })
      const asked = (run: number) =>
        lines(trace(run)).find(({ event_type }) => event_type === "model_call_started")?.data["max_tokens"]
      assert.deepStrictEqual([asked(1), asked(2)], [512, 7])
    })
  )
})
