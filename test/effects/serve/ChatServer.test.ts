import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { validateText } from "../../../src/effects/trace/TraceValidator.ts"
import { call, calls } from "../../kit/script.ts"
import { hello, post, serving } from "../../kit/serve.ts"

const assertValid = (trace: string) => {
  const { complete, ok, violations } = validateText(trace)
  assert.deepStrictEqual({ complete, ok, violations }, { complete: true, ok: true, violations: [] })
}

const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Weather of a city.",
    parameters: {
      type: "object",
      properties: { city: { type: "string" } },
      required: ["city"],
      additionalProperties: false
    }
  }
} as const

const ask = (content: string) => ({ role: "user", content }) as const

describe("the openai client", () => {
  it.live("gets an answer, and the run that made it is on record under the name in the header", () =>
    Effect.gen(function* () {
      const { client, trace } = yield* serving(["Hello there."])
      const { data, response } = yield* Effect.promise(() => client.chat.completions.create(hello).withResponse())
      assert.strictEqual(data.choices[0]?.message.content, "Hello there.")
      assert.strictEqual(data.choices[0]?.finish_reason, "stop")
      assert.strictEqual(data.object, "chat.completion")
      assert.strictEqual(data.model, "test-model")
      assert.strictEqual(data.id, "chatcmpl-run-1")
      assert.strictEqual(response.headers.get("x-writ-run-id"), "run-1")
      assert.match(response.headers.get("x-request-id") ?? "", /^req-[0-9a-f]{8}$/)
      const usage = data.usage!
      assert.strictEqual(usage.completion_tokens, 3)
      assert.isAbove(usage.prompt_tokens, 0)
      assert.strictEqual(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)
      assertValid(trace(1))
    })
  )

  it.live("gets an answer for which the server ran a tool, and is shown nothing of the call", () =>
    Effect.gen(function* () {
      const { client, performed, trace } = yield* serving([
        `Let me see.\n${call("add", { a: 17, b: 25 })}`,
        "It is 42."
      ])
      const data = yield* Effect.promise(() => client.chat.completions.create(hello))
      assert.strictEqual(data.choices[0]?.message.content, "It is 42.")
      assert.isUndefined(data.choices[0]?.message.tool_calls)
      assert.deepStrictEqual(performed, ['add:{"a":17,"b":25}'])
      assertValid(trace(1))
    })
  )

  it.live("streams the same answer, and of a turn that becomes a call nothing is sent", () =>
    Effect.gen(function* () {
      const turns = [`Let me see.\n${call("add", { a: 17, b: 25 })}`, { text: ["It ", "is ", "42."] }]
      const { client, trace } = yield* serving(turns)
      const chunks = yield* Effect.promise(async () => {
        const stream = await client.chat.completions.create({
          ...hello,
          stream: true,
          stream_options: { include_usage: true }
        })
        const seen = []
        for await (const chunk of stream) seen.push(chunk)
        return seen
      })
      assert.deepStrictEqual(chunks[0]?.choices[0]?.delta, { role: "assistant", content: "" })
      const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("")
      assert.strictEqual(text, "It is 42.")
      assert.deepStrictEqual(
        chunks
          .flatMap(({ choices }) => choices.map((choice) => choice.finish_reason))
          .filter((reason) => reason !== null),
        ["stop"]
      )
      const last = chunks.at(-1)!
      assert.deepStrictEqual(last.choices, [])
      assert.isAbove(last.usage?.completion_tokens ?? 0, 0)
      assert.isTrue(chunks.slice(0, -1).every((chunk) => chunk.usage === null))
      assert.isTrue(chunks.every((chunk) => chunk.object === "chat.completion.chunk" && chunk.id === "chatcmpl-run-1"))
      assertValid(trace(1))
    })
  )

  it.live("performs calls of its own tools, and goes on with what they came to", () =>
    Effect.gen(function* () {
      const turns = [
        calls(["get_weather", { city: "Paris" }], ["get_weather", { city: "Oslo" }]),
        "Paris is warm, Oslo is cold."
      ]
      const { client, contexts, performed, trace } = yield* serving(turns)
      const question = { model: "test-model", messages: [ask("How is the weather?")], tools: [weather] }
      const first = yield* Effect.promise(() => client.chat.completions.create(question))
      const choice = first.choices[0]!
      assert.strictEqual(choice.finish_reason, "tool_calls")
      assert.strictEqual(choice.message.content, null)
      const asked = choice.message.tool_calls ?? []
      assert.deepStrictEqual(
        asked.map((one) => one.type === "function" && [one.function.name, JSON.parse(one.function.arguments)]),
        [
          ["get_weather", { city: "Paris" }],
          ["get_weather", { city: "Oslo" }]
        ]
      )
      assert.lengthOf(new Set(asked.map(({ id }) => id)), 2)
      assertValid(trace(1))
      // Answers in another order than the calls.
      const answers = [
        { role: "tool", tool_call_id: asked[1]!.id, content: "cold" },
        { role: "tool", tool_call_id: asked[0]!.id, content: "warm" }
      ] as const
      const second = yield* Effect.promise(() =>
        client.chat.completions.create({ ...question, messages: [...question.messages, choice.message, ...answers] })
      )
      assert.strictEqual(second.choices[0]?.message.content, "Paris is warm, Oslo is cold.")
      assert.isAbove(second.usage?.prompt_tokens_details?.cached_tokens ?? 0, 0)
      assertValid(trace(2))
      assert.lengthOf(contexts(), 1)
      const context = contexts()[0]!
      assert.isBelow(context.indexOf("warm"), context.indexOf("cold"))
      assert.deepStrictEqual(performed, [])
    })
  )

  it.live("streams calls of its own tools in the form its helpers put together", () =>
    Effect.gen(function* () {
      const { client } = yield* serving([`One moment.\n${call("get_weather", { city: "Paris" })}`])
      const final = yield* Effect.promise(() =>
        client.chat.completions
          .stream({ model: "test-model", messages: [ask("Weather?")], tools: [weather] })
          .finalChatCompletion()
      )
      const { finish_reason, message } = final.choices[0]!
      assert.strictEqual(finish_reason, "tool_calls")
      assert.strictEqual(message.content, "One moment.\n")
      const [one] = message.tool_calls ?? []
      assert.strictEqual(one?.type === "function" && one.function.arguments, '{"city":"Paris"}')
    })
  )

  it.live("is not given a call that does not fit its schema: the model is told, and calls again", () =>
    Effect.gen(function* () {
      const turns = [
        calls(["get_weather", { city: "Paris" }], ["get_weather", { town: "Oslo" }]),
        call("get_weather", { city: "Oslo" })
      ]
      const { client, trace } = yield* serving(turns)
      const data = yield* Effect.promise(() =>
        client.chat.completions.create({ model: "test-model", messages: [ask("Weather?")], tools: [weather] })
      )
      const [one, more] = data.choices[0]!.message.tool_calls ?? []
      assert.isUndefined(more)
      assert.strictEqual(one?.type === "function" && one.function.arguments, '{"city":"Oslo"}')
      assertValid(trace(1))
    })
  )

  it.live("gets the object it asked for, from a call or written out, and nothing else for one", () =>
    Effect.gen(function* () {
      const turns = [
        call("add", { a: 1, b: 2 }),
        calls(["final_answer", { sum: "3" }]),
        calls(["final_answer", { sum: 3 }]),
        '{"sum": 3}',
        "It is 3."
      ]
      const { client, performed, trace } = yield* serving(turns)
      const schema = { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] }
      const format = { type: "json_schema", json_schema: { name: "sum", strict: true, schema } } as const
      const asking = () => client.chat.completions.create({ ...hello, response_format: format })
      const one = yield* Effect.promise(asking)
      assert.deepStrictEqual([one.choices[0]?.message.content, one.choices[0]?.finish_reason], ['{"sum":3}', "stop"])
      assert.isUndefined(one.choices[0]?.message.tool_calls)
      assert.deepStrictEqual(performed, ['add:{"a":1,"b":2}'])
      const two = yield* Effect.promise(asking)
      assert.strictEqual(two.choices[0]?.message.content, '{"sum": 3}')
      const three = yield* Effect.promise(() => asking().catch((error) => error))
      assert.deepStrictEqual([three.status, three.code], [422, "answer_not_in_form"])
      for (const run of [1, 2, 3]) assertValid(trace(run))
    })
  )

  it.live("lists the model, finds it by name, and is told of one that is not there", () =>
    Effect.gen(function* () {
      const { client } = yield* serving([])
      const listed = yield* Effect.promise(async () => (await client.models.list()).data.map(({ id }) => id))
      assert.deepStrictEqual(listed, ["test-model"])
      assert.strictEqual((yield* Effect.promise(() => client.models.retrieve("test-model"))).owned_by, "writ")
      const missing = yield* Effect.promise(() =>
        client.chat.completions.create({ ...hello, model: "gpt-9" }).catch((error) => error)
      )
      assert.strictEqual(missing.status, 404)
      assert.strictEqual(missing.code, "model_not_found")
    })
  )

  it.live("is told of a tool whose schema cannot be used, and waits for no pattern of one that can", () =>
    Effect.gen(function* () {
      const turns = [call("slow", { text: `${"a".repeat(40)}b` }), "I cannot."]
      const { client, trace } = yield* serving(turns)
      const asking = (name: string, parameters: Record<string, unknown>) =>
        client.chat.completions.create({
          model: "test-model",
          messages: [ask("Do it.")],
          tools: [{ type: "function", function: { name, parameters } }]
        })
      const error = yield* Effect.promise(() => asking("bad", { type: "no such type" }).catch((error) => error))
      assert.deepStrictEqual([error.status, error.param], [400, "tools[0].function.parameters"])
      const pattern = { type: "object", properties: { text: { type: "string", pattern: "^(a+)+$" } } }
      const data = yield* Effect.promise(() => asking("slow", pattern))
      assert.strictEqual(data.choices[0]?.message.content, "I cannot.")
      assertValid(trace(1))
    })
  )

  it.live("gets errors as its own kinds", () =>
    Effect.gen(function* () {
      const { client, url } = yield* serving([])
      const error = yield* Effect.promise(() =>
        client.chat.completions.create({ ...hello, n: 2 }).catch((error) => error)
      )
      assert.strictEqual(error.constructor.name, "BadRequestError")
      assert.strictEqual(error.param, "n")
      assert.strictEqual(error.code, "unsupported_parameter")
      const { headers } = yield* post(url, { ...hello, n: 2 })
      assert.strictEqual(headers.get("x-should-retry"), "false")
    })
  )
})

describe("a conversation", () => {
  it.live("goes on in the session that holds it, and only what is new is evaluated", () =>
    Effect.gen(function* () {
      const { contexts, trace, url } = yield* serving(["Hello.", "Fine."])
      yield* post(url, hello)
      const again = yield* post(url, {
        ...hello,
        messages: [...hello.messages, { role: "assistant", content: "Hello." }, ask("How are you?")]
      })
      const { choices, usage } = again.body as never as {
        choices: ReadonlyArray<{ message: { content: string } }>
        usage: { prompt_tokens: number; prompt_tokens_details: { cached_tokens: number } }
      }
      assert.strictEqual(choices[0]?.message.content, "Fine.")
      assert.lengthOf(contexts(), 1)
      assert.isAbove(usage.prompt_tokens_details.cached_tokens, 0)
      assert.isBelow(usage.prompt_tokens_details.cached_tokens, usage.prompt_tokens)
      assertValid(trace(2))
    })
  )

  it.live("that no session holds is evaluated from what the client says of it", () =>
    Effect.gen(function* () {
      const { contexts, trace, url } = yield* serving(["Fine."])
      yield* post(url, {
        ...hello,
        messages: [
          { role: "system", content: "Be kind." },
          ask("hello"),
          { role: "assistant", content: "Hello." },
          ask("How are you?")
        ]
      })
      const context = contexts()[0]!
      const order = ["Be kind.", "hello", "Hello.", "How are you?", "Fine."].map((text) => context.indexOf(text))
      assert.deepStrictEqual(
        order,
        order.toSorted((a, b) => a - b)
      )
      assert.isAbove(order[0]!, -1)
      assertValid(trace(1))
      assert.include(trace(1), "How are you?")
    })
  )

  it.live("holds nothing of the calls that led to an answer: a model is shown what the request says", () =>
    Effect.gen(function* () {
      const { contexts, trace, url } = yield* serving([call("add", { a: 1, b: 2 }), "It is 3.", "Yes."])
      yield* post(url, hello)
      assert.notInclude(contexts()[0]!, "tool_response")
      yield* post(url, {
        ...hello,
        messages: [...hello.messages, { role: "assistant", content: "It is 3." }, ask("Sure?")]
      })
      const context = contexts()[0]!
      assert.lengthOf(contexts(), 1)
      assert.notInclude(context, "tool_response")
      assert.include(context, "It is 3.")
      assertValid(trace(1))
      assertValid(trace(2))
    })
  )

  it.live("that is asked for again is answered again, from its last message on", () =>
    Effect.gen(function* () {
      const { contexts, trace, url } = yield* serving([call("add", { a: 1, b: 2 }), "It is 3.", "Three."])
      yield* post(url, hello)
      yield* post(url, hello)
      assert.lengthOf(contexts(), 1)
      assert.lengthOf(contexts()[0]!.split("hello"), 2)
      assertValid(trace(2))
    })
  )
})
