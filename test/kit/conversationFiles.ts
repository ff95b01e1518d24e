/** Arbitrary conversations for properties, with texts that YAML finds hard. */
import * as fc from "fast-check"
import type { Block, Conversation, Message, Role, TurnTrace } from "../../src/effects/conversation/Conversation.ts"
import type { Json, JsonObject } from "../../src/tools/JsonText.ts"

const hard = [
  "---",
  "...",
  "--- ",
  "%YAML 1.2",
  "#",
  " #",
  "# x",
  ": ",
  ":",
  "- ",
  "-",
  "?",
  "? ",
  "|",
  ">",
  "|2-",
  "&a",
  "*a",
  "!t",
  "!!str ",
  "@",
  "`",
  "yes",
  "no",
  "on",
  "off",
  "y",
  "N",
  "true",
  "False",
  "null",
  "~",
  "1e3",
  "012",
  "0x1F",
  "0o17",
  "1_000",
  "2026-11-30",
  "12:30:45",
  "-0",
  ".inf",
  ".nan",
  "=",
  "<<",
  " ",
  "  ",
  "\t",
  "\n",
  "\n\n",
  "\r\n",
  "\r",
  " \n",
  "\n ",
  "\n\t",
  "\0",
  "\x07",
  "\x1b[0m",
  "\x7f",
  "\u0085",
  "\u00a0",
  "\u2028",
  "\u2029",
  "\ufeff",
  "\ufffe",
  "😀",
  "👩‍👩‍👧",
  "é",
  "e\u0301",
  "日本語",
  "\u202e",
  "'",
  "''",
  '"',
  '\\"',
  "\\",
  "\\n",
  "{",
  "}",
  "[",
  "]",
  ",",
  "{{ x }}",
  "word",
  "A sentence with words.",
  "a: b",
  "key:",
  "<tool_call>",
  "</think>"
] as const

export const text = fc.oneof(
  { weight: 4, arbitrary: fc.array(fc.constantFrom(...hard), { maxLength: 8 }).map((parts) => parts.join("")) },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 20 }).filter((value) => value.isWellFormed()) },
  { weight: 1, arbitrary: fc.string({ unit: "grapheme", maxLength: 40 }) }
)

/** `fc.record` with the prototype that readers make. */
const plain: typeof fc.record = (fields: object) => fc.record(fields as never, { noNullPrototype: true })

const key = fc.oneof(fc.constantFrom("a", "b_c", "__proto__", "constructor", "1", "0", "true", "~", "<<", ""), text)

export const json: fc.Arbitrary<Json> = fc.letrec<{ json: Json; object: JsonObject }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 4, depthSize: "small" },
    fc.oneof(
      fc.constantFrom(null, true, false),
      text,
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.maxSafeInteger()
    ),
    fc.array(tie("json"), { maxLength: 4 }),
    tie("object")
  ),
  object: fc.dictionary(key, tie("json"), { maxKeys: 5, noNullPrototype: true })
})).json

export const object: fc.Arbitrary<JsonObject> = fc.dictionary(key, json, { maxKeys: 4, noNullPrototype: true })

const name = fc
  .oneof(fc.constantFrom("call_1_0", "add", "1", "yes"), text)
  .map((value) => (value.trim() === "" ? "x" : value))

const optional = <A>(key: string, value: fc.Arbitrary<A>) =>
  fc.oneof(
    fc.constant({}),
    value.map((inner) => ({ [key]: inner }))
  )

const merged = <A>(...parts: ReadonlyArray<fc.Arbitrary<object>>): fc.Arbitrary<A> =>
  fc.tuple(...parts).map((all) => Object.assign({}, ...all) as A)

const count = fc.nat()

const trace: fc.Arbitrary<TurnTrace> = plain({
  span_id: text,
  model: text,
  tokens: merged<TurnTrace["tokens"]>(
    plain({ input: count, output: count }),
    optional("cache_hit", count),
    optional("cache_write", count)
  ),
  latency_ms: fc.oneof(
    count,
    fc.double({ min: 0, max: 1e9, noNaN: true }).map((value) => value + 0)
  ),
  events: fc.array(plain({ name, attributes: object }), { maxLength: 3 })
})

const textBlock = plain({ type: fc.constant("text" as const), text })

const blocks: Record<Role, fc.Arbitrary<Block>> = {
  system: textBlock,
  user: fc.oneof(textBlock, plain({ type: fc.constant("image" as const), source: object })),
  assistant: fc.oneof(
    textBlock,
    plain({ type: fc.constant("tool_use" as const), id: name, name, input: object }),
    merged<Block>(plain({ type: fc.constant("thinking" as const), thinking: text }), optional("signature", text))
  ),
  tool: merged<Block>(
    plain({ type: fc.constant("tool_result" as const), tool_use_id: name, content: text }),
    optional("is_error", fc.constant(true))
  )
}

const message: fc.Arbitrary<Message> = fc
  .constantFrom<ReadonlyArray<Role>[number]>("system", "user", "assistant", "tool")
  .chain((role) => {
    const list = fc.array(blocks[role], { maxLength: 4 })
    const content: fc.Arbitrary<object> = plain({ content: role === "tool" ? list : fc.oneof(text, list) })
    const cache = optional("cache", fc.constant(true))
    const whole = merged<Message>(
      fc.constant({ role }),
      content,
      cache,
      role === "assistant" ? optional("trace", trace) : fc.constant({})
    )
    return role === "assistant" ? fc.oneof(whole, merged<Message>(fc.constant({ role }), cache)) : whole
  })

const tools = fc.uniqueArray(
  plain({
    name: fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/),
    description: text,
    input_schema: object.map((schema) => ({ ...schema, type: "object" }))
  }),
  { minLength: 1, maxLength: 3, selector: (tool) => tool.name }
)

/** Whatever the format can hold, in its normal form: what is empty or false is absent. */
export const conversation: fc.Arbitrary<Conversation> = plain({
  meta: merged<Conversation["meta"]>(
    plain({ model: name }),
    optional(
      "debug",
      fc.oneof(
        fc.constant(true),
        object.filter((value) => Object.keys(value).length > 0)
      )
    ),
    optional("assembly", text),
    optional("binding", fc.dictionary(key, text, { minKeys: 1, maxKeys: 3, noNullPrototype: true })),
    optional("tools", tools)
  ),
  session: fc.array(message, { maxLength: 6 })
})
