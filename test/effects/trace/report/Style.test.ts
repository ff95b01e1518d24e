import { assert, describe, it } from "@effect/vitest"
import { style } from "../../../../src/effects/trace/report/Style.ts"

/** The palette as it is written: names and colours of `:root`, first for light grounds, then for dark ones. */
const palettes: ReadonlyArray<ReadonlyMap<string, string>> = [...style.matchAll(/:root \{([^}]*--[^}]*)\}/g)].map(
  ([, body]) =>
    new Map([...body!.matchAll(/--([a-z-]+): (#[0-9a-f]{6});/g)].map(([, name, colour]) => [name!, colour!]))
)

/** As WCAG 2 defines it. */
const luminance = (colour: string): number => {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const value = Number.parseInt(colour.slice(at, at + 2), 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!
}

const contrast = (one: string, other: string): number => {
  const [bright, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a)
  return (bright! + 0.05) / (dark! + 0.05)
}

/** Which colours of text stand on which grounds. */
const texts: Readonly<Record<string, ReadonlyArray<string>>> = {
  text: ["ground", "raised"],
  quiet: ["ground", "raised"],
  link: ["ground", "raised"],
  mark: ["ground", "raised"],
  good: ["ground", "good-ground"],
  bad: ["ground", "raised", "bad-ground"],
  warn: ["ground", "raised", "warn-ground"]
}

/** Pictures and the borders of what can be operated. */
const pictures = ["model", "tool", "context", "wait", "failed", "quiet"]

describe("the palette", () => {
  it("is there for light and for dark, with the same names, and white on black is 21 : 1", () => {
    assert.strictEqual(palettes.length, 2)
    assert.deepStrictEqual([...palettes[0]!.keys()].sort(), [...palettes[1]!.keys()].sort())
    assert.closeTo(contrast("#ffffff", "#000000"), 21, 1e-9)
  })

  for (const [index, name] of (["light", "dark"] as const).entries()) {
    const palette = palettes[index] ?? new Map<string, string>()
    const measured = (front: string, ground: string) => contrast(palette.get(front)!, palette.get(ground)!)

    it(`every colour of text has 4.5 : 1 on each of its grounds where it is ${name}`, () => {
      const low = Object.entries(texts).flatMap(([front, grounds]) =>
        grounds.filter((ground) => !(measured(front, ground) >= 4.5)).map((ground) => `${front} on ${ground}`)
      )
      assert.deepStrictEqual(low, [])
    })

    it(`every bar, gauge and border of a control has 3 : 1 on the ground where it is ${name}`, () => {
      assert.deepStrictEqual(
        pictures.filter((front) => !(measured(front, "ground") >= 3)),
        []
      )
    })
  }

  it("paper is light, whatever the screen is", () => {
    assert.strictEqual(style.split("prefers-color-scheme").length, 2)
    assert.include(style, "@media screen and (prefers-color-scheme: dark)")
  })

  it("no rule brings a colour of its own", () => {
    const rules = style.replaceAll(/:root \{[^}]*\}/g, "")
    assert.deepStrictEqual(rules.match(/#[0-9a-f]{3,8}\b|rgba?\(|hsla?\(/g), null)
  })
})
