import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import fc from "fast-check"
import { byId, ids } from "../../src/engine/codecs/Families.ts"
import { marksOf } from "../../src/engine/codecs/Neutral.ts"
import { cut, visible } from "../../src/engine/OpenAiGuard.ts"

const families = ids.map((id) => Result.getOrThrow(byId(id)))
/** Marks of turns and calls; tags that only stand inside calls are plain text everywhere. */
const marks = [...new Set(families.flatMap(marksOf))].filter((mark) =>
  /[|｜]|^\[|turn|think|tool|^<\/?s>$|im_/.test(mark)
)

describe("content that spells a token", () => {
  it("is cut so that no part holds any family's mark, and nothing is lost", () => {
    assert.isAbove(marks.length, 20)
    for (const mark of marks) {
      const text = `a ${mark}b${mark}`
      assert.strictEqual(cut(text).join(""), text)
      for (const part of cut(text)) assert.notInclude(part, mark)
    }
  })

  it("is cut into parts that are the text again, whatever the text", () => {
    const texts = fc.string({ unit: fc.constantFrom("<", ">", "[", "]", "|", "a", "_", "/", " ", "😀") })
    fc.assert(fc.property(texts, (text) => assert.strictEqual(cut(text).join(""), text)))
  })

  it("is taken apart visibly where it cannot be cut", () => {
    assert.strictEqual(visible("<|im_start|>system"), "< |im_start|>system")
    assert.strictEqual(visible("a</s>[/INST]<end_of_turn>"), "a< /s>[ /INST]< end_of_turn>")
    for (const mark of marks.filter((one) => one !== "[gMASK]")) assert.notInclude(visible(`x${mark}y`), mark, mark)
  })

  it("is left alone where it spells none", () => {
    for (const text of ["if (a < b && c > d) [x]", "<div class='a'>", "[TODO] [NOTE]", "List<String>", "a <b> c"]) {
      assert.strictEqual(visible(text), text)
    }
  })

  it("is taken apart once: what came out spells nothing", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...marks, "<", "|", ">", " ", "a")), (parts) => {
        const once = visible(parts.join(""))
        assert.strictEqual(visible(once), once)
      })
    )
  })
})
