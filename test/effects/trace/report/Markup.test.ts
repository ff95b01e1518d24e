import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { html, inAttribute, inText, json, Markup, number, Room } from "../../../../src/effects/trace/report/Markup.ts"
import { hostile, invisible } from "../../../kit/page.ts"

const texts = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom(...hostile),
  fc
    .array(fc.constantFrom("<", ">", "&", '"', "'", "`", "\u202e", "\ud800", "\u001b", "a", "\u{e0041}"))
    .map((all) => all.join(""))
)

const entities: Readonly<Record<string, string>> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#39;": "'",
  "&#96;": "`"
}

describe("Markup", () => {
  it("no text leaves a character that could begin or end markup, or that nobody would see", () => {
    fc.assert(
      fc.property(texts, (text) => {
        for (const safe of [inText(text).replaceAll(/<span class="ctl">|<\/span>/g, ""), inAttribute(text)]) {
          assert.notMatch(safe, /[<>"'`]/)
          assert.notMatch(safe, invisible)
        }
      }),
      { numRuns: 1_000 }
    )
  })

  it("what can be seen comes back as it was", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme-ascii" }), (text) => {
        assert.strictEqual(
          inText(text).replaceAll(/&[a-z0-9#]+;/g, (entity) => entities[entity] ?? entity),
          text
        )
      })
    )
  })

  it("a template escapes for the place: marks between tags, plain codes inside a tag", () => {
    const evil = '"\u202e<'
    assert.strictEqual(
      html`<a href="#${evil}">${evil}</a>`.value,
      '<a href="#&quot;\\u202e&lt;">&quot;<span class="ctl">\\u202e</span>&lt;</a>'
    )
    assert.strictEqual(html`<p>${[html`<b>1</b>`, "<", 2, undefined]}</p>`.value, "<p><b>1</b>&lt;2</p>")
    assert.strictEqual(html`<p>${new Markup("<i></i>")}</p>`.value, "<p><i></i></p>")
  })

  it("long text is cut between characters and says so, and a page has room for so much only", () => {
    const room = new Room(10_000)
    const { note, text } = room.clip("😀".repeat(3_000_000), 101)
    assert.strictEqual(text, "😀".repeat(50))
    assert.strictEqual(note, "… cut: 100 of 6\u202f000\u202f000 characters are shown")
    assert.strictEqual(room.clip("x".repeat(20_000), 20_000).text.length, 9_900)
    assert.strictEqual(room.clip("x".repeat(20_000), 20_000).text.length, 120)
    assert.deepStrictEqual(room.clip("short", 300), { text: "short", note: undefined })
  })

  it("numbers are grouped from 10 000 on", () => {
    assert.deepStrictEqual([0, 9_999, 10_000, 1_234_567].map(number), [
      "0",
      "9999",
      "10\u202f000",
      "1\u202f234\u202f567"
    ])
  })

  it("a value nested beyond reason is said to be so", () => {
    assert.match(json(JSON.parse(`${"[".repeat(200_000)}${"]".repeat(200_000)}`)), /^\(cannot be shown/)
  })
})
