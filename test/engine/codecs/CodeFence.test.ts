import { assert, describe, it } from "@effect/vitest"
import { CodeFence } from "../../../src/engine/codecs/CodeFence.ts"
import { pairs } from "../../kit/codecs.ts"

const rows: ReadonlyArray<readonly [claim: string, text: string, inside: boolean]> = [
  ["opens with three backticks and a language", "a\n```json\n", true],
  ["is open on its own first line", "```json", true],
  ["closes with a bare fence", "```\na\n```\n", false],
  ["does not close with another language word", "```\na\n```js\n", true],
  ["does not close with a shorter fence", "````\na\n```\n", true],
  ["does not close with the other kind", "~~~\na\n```\n", true],
  ["may be indented by three", "   ```\n", true],
  ["is not opened by four spaces", "    ```\n", false],
  ["is not opened by inline code", "```a``` b", false],
  ["is not opened in the middle of a line", "see ```\n", false],
  ["opens again after it closed", "```\n```\n```\n", true]
]

describe("a code block", () => {
  for (const [claim, text, inside] of rows) {
    it(`${claim}, at every cut`, () => {
      for (const pieces of pairs(text)) {
        const fence = new CodeFence()
        for (const piece of pieces) fence.take(piece)
        assert.strictEqual(fence.inside, inside)
      }
    })
  }
})
