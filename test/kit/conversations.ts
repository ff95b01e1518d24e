/** Arbitrary conversations of the shape a run produces: user turns, each followed by rounds of calls and an answer. */
import * as fc from "fast-check"
import type { Message } from "../../src/engine/Message.ts"
import type { Json, JsonObject } from "../../src/tools/JsonText.ts"
import type { ToolSpec } from "../../src/tools/ToolCall.ts"

/** Text with everything that has gone wrong before: quotes, markup, other scripts, newlines, nothing at all. */
export const words: fc.Arbitrary<string> = fc
  .oneof(
    fc.string({ maxLength: 20 }),
    fc.constantFrom(
      "",
      "Hello.",
      'He said "no" & left <b>',
      "日本語 🇯🇵 é",
      "a\nb\n\n c",
      '{"a": 1}',
      "</tool_call>",
      "<|im_end|>",
      "  spaced  ",
      "C:\\dir\\x"
    )
  )
  .filter((text) => text.isWellFormed())

/** Names that are no integers (a JavaScript object would move those to the front). */
export const keys: fc.Arbitrary<string> = fc.constantFrom("a", "b", "city", "größe", "with space", "__proto__", 'x"y')

/** Values whose numbers print alike in Python and JavaScript. */
export const json: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    words,
    fc.integer(),
    fc.constantFrom(0.5, -1.25, 1e-3),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(keys, tie("value"), { maxKeys: 3, noNullPrototype: true }) as fc.Arbitrary<JsonObject>
  )
})).value

export const args: fc.Arbitrary<JsonObject> = fc.dictionary(keys, json, {
  maxKeys: 3,
  noNullPrototype: true
}) as fc.Arbitrary<JsonObject>

export const toolName: fc.Arbitrary<string> = fc.constantFrom("get_weather", "add", "read-file", "x1")

export const toolSpec: fc.Arbitrary<ToolSpec> = fc.record({
  name: toolName,
  description: words,
  parameters: fc.record({ type: fc.constant("object"), properties: args, required: fc.constant(["city"]) })
})

const round: fc.Arbitrary<ReadonlyArray<Message>> = fc
  .record({
    content: words,
    calls: fc.array(fc.record({ name: toolName, arguments: args }), { minLength: 1, maxLength: 2 }),
    results: fc.tuple(words, words)
  })
  .map(({ calls, content, results }) => [
    { role: "assistant", content, calls },
    ...calls.map((call, index): Message => ({ role: "tool", name: call.name, content: results[index]! }))
  ])

const exchange: fc.Arbitrary<ReadonlyArray<Message>> = fc
  .record({
    question: words,
    rounds: fc.array(round, { maxLength: 2 }),
    answer: words
  })
  .map(({ answer, question, rounds }) => [
    { role: "user", content: question },
    ...rounds.flat(),
    { role: "assistant", content: answer }
  ])

export interface Conversation {
  readonly messages: ReadonlyArray<Message>
  readonly tools: ReadonlyArray<ToolSpec>
}

export const conversation: fc.Arbitrary<Conversation> = fc
  .record({
    system: fc.option(words, { nil: undefined }),
    exchanges: fc.array(exchange, { minLength: 1, maxLength: 2 }),
    /** How much of the end is still to come: the prompt may be wanted after any message. */
    cut: fc.nat({ max: 3 }),
    tools: fc.uniqueArray(toolSpec, { maxLength: 3, selector: (spec) => spec.name })
  })
  .map(({ cut, exchanges, system, tools }) => {
    const turns = exchanges.flat()
    const messages = turns.slice(0, Math.max(1, turns.length - cut))
    return { messages: system === undefined ? messages : [{ role: "system", content: system }, ...messages], tools }
  })
