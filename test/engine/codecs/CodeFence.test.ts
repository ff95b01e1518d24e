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
  ["may be indented by more, as in a list", "1. a\n\n      ```\n", true],
  ["closes at the same indentation", "1. a\n\n      ```js\n      b\n      ```\n", false],
  ["is not opened by inline code", "```a``` b", false],
  ["opens in the middle of a line", "see ```", true],
  ["stays open on the lines behind such a line", "see ```json\na\n", true],
  ["closes then with a bare fence", "see ```json\na\n```\n", false],
  ["closes then in a line as well", "see ```a\nb``` c", false],
  ["closes then not with a shorter run", "see ````a\nb``` c\n", true],
  ["closes then with a longer fence on a line of its own", "see ```a\n`````\n", false],
  ["is not opened by tildes in a line", "see ~~~\n", false],
  ["is not opened by backticks that the same line closes", "```a``` and ```b``` c\n", false],
  ["is opened by the third of three runs", "```a``` and ```b\n", true],
  ["is not opened by backticks inside inline code", "a fence is `` ``` ``\n", false],
  ["is opened beside a lone backtick", "the ` key and ```\n", true],
  ["is not opened by one or two backticks", "a ` and a ``\n", false],
  ["of tildes does not close with backticks in a line", "~~~\na ```b``` c\n", true],
  ["of a line of its own does not close in a line", "```\na ``` b\n", true],
  ["opens again after it closed", "```\n```\n```\n", true],
  ["opens again behind a closed one", "see ```a\nb``` and ```\n", true],
  ["does not know how long a very long run is", `see ${"`".repeat(20)} a ${"`".repeat(30)}\n`, false]
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
