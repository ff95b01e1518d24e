import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { readable } from "../../../src/tools/web/Readable.ts"

const read = (html: string, base = "https://example.org/dir/page") => readable(html, base)

describe("a list", () => {
  it.effect("is numbered as it says", () =>
    Effect.gen(function* () {
      const item = "<li>x"
      assert.strictEqual(yield* read(`<ol>${item}${item}</ol>`), "1. x\n 2. x")
      assert.strictEqual(yield* read(`<ol start=9>${item}${item}</ol>`), "9.  x\n 10. x")
      assert.strictEqual(yield* read(`<ol type=a start=26>${item}${item}</ol>`), "z.  x\n aa. x")
      assert.strictEqual(yield* read(`<ol type=A>${item}</ol>`), "A. x")
      assert.strictEqual(yield* read(`<ol type=i start=3>${item}${item}</ol>`), "iii. x\n iv.  x")
      assert.strictEqual(yield* read(`<ol type=I start=1994>${item}</ol>`), "MCMXCIV. x")
    })
  )

  it.effect("is numbered in digits where its own numbers have no such form", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* read("<ol type=i start=3999><li>x<li>y</ol>"), "3999. x\n 4000. y")
      assert.strictEqual(yield* read("<ol type=a start=0><li>x</ol>"), "0. x")
      assert.strictEqual(yield* read("<ol type=I start=-2><li>x</ol>"), "-2. x")
      for (const start of ["many", "1e300", "1.5", "Infinity", ""]) {
        assert.strictEqual(yield* read(`<ol type=i start="${start}"><li>x</ol>`), "i. x", start)
      }
    })
  )

  it.effect("stands in a list, with what is in it under its item", () =>
    Effect.gen(function* () {
      const text = yield* read("<ul><li>one<ul><li>inner<br>more</ul><li>two</ul><p>after")
      assert.strictEqual(text, "- one\n  - inner\n    more\n- two\n\nafter")
    })
  )
})

describe("a quotation", () => {
  it.effect("is marked line by line", () =>
    Effect.gen(function* () {
      assert.strictEqual(
        yield* read("<p>a<blockquote>b<br>c<blockquote>d</blockquote></blockquote><p>e"),
        "a\n\n> b\n> c\n> \n> > d\n\ne".replace("> \n", ">\n")
      )
    })
  )
})

describe("a page of a million characters", () => {
  const lines = "x<br>".repeat(190_000)

  for (const [what, html] of [
    ["quotations", `${"<blockquote>".repeat(400)}${lines}`],
    ["lists", `${"<ul><li>".repeat(240)}${lines}`],
    ["lists without items", `${"<ol start=100000>".repeat(400)}${lines}`],
    ["quotations in lists", `${"<ul><li><blockquote>".repeat(150)}${lines}`]
  ] as const) {
    it.effect(
      `with ${what} inside each other becomes a text that is not much longer`,
      () =>
        Effect.gen(function* () {
          const text = yield* read(html)
          assert.include(text, "x\n")
          assert.isBelow(text.length, 12_000_000)
        }),
      240_000
    )
  }

  it.effect("with short links does not become the address of the page many times over", () =>
    Effect.gen(function* () {
      const base = `https://example.org/${"b".repeat(4000)}/`
      const text = yield* read("<a href=x>y</a> ".repeat(60_000), base)
      assert.include(text, `y [${base}x] y [${base}x]`)
      assert.isBelow(text.length, 2_500_000)
      assert.strictEqual(text.match(/y/g)?.length, 60_000)
    })
  )
})
