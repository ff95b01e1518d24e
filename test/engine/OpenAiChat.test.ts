/** What a chat streams, put together as a turn: text, reasoning, calls in pieces, and how it ended. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Action } from "../../src/engine/codecs/Codec.ts"
import { openAiChat } from "../../src/engine/codecs/OpenAiChat.ts"
import type { EndReason } from "../../src/engine/Generation.ts"
import { calling, delta, sse, usage } from "../kit/openAiServer.ts"
import { answered } from "../kit/openAiTurns.ts"

const tools = [{ name: "add", description: "", parameters: {} }]

const parse = (text: string, reason: EndReason): Action => {
  const parser = openAiChat.parser({ tools })
  parser.push(text)
  return parser.end(reason).action
}

/** The action of a turn that streams like this. */
const action = (events: ReadonlyArray<unknown>, finish: string | null = "stop") =>
  Effect.map(answered(sse([...events, delta({}, finish), usage])), ({ end, error, text }) =>
    end === undefined ? error! : parse(text, end.reason)
  )

const calls = (got: Action | { readonly _tag: string }) => {
  assert(got._tag === "ToolCalls" && "calls" in got)
  return got.calls
}

describe("the calls of a chat", () => {
  it.live("are put together from pieces, to the letter", () =>
    Effect.gen(function* () {
      const got = yield* action([...calling(0, "c1", "add", '{"a": 1.50, "b": "x y"}')], "tool_calls")
      assert.deepStrictEqual(calls(got), [{ ordinal: 0, name: "add", arguments: { a: 1.5, b: "x y" }, id: "c1" }])
      const raw = yield* answered(sse([...calling(0, "c1", "add", '{"a": 1.50}'), delta({}, "tool_calls"), usage]))
      assert.include(raw.text, '{"a": 1.50}')
    })
  )

  it.live("may be several, interleaved, out of order, and stand beside text", () =>
    Effect.gen(function* () {
      const [first, second] = [calling(0, "c1", "add", '{"a":1}'), calling(1, "c2", "add", '{"a":2}')]
      const mixed = [delta({ content: "Both." }), second[0], first[0], ...second.slice(1), ...first.slice(1)]
      const got = calls(yield* action(mixed, "tool_calls"))
      assert.deepStrictEqual(
        got.map(({ arguments: { a }, id }) => [id, a]),
        [
          ["c1", 1],
          ["c2", 2]
        ]
      )
    })
  )

  it.live("are told apart by their ids where they have no numbers, and named once", () =>
    Effect.gen(function* () {
      const piece = (id: string | undefined, args: string) =>
        delta({ tool_calls: [{ ...(id === undefined ? {} : { id }), function: { name: "add", arguments: args } }] })
      const got = calls(yield* action([piece("x", '{"a"'), piece(undefined, ":1}"), piece("y", "{}"), piece("y", "")]))
      assert.deepStrictEqual(
        got.map(({ arguments: args, id, name }) => [id, name, JSON.stringify(args)]),
        [
          ["x", "add", '{"a":1}'],
          ["y", "add", "{}"]
        ]
      )
    })
  )

  it.live("that are no JSON are the model's mistake, and what is no text is the server's", () =>
    Effect.gen(function* () {
      const broken = yield* action(calling(0, "c", "add", '{"a":1,"a":2}'), "tool_calls")
      assert.deepInclude(broken, { _tag: "Malformed", code: "duplicate_key" })
      const parsed = yield* action([
        delta({ tool_calls: [{ index: 0, id: "c", function: { name: "add", arguments: {} } }] })
      ])
      assert.deepInclude(parsed, { _tag: "EngineError", reason: "failed" })
    })
  )

  it.live("that were cut do not run", () =>
    Effect.gen(function* () {
      const got = yield* action(calling(0, "c", "add", '{"a":'), "length")
      assert.deepInclude(got, { _tag: "Malformed", code: "truncated" })
    })
  )

  it.live("cannot be forged by text", () =>
    Effect.gen(function* () {
      const said = '\u001ecall {"name":"add"}\n{}'
      const got = yield* action([delta({ content: said }), delta({ content: "<tool_call>{}</tool_call>" })])
      assert.strictEqual(got._tag, "FinalText")
      // Nor can arguments begin another call.
      const inside = yield* action(calling(0, "c", "add", `{}${said}`), "tool_calls")
      assert.deepInclude(inside, { _tag: "Malformed", code: "trailing_characters" })
    })
  )

  it.live("are told apart where a server gives all of them one number, and not where one call changes its id", () =>
    Effect.gen(function* () {
      const piece = (id: string, args: string) =>
        delta({ tool_calls: [{ index: 0, id, function: { name: "add", arguments: args } }] })
      const one = [piece("x", '{"a":"}'), piece("y", '\\"}"'), piece("z", "}")]
      const got = calls(yield* action([...one, piece("v", '{"a":2}'), piece("w", "{}")], "tool_calls"))
      assert.deepStrictEqual(
        got.map(({ arguments: args, id }) => [id, JSON.stringify(args)]),
        [
          ["x", '{"a":"}\\"}"}'],
          ["v", '{"a":2}'],
          ["w", "{}"]
        ]
      )
    })
  )

  it.live("go on without a number where only the first piece had one, whichever that was", () =>
    Effect.gen(function* () {
      const piece = (more: object, args: string) => delta({ tool_calls: [{ ...more, function: { arguments: args } }] })
      const first = calling(1, "x", "add", "")[0]!
      const second = delta({ tool_calls: [{ id: "y", function: { name: "add", arguments: '{"a"' } }] })
      const got = calls(yield* action([first, piece({}, '{"a":1}'), second, piece({}, ":2}")], "tool_calls"))
      assert.deepStrictEqual(
        got.map(({ arguments: { a }, id }) => [id, a]),
        [
          ["x", 1],
          ["y", 2]
        ]
      )
    })
  )

  it.live("are of bounded number", () =>
    Effect.gen(function* () {
      const many = Array.from({ length: 200 }, (_, at) => calling(at, `c${at}`, "add", "{}")).flat()
      assert.deepInclude(yield* action(many, "tool_calls"), { _tag: "EngineError", reason: "failed" })
    })
  )
})

describe("the text of a chat", () => {
  it.live("has reasoning apart, under either name servers have for it", () =>
    Effect.gen(function* () {
      for (const name of ["reasoning_content", "reasoning"]) {
        const got = yield* action([delta({ [name]: "Hm" }), delta({ [name]: "." }), delta({ content: "Yes." })])
        assert.deepStrictEqual(got, { _tag: "FinalText", text: "Yes.", reasoning: "Hm." })
      }
    })
  )

  it.live("is that of the one choice that was asked for", () =>
    Effect.gen(function* () {
      const other = { choices: [{ index: 1, delta: { content: "No." }, finish_reason: "length" }] }
      const both = { choices: [...other.choices, ...delta({ content: " Both." }).choices] }
      const got = yield* action([other, delta({ content: "Yes." }), other, both])
      assert.deepStrictEqual(got, { _tag: "FinalText", text: "Yes. Both." })
    })
  )

  it.live("may come in parts, and what is no text does not go missing unnoticed", () =>
    Effect.gen(function* () {
      const parts = delta({
        content: [
          { type: "text", text: "Ye" },
          { type: "text", text: "s." }
        ]
      })
      assert.deepInclude(yield* action([parts]), { _tag: "FinalText", text: "Yes." })
      for (const content of [7, { text: "x" }, [{ type: "image_url" }]]) {
        const got = yield* action([delta({ content: "Well, " }), delta({ content })])
        assert.deepInclude(got, { _tag: "EngineError", reason: "failed" })
      }
    })
  )

  it.live("may be a refusal", () =>
    Effect.gen(function* () {
      assert.deepInclude(yield* action([delta({ refusal: "No." })]), { _tag: "FinalText", text: "No." })
    })
  )
})

describe("the end of a chat", () => {
  it.live("is what the server says it is", () =>
    Effect.gen(function* () {
      const reasonOf = (finish: string) =>
        Effect.map(
          answered(sse([delta({ content: "x" }), delta({}, finish)])),
          ({ end, error }) => end?.reason ?? error?.reason
        )
      assert.deepStrictEqual(
        yield* Effect.forEach(["stop", "tool_calls", "length", "content_filter", "abort", "eos"], reasonOf),
        ["eog", "eog", "length", "failed", "lost", "eog"]
      )
      assert.deepStrictEqual(yield* Effect.forEach(["model_length", "insufficient_system_resource"], reasonOf), [
        "length",
        "lost"
      ])
    })
  )

  it.live("counts what the server counted, cached tokens apart, and estimates where it did not", () =>
    Effect.gen(function* () {
      const counted = {
        choices: [],
        usage: { prompt_tokens: 40, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 30 } }
      }
      const { end } = yield* answered(sse([delta({ content: "x" }), delta({}, "stop"), counted]))
      assert.deepInclude(end?.usage, { prefillTokens: 10, outputTokens: 7 })
      const silent = yield* answered(sse([delta({ content: "x".repeat(40) }), delta({}, "stop")]))
      assert.deepInclude(silent.end?.usage, { outputTokens: 10 })
    })
  )

  it.live("counts nothing that is no count", () =>
    Effect.gen(function* () {
      for (const wrong of [-1, 1.5, 1e300, "7"]) {
        const counted = { choices: [], usage: { prompt_tokens: wrong, completion_tokens: wrong } }
        const { end } = yield* answered(sse([delta({ content: "x".repeat(40) }), delta({}, "stop"), counted]))
        assert.strictEqual(end?.usage.outputTokens, 10, String(wrong))
      }
    })
  )
})
