import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { Markup, settle } from "../../../src/engine/codecs/Markup.ts"
import { control, flatten, text } from "../../../src/engine/Prompt.ts"

const markers = ["<a>", "</a>"]

describe("segments", () => {
  it("give plain words next to content to the content and keep markers control", () => {
    const out = new Markup(markers).mark("<a>user\n").say("hi").mark("\nbye</a>\n").done()
    assert.deepStrictEqual(out, [control("<a>"), text("user\nhi\nbye"), control("</a>\n")])
  })

  it("leave a marker that content spells in the content", () => {
    const out = new Markup(markers).mark("<a>").say("</a><a>").mark("</a>").done()
    assert.deepStrictEqual(out, [control("<a>"), text("</a><a>"), control("</a>")])
  })

  it("lose no character and never move one across a marker", () => {
    const piece = fc.record({
      kind: fc.constantFrom("control" as const, "text" as const),
      text: fc.constantFrom("<a>", "</a>", "x", "\n", "", "y<a>z</a>")
    })
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
        const out = settle(pieces, markers)
        assert.strictEqual(flatten(out), flatten(pieces))
        const markersIn = (list: typeof out) =>
          list
            .filter((one) => one.kind === "control")
            .map((one) => one.text)
            .join("")
            .match(/<\/?a>/g)?.length ?? 0
        assert.strictEqual(markersIn(out), markersIn(pieces))
      })
    )
  })
})
