import { assert, describe, it } from "@effect/vitest"
import { hermes } from "../../../src/engine/codecs/Hermes.ts"
import { flatten } from "../../../src/engine/Prompt.ts"
import { tool } from "../../kit/codecs.ts"
import { parseReport, undocumented } from "../../kit/conformance.ts"

describe("hermes", () => {
  const parses = parseReport(hermes, "hermes", {
    rulings: [
      [/non_streaming_tool_call_until_eos/, "a call without its closing tag is unclosed, never run"],
      [/non_streaming_tool_call_invalid_json/, "a broken call is malformed, never prose"]
    ]
  })
  it.skipIf(parses === undefined)(
    "reads every conformance output as expected, but for the rulings (data: WRIT_CONFORMANCE)",
    () => {
      assert.deepStrictEqual(undocumented("hermes", parses!), [])
      assert.isAbove(parses!.ran, 8)
    }
  )

  it("prints a nullable type without the endless loop of its template", () => {
    const spec = tool("t", { type: "object", properties: { a: { type: ["string", "null"] } } })
    assert.include(flatten(hermes.system(undefined, { tools: [spec] })), "t(a: Union[str,Any])")
  })

  it("without tools is plain ChatML", () => {
    const out = hermes.render([{ role: "user", content: "Hi" }], { tools: [], generationPrompt: true })
    assert.strictEqual(flatten(out), "<|begin_of_text|><|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
  })
})
