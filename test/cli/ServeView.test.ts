import { assert, describe, it } from "@effect/vitest"
import { startLine } from "../../src/cli/ServeView.ts"

const listening = {
  title: "tiny-tool-agent-q8_0 (2.3 MB, llama, Q8_0)",
  model: "tiny-tool-agent-q8_0",
  url: "http://127.0.0.1:8123/v1",
  tools: ["calculate", "lookup"],
  names: undefined
}

describe("the line of a server that listens", () => {
  it("says the model's name once, and which tools it offers", () => {
    assert.strictEqual(
      startLine(listening),
      "writ: tiny-tool-agent-q8_0 (2.3 MB, llama, Q8_0) on http://127.0.0.1:8123/v1 (tools calculate, lookup; for anybody on this machine)"
    )
  })

  it("says another name that requests call it by, and whose tokens there are", () => {
    const line = startLine({ ...listening, model: "tiny", tools: [], names: ["ann", "bob"] })
    assert.include(line, "Q8_0) as tiny on http")
    assert.include(line, "(no tools; for ann, bob)")
    assert.include(startLine({ ...listening, model: "tiny-tool-agent" }), " as tiny-tool-agent on ")
  })
})
