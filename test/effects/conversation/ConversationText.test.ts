import { deepStrictEqual } from "node:assert"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { Conversation, Message } from "../../../src/effects/conversation/Conversation.ts"
import * as ConversationText from "../../../src/effects/conversation/ConversationText.ts"
import type { Json } from "../../../src/tools/JsonText.ts"
import * as Arbitrary from "../../kit/conversationFiles.ts"

const parsed = (text: string): Conversation => Result.getOrThrow(ConversationText.parse(text, "case.yaml"))

const updated = (before: string, conversation: Conversation): string =>
  Result.getOrThrow(ConversationText.update(before, conversation))

const saying = (content: string): Conversation => ({ meta: { model: "noop" }, session: [{ role: "user", content }] })

const calling = (input: Record<string, Json>): Conversation => ({
  meta: { model: "noop" },
  session: [{ role: "assistant", content: [{ type: "tool_use", id: "call_1_0", name: "add", input }] }]
})

const shape = `---
model: noop
binding: { case: sum }
tools:
  - { name: add, description: Adds two integers., input_schema: { type: object, properties: { a: { type: integer }, b: { type: integer } }, required: [a, b] } }
---
role: user
content: What is 2 plus 3?
---
role: assistant
content:
  - { type: tool_use, id: call_1_0, name: add, input: { a: 2, b: 3 } }
---
role: tool
content:
  - { type: tool_result, tool_use_id: call_1_0, content: "5" }
---
role: assistant
`

describe("a conversation as text", () => {
  it("comes back as it was", () => {
    fc.assert(
      fc.property(Arbitrary.conversation, (conversation) => {
        deepStrictEqual(parsed(ConversationText.emit(conversation)), conversation)
      }),
      { numRuns: 300 }
    )
  })

  it("has one text, however often it is read and written", () => {
    fc.assert(
      fc.property(Arbitrary.conversation, (conversation) => {
        const text = ConversationText.emit(conversation)
        expect(ConversationText.emit(parsed(text))).toBe(text)
      }),
      { numRuns: 200 }
    )
  })

  it("is what the format's own example says", () => {
    const { meta, session } = parsed(shape)
    expect(meta.model).toBe("noop")
    expect(meta.binding).toEqual({ case: "sum" })
    expect(meta.tools?.map(({ name }) => name)).toEqual(["add"])
    expect(session).toEqual([
      { role: "user", content: "What is 2 plus 3?" },
      { role: "assistant", content: [{ type: "tool_use", id: "call_1_0", name: "add", input: { a: 2, b: 3 } }] },
      { role: "tool", content: [{ type: "tool_result", tool_use_id: "call_1_0", content: "5" }] },
      { role: "assistant" }
    ])
  })

  it("is seen by assertions as meta and session and nothing else", () => {
    expect(Object.keys(parsed(shape))).toEqual(["meta", "session"])
  })

  it("is written with its keys in the order of the format, what is empty or false left out, and texts of lines as lines", () => {
    const conversation: Conversation = {
      session: [
        { cache: false, content: "a\nb\n", role: "user" },
        {
          trace: {
            events: [{ attributes: { id: "c1", executed: true }, name: "call_settled" }],
            latency_ms: 12.5,
            tokens: { output: 3, input: 10, cache_write: 0 },
            model: "noop",
            span_id: "noop-0"
          },
          cache: true,
          content: [
            { thinking: "hm", type: "thinking", signature: "s" },
            { input: {}, name: "add", id: "c1", type: "tool_use" }
          ],
          role: "assistant"
        },
        { role: "tool", content: [{ is_error: false, content: "  five\n", tool_use_id: "c1", type: "tool_result" }] }
      ],
      meta: { tools: [], binding: {}, assembly: "sums", debug: false, model: "noop" }
    }
    expect(ConversationText.emit(conversation)).toBe(`---
model: noop
assembly: sums
---
role: user
content: |
  a
  b
---
role: assistant
content:
  - type: thinking
    thinking: hm
    signature: s
  - type: tool_use
    id: c1
    name: add
    input: {}
cache: true
trace:
  span_id: noop-0
  model: noop
  tokens: { input: 10, output: 3, cache_write: 0 }
  latency_ms: 12.5
  events:
    - name: call_settled
      attributes: { id: c1, executed: true }
---
role: tool
content:
  - type: tool_result
    tool_use_id: c1
    content: |2
        five
`)
  })

  const texts: Record<string, string> = {
    "a line ---": "before\n---\nrole: user\n---\nafter",
    "a line ...": "before\n...\nafter\n",
    "only ---": "---",
    yes: "yes",
    on: "on",
    "1e3": "1e3",
    "~": "~",
    "012": "012",
    "a date": "2026-11-30",
    "a time": "12:30:45",
    null: "null",
    nothing: "",
    "trailing spaces": "a  \nb   ",
    "lines of spaces": "a\n   \n\t\nb\n  ",
    "leading spaces": "    indented\n  less\n",
    "CR LF": "a\r\nb\r\n",
    CR: "a\rb",
    tabs: "\tx\n\ty\n",
    "newlines at both ends": "\n\na\n\n\n",
    "only newlines": "\n\n\n",
    emoji: "👩‍👩‍👧 😀",
    "a byte order mark": "\ufeffa\ufeff",
    "line separators": "a\u2028b\u0085c",
    NUL: "a\0b",
    quotes: `"a" 'b' \\n`,
    comments: "a # b",
    "a mapping": "key: value\n- item\n? x\n",
    "an alias and a tag": "*a &b !c",
    "a template": "{{ x }} {% y %}",
    "chat markup": "<tool_call>\n{}\n</tool_call><|im_end|>"
  }
  for (const [name, text] of Object.entries(texts)) {
    it(`keeps ${name} as content, as a result and as an argument`, () => {
      const conversations = [
        saying(text),
        calling({ text, [text]: [text, { deep: text }] }),
        {
          meta: { model: "noop" },
          session: [
            { role: "tool" as const, content: [{ type: "tool_result" as const, tool_use_id: "a", content: text }] }
          ]
        }
      ]
      for (const conversation of conversations) {
        const written = ConversationText.emit(conversation)
        deepStrictEqual(parsed(written), conversation)
        expect(ConversationText.emit(parsed(written))).toBe(written)
      }
    })
  }

  it("keeps contents of many megabytes, and tells documents apart in them", () => {
    const content = `${"A line: with # things, and a second sentence.\n---\n".repeat(100_000)}end`
    expect(content.length).toBeGreaterThan(5_000_000)
    const text = ConversationText.emit(saying(content))
    expect(parsed(text).session[0]?.content === content).toBe(true)
  })

  it("keeps numbers of every size, and a zero's sign", () => {
    const numbers = [0, -0, 1.5, 1e21, 1e300, 5e-324, 2 ** 53, -1e20, 123456789012, 9007199254740991]
    deepStrictEqual(parsed(ConversationText.emit(calling({ numbers }))), calling({ numbers }))
  })

  it("keeps __proto__, empty and very long keys", () => {
    const input = JSON.parse(`{"__proto__": {"x": 1}, "": 1, "${"k".repeat(3000)}": {"a": [1]}}`)
    deepStrictEqual(parsed(ConversationText.emit(calling(input))), calling(input))
  })

  it("is refused where it has no text, by place", () => {
    const nested = (depth: number): Json => (depth === 0 ? 1 : { a: nested(depth - 1) })
    const refused: ReadonlyArray<readonly [Conversation, RegExp]> = [
      [saying("half \ud83d of it"), /^message 0, content: lone surrogate/],
      [calling({ "\udc00": 1 }), /^message 0, content\[0\]\.input: lone surrogate/],
      [calling({ n: Number.NaN }), /^message 0, content\[0\]\.input\.n: NaN/],
      [calling({ a: nested(200) }), /^message 0: nested deeper than 100 levels/]
    ]
    for (const [conversation, reason] of refused) expect(() => ConversationText.emit(conversation)).toThrow(reason)
  })

  it("is written exactly when it can be read again, also at the deepest level", () => {
    const nested = (depth: number): Json =>
      depth === 0 ? 1 : depth % 3 === 0 ? [nested(depth - 1)] : { a: nested(depth - 1) }
    const readable = Array.from({ length: 12 }, (_, extra) => {
      const text = ConversationText.write(calling({ a: nested(90 + extra) }))
      return Result.isSuccess(text) && Result.isSuccess(ConversationText.parse(text.success))
    })
    const writable = Array.from({ length: 12 }, (_, extra) =>
      Result.isSuccess(ConversationText.write(calling({ a: nested(90 + extra) })))
    )
    expect(writable).toEqual(readable)
    expect(readable[0]).toBe(true)
    expect(readable.at(-1)).toBe(false)
  })
})

describe("a text that is no conversation", () => {
  const meta = "---\nmodel: noop\n"
  const answer = `${meta}---\nrole: assistant\ncontent:\n`
  const cases: Record<string, readonly [string, RegExp]> = {
    "nothing at all": ["", /there is nothing in it: a conversation begins with ---/],
    "only a comment": ["# later\n", /there is nothing in it/],
    "a message first": [
      "---\nrole: user\ncontent: hi\n",
      /meta \(line 2\): this is a message: the first document is the meta/
    ],
    "a list first": ["---\n- a\n", /meta.*: the first document is the meta, a map with the model; found a list/],
    "no model": ["---\nassembly: a\n", /meta \(line 2\): model is missing/],
    "an empty model": ['---\nmodel: ""\n', /meta \(line 2\), model: model is empty/],
    "a model that is a number": [
      "---\nmodel: 7\n",
      /meta \(line 2\), model: expected a text, found the number 7: put it in quotes/
    ],
    "an unknown key in the meta": [
      "---\nmodel: noop\ntool: []\n",
      /meta \(line 3\), tool: unknown key; did you mean tools\?/
    ],
    "a binding that is a number": [
      "---\nmodel: noop\nbinding: { n: 3 }\n",
      /meta \(line 3\), binding\.n: expected a text, found the number 3: put it in quotes/
    ],
    "a message that is empty": [
      `${meta}---\nrole: user\ncontent: a\n---\n`,
      /message 1 \(line \d+\): there is nothing between this --- and the next/
    ],
    "an unknown role": [
      `${meta}---\nrole: asistant\n`,
      /message 0 \(line 4\), role: unknown role "asistant": there are system, user, assistant, tool; did you mean assistant\?/
    ],
    "no role": [`${meta}---\ncontent: a\n`, /message 0 \(line 4\): role is missing/],
    "an unknown key in the third message": [
      `${meta}---\nrole: user\ncontent: a\n---\nrole: assistant\n---\nrole: user\ncontents: a\n`,
      /message 2 \(line 10\), contents: unknown key; did you mean content\?/
    ],
    "a user without content": [
      `${meta}---\nrole: user\n`,
      /message 0 .*content is missing: only a message with role assistant may be blank/
    ],
    "content that is a number": [
      `${meta}---\nrole: user\ncontent: 012\n`,
      /message 0 \(line 5\), content: expected a text or a list of blocks, found the number 12: put it in quotes/
    ],
    "content that is a truth value": [
      `${meta}---\nrole: user\ncontent: true\n`,
      /found the truth value true: put it in quotes/
    ],
    "an unknown block": [
      `${answer}  - { type: tool_call, id: a }\n`,
      /message 0 \(line 6\), content\[0\]\.type: unknown type "tool_call": there are text, tool_use, tool_result, thinking, image/
    ],
    "a block without a type": [`${answer}  - { text: a }\n`, /content\[0\]: type is missing/],
    "a block that is a text": [`${answer}  - hello\n`, /content\[0\]: expected a map, found a text/],
    "a block with an unknown key": [
      `${answer}  - { type: text, text: a, txt: b }\n`,
      /content\[0\]\.txt: unknown key; did you mean text\?/
    ],
    "a call without input": [
      `${answer}  - { type: tool_use, id: a, name: b }\n`,
      /content\[0\]: input is missing: a call without arguments has input: \{\}/
    ],
    "a call whose input is a text": [
      `${answer}  - { type: tool_use, id: a, name: b, input: "{}" }\n`,
      /content\[0\]\.input: expected a map, found a text/
    ],
    "a call of the user": [
      `${meta}---\nrole: user\ncontent:\n  - { type: tool_use, id: a, name: b, input: {} }\n`,
      /a tool_use block belongs in a message with role assistant, this is role user/
    ],
    "a result of the assistant": [
      `${answer}  - { type: tool_result, tool_use_id: a, content: b }\n`,
      /a tool_result block belongs in a message with role tool/
    ],
    "a text of a tool": [
      `${meta}---\nrole: tool\ncontent: five\n`,
      /message 0 \(line 5\), content: expected a list of tool_result blocks, found a text/
    ],
    "a text block of a tool": [
      `${meta}---\nrole: tool\ncontent:\n  - { type: text, text: a }\n`,
      /a text block belongs in a message with another role/
    ],
    "a blank slot with a trace": [
      `${meta}---\nrole: assistant\ntrace: { span_id: a, model: b, tokens: { input: 0, output: 0 }, latency_ms: 0, events: [] }\n`,
      /message 0 \(line 5\), trace: a blank slot has no trace/
    ],
    "a trace of a user": [
      `${meta}---\nrole: user\ncontent: a\ntrace: {}\n`,
      /role user has no trace, only assistant has/
    ],
    "a trace without tokens": [
      `${answer}  - { type: text, text: a }\ntrace: { span_id: a, model: b, latency_ms: 0, events: [] }\n`,
      /trace\.tokens: expected a map, found nothing/
    ],
    "negative tokens": [
      `${answer}  - { type: text, text: a }\ntrace: { span_id: a, model: b, tokens: { input: -1, output: 0 }, latency_ms: 0, events: [] }\n`,
      /trace\.tokens\.input: expected a whole number of at least 0, found the number -1/
    ],
    "a cache that is a word": [
      `${meta}---\nrole: user\ncontent: a\ncache: yes\n`,
      /cache: expected true or false, found a text/
    ],
    "a key twice": [
      `${meta}---\nrole: user\ncontent: a\ncontent: b\n`,
      /message 0, content: the key "content" is there twice/
    ],
    "a key twice deep inside": [
      `${answer}  - { type: tool_use, id: a, name: b, input: { x: { y: 1, y: 2 } } }\n`,
      /content\[0\]\.input\.x\.y: the key "y" is there twice/
    ],
    "an alias": [`${meta}---\nrole: user\ncontent: *a\n`, /(?:alias|Unresolved)/],
    "an anchor": [
      `${meta}---\nrole: user\ncontent: &a hello\n`,
      /anchors \(&\) and aliases \(\*\) are not part of the format/
    ],
    "a tag": [`${meta}---\nrole: user\ncontent: !!str 5\n`, /tags \(!\) are not part of the format/],
    "binary data": [`${meta}---\nrole: user\ncontent: !!binary aGk=\n`, /tags \(!\)/],
    "a directive": ["%YAML 1.1\n---\nmodel: noop\n", /line 1: directives \(%\) are not part of the format/],
    "a document without ---": [`${meta}...\nrole: user\n`, /line 4: a document begins with a line ---/],
    "no YAML": [`${meta}---\nrole: user\ncontent: "open\n`, /message 0: line \d+: not YAML: Missing closing/],
    "a lone surrogate": [`${meta}---\nrole: user\ncontent: "\\ud800"\n`, /message 0, content: lone surrogate/],
    "an integer too large": [
      `${answer}  - { type: tool_use, id: a, name: b, input: { n: 9007199254740993 } }\n`,
      /input\.n: 9007199254740993: integers beyond 9007199254740991 lose digits/
    ],
    "no number": [
      `${answer}  - { type: tool_use, id: a, name: b, input: { n: .nan } }\n`,
      /input\.n: \.nan: not a number that JSON has/
    ],
    "a key that is a number": [
      `${answer}  - { type: tool_use, id: a, name: b, input: { 1: a } }\n`,
      /input: a key must be a text, found 1: put it in quotes/
    ],
    "nesting without end": [`---\nmodel: noop\ndebug: ${"[".repeat(50_000)}`, /nested deeper than 100 levels/],
    "a tool with a bad name": [
      '---\nmodel: noop\ntools: [{ name: "a b", description: x, input_schema: { type: object } }]\n',
      /tools\[0\]\.name: "a b": a tool's name is 1 to 64 of A-Z a-z 0-9 _ -/
    ],
    "a tool twice": [
      "---\nmodel: noop\ntools:\n  - { name: a, description: x, input_schema: { type: object } }\n  - { name: a, description: y, input_schema: { type: object } }\n",
      /meta \(line 5\), tools\[1\]\.name: a is also the name of tools\[0\]/
    ],
    "a tool that takes a list": [
      "---\nmodel: noop\ntools: [{ name: a, description: x, input_schema: { type: array } }]\n",
      /tools\[0\]\.input_schema: the arguments of a tool are an object: expected type: object, found array/
    ],
    "a tool without a schema": [
      "---\nmodel: noop\ntools: [{ name: a, description: x }]\n",
      /tools\[0\]\.input_schema: expected a map, found nothing/
    ]
  }
  for (const [name, [text, reason]] of Object.entries(cases)) {
    it(`is refused by name: ${name}`, () => {
      const result = ConversationText.parse(text, "case.yaml")
      expect(Result.isFailure(result)).toBe(true)
      if (Result.isFailure(result)) {
        expect(result.failure.message).toMatch(reason)
        expect(result.failure.message).toMatch(/^case\.yaml: /)
      }
    })
  }

  it("is refused at once when aliases would make it a thousand million times as large", () => {
    const levels = Array.from(
      { length: 9 },
      (_, level) => `  l${level + 1}: &l${level + 1} [${Array(10).fill(`*l${level}`).join(", ")}]`
    )
    const bomb = `---\nmodel: noop\ndebug:\n  l0: &l0 x\n${levels.join("\n")}\n`
    const result = ConversationText.parse(bomb)
    expect(Result.isFailure(result) && result.failure.message).toMatch(/meta, debug\.l0: anchors \(&\) and aliases/)
  })

  it("is accepted where it is only written otherwise: comments, flow, folds, CR LF, a mark at the start, no last newline", () => {
    const text = `\ufeff# who asks\r\n---\r\nmodel: noop # the scripted one\r\n---\r\n{ role: user, content: "a\\u0041" }\r\n--- # next\r\nrole: user\r\ncontent: >-\r\n  folded\r\n  text\r\n...\r\n# end\r\n---\r\nrole: assistant\r\ncontent:`
    expect(parsed(text)).toEqual({
      meta: { model: "noop" },
      session: [{ role: "user", content: "aA" }, { role: "user", content: "folded text" }, { role: "assistant" }]
    })
  })
})

describe("a text that is brought up to date", () => {
  const filled: Message = { role: "assistant", content: "It is 5." }

  it("is the same text where nothing changed, however it is written", () => {
    for (const before of [
      shape,
      `# mine\n${shape.slice(4)}`,
      shape.replaceAll("\n", "\r\n"),
      `\ufeff${shape}`,
      shape.trimEnd()
    ]) {
      expect(updated(before, parsed(before))).toBe(before)
    }
  })

  it("keeps every document that still says the same, byte by byte", () => {
    const before = `# mine\n${shape.replace("role: user\n", "role: user # the question\n")}`
    const { meta, session } = parsed(before)
    const after = updated(before, { meta, session: [...session.slice(0, -1), filled] })
    expect(after).toBe(before.replace(/role: assistant\n$/, "role: assistant\ncontent: It is 5.\n"))
  })

  it("puts new messages where they belong between old ones", () => {
    const before =
      "---\nmodel: noop # m\n---\nrole: user # 1\ncontent: a\n---\nrole: assistant\n---\nrole: user # 2\ncontent: b\n---\nrole: assistant # last"
    const { meta, session } = parsed(before)
    const tool: Message = { role: "tool", content: [{ type: "tool_result", tool_use_id: "c", content: "r" }] }
    const call: Message = { role: "assistant", content: [{ type: "tool_use", id: "c", name: "t", input: {} }] }
    const after = updated(before, { meta, session: [session[0]!, call, tool, session[1]!, session[2]!, session[3]!] })
    expect(parsed(after).session).toEqual([session[0], call, tool, session[1], session[2], session[3]])
    expect(after).toContain("model: noop # m\n---\nrole: user # 1\ncontent: a\n---\nrole: assistant\ncontent:\n")
    expect(after.endsWith("---\nrole: assistant\n---\nrole: user # 2\ncontent: b\n---\nrole: assistant # last")).toBe(
      true
    )
  })

  it("says what the conversation says, whatever stood there before", () => {
    fc.assert(
      fc.property(Arbitrary.conversation, Arbitrary.conversation, fc.nat(6), fc.boolean(), (old, other, at, end) => {
        const session = [...old.session.slice(0, at), ...other.session, ...old.session.slice(at + (end ? 1 : 0))]
        const now = { meta: end ? old.meta : other.meta, session }
        const before = ConversationText.emit(old)
        for (const text of [before, before.slice(4), before.trimEnd().replaceAll("---\n", "--- # x\n")]) {
          if (Result.isSuccess(ConversationText.parse(text))) deepStrictEqual(parsed(updated(text, now)), now)
        }
      }),
      { numRuns: 200 }
    )
  })

  it("is written anew where no conversation stood before", () => {
    expect(updated("no conversation", parsed(shape))).toBe(ConversationText.emit(parsed(shape)))
  })
})
