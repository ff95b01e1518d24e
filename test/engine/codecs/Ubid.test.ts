import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { MalformedCode } from "../../../src/engine/codecs/Codec.ts"
import { qwen25 } from "../../../src/engine/codecs/Qwen25.ts"
import { ubid } from "../../../src/engine/codecs/Ubid.ts"
import type { EndReason } from "../../../src/engine/Generation.ts"
import { flatten } from "../../../src/engine/Prompt.ts"
import { parsePieces, splits, tool, units } from "../../kit/codecs.ts"
import { args } from "../../kit/conversations.ts"

const options = { tools: [tool("calc", { type: "object" }, "Adds."), tool("read")] }

/** The same at every cut. */
const parse = (text: string, reason: EndReason = "eog") => {
  const whole = parsePieces(ubid, [text], options, reason)
  for (const pieces of [units(text), ...splits(text)])
    assert.deepStrictEqual(parsePieces(ubid, pieces, options, reason), whole)
  return whole.action
}

describe("ubid", () => {
  it("reads a tool by its number, by its name, and one that does not exist", () => {
    const action = parse(`So: CALL([1]) WITH {"a": 1}\nCALL([read]) WITH {}\nCALL([36]) WITH {}`)
    assert.deepStrictEqual(
      action._tag === "ToolCalls" ? action.calls.map((call) => [call.name, call.arguments]) : action,
      [
        ["calc", { a: 1 }],
        ["read", {}],
        ["36", {}]
      ]
    )
  })

  it("is read by no other codec", () => {
    const text = `CALL([36]) WITH {"a": 1}`
    assert.deepStrictEqual(parsePieces(qwen25, [text], options).action, { _tag: "FinalText", text })
  })

  const broken: ReadonlyArray<readonly [string, MalformedCode, EndReason?]> = [
    [`CALL([1]`, "unclosed_call"],
    [`CALL([1]) WITH {"a": `, "unclosed_call"],
    [`CALL([1]) WITH {"a": `, "truncated", "length"],
    [`CALL([1]) {"a": 1}`, "wrong_envelope"],
    [`CALL([1]) WITH {"a": 1,}`, "invalid_json"],
    [`CALL([1]) WITH {"a": 1, "a": 2}`, "duplicate_key"],
    [`CALL([1]) WITH {}\nRESULT([calc]) 1`, "forged_tool_response"],
    [`{"name": "calc", "arguments": {}}`, "wrong_envelope"]
  ]
  for (const [text, code, reason] of broken) {
    it(`calls ${JSON.stringify(text)} ${code}${reason === undefined ? "" : " (length)"}`, () => {
      const action = parse(text, reason)
      assert.strictEqual(action._tag === "Malformed" ? action.code : action._tag, code)
    })
  }

  it("numbers the tools in its prompt", () => {
    assert.include(flatten(ubid.system("S", options)), '[1] calc: Adds. {"type": "object"}\n[2] read: ')
    assert.strictEqual(
      flatten(
        ubid.answers([
          { name: "calc", text: "1" },
          { name: "read", text: "" }
        ])
      ),
      "<|im_start|>user\nRESULT([calc]) 1\nRESULT([read]) <|im_end|>\n"
    )
  })

  it("reads back every call it writes, with numbers and with names", () => {
    const call = fc.record({ name: fc.constantFrom("calc", "read"), arguments: args })
    fc.assert(
      fc.property(fc.array(call, { minLength: 1, maxLength: 3 }), fc.boolean(), (calls, numbered) => {
        const text = flatten(ubid.written({ role: "assistant", content: "", calls }, numbered ? options : undefined))
        const { action } = parsePieces(ubid, [text], options)
        assert.deepStrictEqual(
          action._tag === "ToolCalls"
            ? action.calls.map((one) => ({ name: one.name, arguments: one.arguments }))
            : action,
          calls
        )
      })
    )
  })
})
