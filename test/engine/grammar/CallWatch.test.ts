import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { CallGrammar } from "../../../src/engine/Grammar.ts"
import { CallWatch } from "../../../src/engine/grammar/CallWatch.ts"
import { cutAt } from "../../kit/codecs.ts"

const tagged: CallGrammar = {
  openers: [{ text: "<tool_call>", root: "r" }],
  rules: "",
  marks: {},
  closer: "</tool_call>",
  bracket: "{",
  reasoning: { open: "<think>", close: "</think>", opened: false }
}

const bare: CallGrammar = {
  openers: [
    { text: '{"name": "x", "p": ', root: "a", atStart: true, depth: 1 },
    { text: '{"type"', root: "b", atLine: true, depth: 1 }
  ],
  rules: "",
  marks: {},
  closer: "",
  bracket: "{"
}

/** Feeds a text as a model would write it: what ran past an opener is written again. */
const follow = (grammar: CallGrammar, pieces: ReadonlyArray<string>): ReadonlyArray<readonly [string, number]> => {
  const watch = new CallWatch(grammar)
  const out: Array<readonly [string, number]> = []
  let at = 0
  for (const piece of pieces) {
    for (let rest = piece; rest !== ""; ) {
      const seen = watch.take(rest)
      const past = seen._tag === "armed" ? seen.past : 0
      at += rest.length - past
      rest = rest.slice(rest.length - past)
      if (seen._tag === "armed" || seen._tag === "released") out.push([seen._tag, at])
      if (seen._tag === "released") break
    }
  }
  return out
}

describe("the watch over calls", () => {
  it("sees a call begin and end, and another after it", () => {
    const call = '<tool_call>\n{"a": "</tool_call> \\" }", "b": [{}]}\n</tool_call>'
    const text = `Let me see. ${call}\n`
    assert.deepStrictEqual(follow(tagged, [...text, ...call]), [
      ["armed", 23],
      ["released", 12 + call.length],
      ["armed", text.length + 11],
      ["released", text.length + call.length]
    ])
  })

  it("does not depend on how the text was cut up to the end of a call", () => {
    const text = 'a<tool_c<tool_call>\n{"a": {"b": "}</tool_call>"}}\n</tool_call>'
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 8 }), (cuts) => {
        const seen = follow(tagged, cutAt(text, cuts))
        assert.deepStrictEqual(
          seen.map(([tag]) => tag),
          ["armed", "released"]
        )
        assert.strictEqual(seen[0]![1], 19)
      })
    )
  })

  it("finds nothing inside reasoning, whether the turn or its prompt began it", () => {
    const text = "<think>I could <tool_call></think><tool_call>"
    assert.deepStrictEqual(follow(tagged, [...text]), [["armed", text.length]])
    const opened = { ...tagged, reasoning: { open: "<think>", close: "</think>", opened: true } }
    assert.deepStrictEqual(follow(opened, [..."a <tool_call> b"]), [])
    assert.deepStrictEqual(follow(tagged, [..."An answer about <think> and <tool_call>"]), [["armed", 39]])
  })

  it("finds bare calls only where they may begin, and their end by their brackets", () => {
    assert.deepStrictEqual(follow(bare, [...' {"name": "x", "p": {"a": "}"}}']), [
      ["armed", 20],
      ["released", 31]
    ])
    assert.deepStrictEqual(follow(bare, [...'Here: {"type" \n{"type": 1}']), [
      ["armed", 22],
      ["released", 26]
    ])
  })

  it("holds a turn from its start: its head first, then to its end, or for good", () => {
    const heads = [{ text: "[CALLS]" }, { text: '{"n": ', depth: 1 }]
    const first: CallGrammar = { ...tagged, openers: [], closer: "", bracket: "[", start: { root: "r", heads } }
    assert.deepStrictEqual(follow(first, [...'[CALLS][{"a": "]"}] and prose']), [["released", 19]])
    const bracketed: CallGrammar = { ...first, bracket: "{" }
    assert.deepStrictEqual(follow(bracketed, [...'{"n": {"a": 1}} and prose']), [["released", 15]])
    const whole: CallGrammar = { ...first, bracket: "{", start: { root: "r", toEnd: true } }
    assert.deepStrictEqual(follow(whole, [...'{"a": 1} {"b": 2}']), [])
    assert.strictEqual(new CallWatch(whole).inside?.root, "r")
  })

  it("takes an opener at the end of the prompt", () => {
    assert.isDefined(new CallWatch(tagged, "assistant\n<tool_call>").inside)
    assert.isUndefined(new CallWatch(tagged, "assistant\n<tool_call>\n").inside)
  })
})
