import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { qwen25 } from "../../../src/engine/codecs/Qwen25.ts"
import { parsePieces, tool, units } from "../../kit/codecs.ts"
import { countingWork } from "../../kit/work.ts"

const options = { tools: [tool("calc")] }
const one = `<tool_call>\n{"name": "calc", "arguments": {"a": "b </tool_call> c"}}\n</tool_call>`

describe("a turn of any text", () => {
  it("never makes the scanner throw, and always has an outcome", () => {
    const sample = `<think>\nhm\n</think>\n\nText \`\`\`\n{"a": [1]}\n\`\`\`\n${one}\n<tool_response>x</tool_response><|im_end|>`
    const mutation = fc.record({
      at: fc.nat(),
      cut: fc.nat(8),
      put: fc.oneof(
        fc.string({ unit: "binary", maxLength: 3 }),
        fc.constantFrom('"', "{", "}", "<", "\\", "\ud800", "\0")
      )
    })
    fc.assert(
      fc.property(fc.array(mutation, { maxLength: 12 }), (mutations) => {
        let text = sample
        for (const { at, cut, put } of mutations) {
          const from = at % (text.length + 1)
          text = text.slice(0, from) + put + text.slice(from + cut)
        }
        const { action } = parsePieces(qwen25, [text], options)
        assert.include(["FinalText", "ToolCalls", "Malformed"], action._tag)
        if (action._tag === "ToolCalls") assert.isNotEmpty(action.calls)
        assert.doesNotThrow(() => JSON.stringify(action))
      }),
      { numRuns: 2000 }
    )
  })
})

describe("the work of a turn", () => {
  const shapes: Readonly<Record<string, (size: number) => string>> = {
    prose: (size) => "word ".repeat(size / 5),
    "the beginnings of markers": (size) => "<tool_cal".repeat(size / 9),
    "white space": (size) => " ".repeat(size),
    reasoning: (size) => `<think>${"hm </thin".repeat(size / 9)}</think>x`,
    "one call with a long string": (size) => one.replace("b ", "b".repeat(size)),
    "many calls": (size) => one.repeat(Math.ceil(size / one.length)),
    "a payload that never ends": (size) => `<tool_call>{"name": "${"x".repeat(size)}`,
    brackets: (size) => `<tool_call>${"{[".repeat(size / 2)}`,
    "bare braces": (size) => "{".repeat(size),
    "bare objects": (size) => `{"a": {"b": [1, 2]}} `.repeat(size / 21),
    "bare objects that do not close": (size) => `{"a": [`.repeat(size / 7),
    "bare strings that do not close": (size) => `{"${" {".repeat(size / 2)}`,
    "code fences": (size) => "```\n".repeat(size / 4)
  }

  for (const [name, shape] of Object.entries(shapes)) {
    it(`grows with its length and no faster: ${name}`, () => {
      const workOf = (size: number) => {
        const pieces = units(shape(size))
        return countingWork(() => parsePieces(qwen25, pieces, options, "length")) / pieces.length
      }
      // Work for each character, which a quadratic reader would multiply by eight.
      assert.isBelow(workOf(16_000), workOf(2_000) * 1.5 + 10)
    })
  }
})
