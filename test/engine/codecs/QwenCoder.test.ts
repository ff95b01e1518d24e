import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { MalformedCode } from "../../../src/engine/codecs/Codec.ts"
import { qwenCoder } from "../../../src/engine/codecs/QwenCoder.ts"
import type { EndReason } from "../../../src/engine/Generation.ts"
import { flatten } from "../../../src/engine/Prompt.ts"
import { cutAt, parsePieces, sharedCases, splits, tool, units } from "../../kit/codecs.ts"
import { parseReport, sharedProblems, undocumented } from "../../kit/conformance.ts"
import { words } from "../../kit/conversations.ts"

const text = { type: "string" } as const
const options = {
  tools: [
    tool("write", { type: "object", properties: { path: text, content: text, count: { type: "integer" } } }),
    tool("list")
  ]
}

/** The same at every cut. */
const parse = (turn: string, reason: EndReason = "eog") => {
  const whole = parsePieces(qwenCoder, [turn], options, reason)
  for (const pieces of [units(turn), ...splits(turn)]) {
    assert.deepStrictEqual(parsePieces(qwenCoder, pieces, options, reason), whole)
  }
  return whole
}

const calls = (turn: string) => {
  const { action } = parse(turn)
  return action._tag === "ToolCalls" ? action.calls.map((call) => [call.name, call.arguments]) : action
}

const parameter = (name: string, value: string) => `<parameter=${name}>\n${value}\n</parameter>\n`
const wrap = (body: string, name = "write") => `<tool_call>\n<function=${name}>\n${body}</function>\n</tool_call>`

describe("qwen3-coder", () => {
  const parses = parseReport(qwenCoder, "qwen3-coder", {
    wrap: (body) => `<tool_call>\n${body}\n</tool_call>`,
    rulings: [
      [/fallback_no_tags|incomplete_tags#1/, "a function outside its tags is malformed"],
      [
        /missing_closing_parameter_tag|none_tool_calls_filtered|malformed_xml_unclosed_function/,
        "a broken call is malformed"
      ],
      [/qwen_xml.*: arguments|type_conversion.*: arguments/, "without a declared type a value is text"],
      [
        /multiline_parameter_values|whitespace_handling/,
        "tags of a value of several lines stand on lines of their own"
      ],
      [/content before tool call/, "an unclosed call is malformed"],
      [/unicode with partial tool tag/, "what was held back is given out at the end of the turn"],
      [/names with (?:spaces|quotes)/, "no tool can have that name"]
    ]
  })
  it.skipIf(parses === undefined)(
    "reads every conformance output as expected, but for the rulings (data: WRIT_CONFORMANCE)",
    () => {
      assert.deepStrictEqual(undocumented("qwen3-coder", parses!), [])
      assert.isAbove(parses!.ran, 50)
    }
  )

  for (const shared of sharedCases("qwen3-coder")) {
    // Delimiters count on lines of their own only, so the value is kept whole.
    const ruled = shared.id === "BR-009" ? "ToolCalls" : undefined
    it(`ends ${shared.id} as ${ruled ?? shared.expected.action}, however it arrives`, () => {
      assert.deepStrictEqual(sharedProblems(qwenCoder, shared, ruled), [])
    })
  }

  it("takes exactly one newline from each side of a value and nothing else", () => {
    for (const value of [
      "",
      "a",
      " a ",
      "\na\n",
      "a\n\n",
      "    indented\n\tx",
      "</parameter> in a line",
      "a </function>",
      "<b>&amp;</b>"
    ]) {
      assert.deepStrictEqual(calls(wrap(parameter("content", value))), [["write", { content: value }]])
    }
  })

  it("takes a parameter on one line, an empty one, and no parameter at all", () => {
    assert.deepStrictEqual(calls(wrap("<parameter=path>a b</parameter>\n<parameter=count>3</parameter>\n")), [
      ["write", { path: "a b", count: 3 }]
    ])
    assert.deepStrictEqual(calls(wrap("<parameter=path>\n</parameter>\n")), [["write", { path: "" }]])
    assert.deepStrictEqual(calls(`${wrap("", "list")}\n${wrap("", "list")}`), [
      ["list", {}],
      ["list", {}]
    ])
  })

  it("keeps __proto__ an ordinary parameter", () => {
    const { action } = parse(wrap(parameter("__proto__", "x")))
    assert.deepStrictEqual(action._tag === "ToolCalls" ? Object.keys(action.calls[0]!.arguments) : [], ["__proto__"])
  })

  const broken: ReadonlyArray<readonly [string, MalformedCode, EndReason?]> = [
    [wrap(parameter("content", "a\n</parameter>\nb")), "ambiguous_delimiter"],
    [wrap(parameter("content", "a\n<parameter=path>\nb")), "ambiguous_delimiter"],
    [wrap(parameter("content", "a\n</function>")), "ambiguous_delimiter"],
    [wrap(parameter("content", "a\n</tool_call>\nb")), "ambiguous_delimiter"],
    [wrap("<parameter=content>\na</parameter>\n"), "ambiguous_delimiter"],
    [wrap("<parameter=content>a\nb\n</parameter>\n"), "wrong_envelope"],
    [wrap(parameter("a", "1") + parameter("a", "2")), "duplicate_parameter"],
    [wrap("hello\n"), "wrong_envelope"],
    [wrap("<parameter=>\nx\n</parameter>\n"), "wrong_envelope"],
    [wrap("", ""), "missing_name"],
    [wrap("", "list</function"), "invalid_name"],
    [wrap("", "a b"), "invalid_name"],
    [`<tool_call>\n<function=list\n</function>\n</tool_call>`, "wrong_envelope"],
    [`<tool_call>\n{"name": "list"}\n</tool_call>`, "wrong_envelope"],
    [`<tool_call></tool_call>`, "empty_call"],
    [`<tool_call>\n<function=list>\n</tool_call>`, "missing_closer"],
    [`<tool_call>\n<function=list>\n</function>\n<function=list>\n</function>\n</tool_call>`, "trailing_characters"],
    [wrap(parameter("content", "x")).slice(0, -14), "unclosed_call"],
    [wrap(parameter("content", "x")).slice(0, -40), "unclosed_call"],
    [wrap(parameter("content", "x")).slice(0, -40), "truncated", "length"],
    ["<tool_call>\n<function=wri", "truncated", "length"],
    ["<function=list>\n</function>\n</tool_call>", "missing_opener"],
    [`${wrap("", "list")}\n</parameter>`, "missing_opener"],
    [`\`\`\`\n${wrap("", "list")}\n\`\`\``, "call_in_code_block"],
    [`{"name": "list", "arguments": {}}`, "wrong_envelope"]
  ]
  for (const [turn, code, reason] of broken) {
    it(`calls ${JSON.stringify(turn).slice(0, 100)} ${code}${reason === undefined ? "" : " (length)"}`, () => {
      const { action } = parse(turn, reason)
      assert.strictEqual(action._tag === "Malformed" ? action.code : action._tag, code)
    })
  }

  it("reads back every call it writes, or refuses it: no value is ever shortened", () => {
    const value = fc
      .oneof(
        words,
        fc
          .array(fc.constantFrom("</parameter>", "</function>", "</tool_call>", "x", "", "<parameter=a>"), {
            maxLength: 4
          })
          .map((lines) => lines.join("\n"))
        // What spells the end of one parameter and the start of another cannot be told from that: the wire has no escape.
      )
      .filter((content) => !/<\/parameter>\n+<parameter=/.test(content))
    fc.assert(
      fc.property(value, fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 4 }), (content, cuts) => {
        const turn = flatten(
          qwenCoder.written({ role: "assistant", content: "", calls: [{ name: "write", arguments: { content } }] })
        )
        const { action } = parsePieces(qwenCoder, cutAt(turn, cuts), options)
        if (action._tag === "ToolCalls") assert.deepStrictEqual(action.calls[0]!.arguments, { content })
        else assert.strictEqual(action._tag, "Malformed")
      }),
      { numRuns: 500 }
    )
  })
})
