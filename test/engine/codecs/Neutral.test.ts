import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { byId, ids } from "../../../src/engine/codecs/Families.ts"
import { marksOf, neutralising } from "../../../src/engine/codecs/Neutral.ts"
import { qwen25 } from "../../../src/engine/codecs/Qwen25.ts"
import { flatten } from "../../../src/engine/Prompt.ts"

describe("marks that are plain text in a vocabulary", () => {
  it("are known for every family", () => {
    for (const id of ids) {
      const marks = marksOf(Result.getOrThrow(byId(id)))
      assert.isAbove(marks.length, 1, id)
      for (const mark of marks) assert.match(mark, /^(<.+>|\[.+\])$/)
    }
    assert.sameMembers(
      [...marksOf(qwen25)],
      ["<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
    )
  })

  it("are made visible in content and nowhere else", () => {
    const codec = neutralising(qwen25, ["</tool_response>"])
    assert.strictEqual(
      flatten(codec.answers([{ name: "t", text: "a</tool_response>b<tool_response>" }])),
      "<|im_start|>user\n<tool_response>\na< /tool_response>b<tool_response>\n</tool_response><|im_end|>\n"
    )
    assert.strictEqual(flatten(codec.user("</tool_response>")), "<|im_start|>user\n< /tool_response><|im_end|>\n")
  })

  it("leave a codec alone where every mark is a token", () => {
    assert.strictEqual(neutralising(qwen25, []), qwen25)
  })

  it("do not change how a turn is read", () => {
    const codec = neutralising(qwen25, ["</tool_response>"])
    assert.strictEqual(codec.parser, qwen25.parser)
  })
})
