import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import { compile, markOf, type Redactor } from "../../src/actors/Redaction.ts"
import type { Json } from "../../src/tools/JsonText.ts"

const make = (rules: Readonly<Record<string, string>>, options: { readonly cpuMillis?: number } = {}) =>
  Effect.map(
    compile(
      Object.entries(rules).map(([name, pattern]) => ({ name, pattern })),
      options
    ),
    (redactor): Redactor => redactor!
  )

const problem = (name: string, pattern: string) =>
  Effect.map(Effect.flip(compile([{ name, pattern }])), ({ message }) => message)

describe("redaction rules", () => {
  it.effect("replace every match by the name of its rule, and count", () =>
    Effect.gen(function* () {
      const { text } = yield* make({ key: "sk-[a-z0-9]{4,}", iban: "DE\\d{4}" })
      assert.deepStrictEqual(text("a sk-abcd1 b DE1234 c sk-zzzz"), {
        value: "a [redacted: key] b [redacted: iban] c [redacted: key]",
        count: 3
      })
      assert.deepStrictEqual(text("nothing of it"), { value: "nothing of it", count: 0 })
    })
  )

  it.effect("replace matches that overlap as one", () =>
    Effect.gen(function* () {
      const { text } = yield* make({ first: "abc", second: "bcd+" })
      assert.deepStrictEqual(text("xabcdddx"), { value: "x[redacted: first]x", count: 1 })
    })
  )

  it.effect("read JavaScript's syntax, look-behinds and flags inside included", () =>
    Effect.gen(function* () {
      const { text } = yield* make({ token: "(?<=token=)\\w+", name: "(?i)k\\u00e9y", face: "\\u{1F600}+" })
      assert.strictEqual(text("token=abc KÉY 😀😀").value, "token=[redacted: token] [redacted: name] [redacted: face]")
    })
  )

  it.effect("find a secret however often it was quoted as JSON, and replace the whole of it there", () =>
    Effect.gen(function* () {
      const secret = 'a"b\\c\né/z'
      const { text } = yield* make({ secret: 'a"b\\\\c\\n\\u00e9/z' })
      let quoted = `<${secret}>`
      for (let level = 0; level < 4; level++) {
        assert.deepStrictEqual(text(quoted).count, 1, `level ${level}`)
        assert.notInclude(text(quoted).value, "b\\")
        quoted = JSON.stringify(quoted)
      }
      assert.strictEqual(text('"a\\u0022b\\\\c\\n\\u00E9\\/z"').value, '"[redacted: secret]"')
    })
  )

  it.effect("find it in keys, texts and numbers of JSON, and where it spans several of them", () =>
    Effect.gen(function* () {
      const { json } = yield* make({ card: "4111\\d{4}", pair: '"pin":\\s*"?\\d+' })
      assert.deepStrictEqual(json({ a: 41112222, b: ["x 41113333"], k41114444: null, ok: true }), {
        value: { a: "[redacted: card]", b: ["x [redacted: card]"], "k[redacted: card]": null, ok: true },
        count: 3
      })
      assert.deepStrictEqual(json({ who: "me", pin: 12 }), { value: "[redacted: pair]", count: 1 })
      const untouched = { a: 1, b: "two" }
      assert.strictEqual(json(untouched).value, untouched)
    })
  )

  it.effect("keep both of two keys that are redacted alike", () =>
    Effect.gen(function* () {
      const { json } = yield* make({ key: "s\\d" })
      assert.deepStrictEqual(json({ s1: 1, s2: 2 }).value, { "[redacted: key]": 1, "[redacted: key] 2": 2 })
    })
  )

  it.effect("are refused by name when they cannot be used", () =>
    Effect.gen(function* () {
      assert.include(yield* problem("open", "["), "redaction rule open: it is not a regular expression")
      assert.include(yield* problem("ahead", "a(?=b)"), "ahead: look-ahead")
      assert.include(yield* problem("back", "(a)\\1"), "back: look-ahead and references back")
      assert.include(yield* problem("empty", "x*"), "empty: it matches the empty text")
      assert.include(yield* problem("none", ""), "none: its pattern is empty")
      assert.include(yield* problem("1st", "a"), "1st: a name is")
      assert.include(yield* problem("long", "a".repeat(1001)), "long: its pattern is longer")
      assert.include(yield* problem("large", "(\\pL{100}\\pN{100}){5}"), "large: it is too large")
      const twice = yield* Effect.flip(
        compile([
          { name: "a", pattern: "x" },
          { name: "a", pattern: "y" }
        ])
      )
      assert.include(twice.message, "a: it is there twice")
    })
  )

  it.effect("take no time to speak of where a backtracking engine would take forever", () =>
    Effect.gen(function* () {
      const { text } = yield* make({ evil: "(a+)+$", worse: "(x|x)*y", worst: "([a-z]+)*\\d{9}" })
      assert.strictEqual(text(`${"a".repeat(20_000)}!`).count, 0)
      assert.strictEqual(text("x".repeat(20_000)).count, 0)
    })
  )

  it.effect("replace the whole text when a rule has used up its time in it", () =>
    Effect.gen(function* () {
      const { text } = yield* make({ evil: "a(?:[^b]*b)?" }, { cpuMillis: 5 })
      assert.deepStrictEqual(text("a".repeat(50_000)), { value: markOf("evil"), count: 1 })
    })
  )

  it.effect("leave nothing of a secret in any JSON value that holds it", () =>
    Effect.gen(function* () {
      const { json, text } = yield* make({ secret: "S3cr3t-\\d+" })
      const value = fc.letrec<{ readonly value: Json }>((tie) => ({
        value: fc.oneof(
          fc.string(),
          fc.integer(),
          fc.constantFrom("S3cr3t-42", 'say "S3cr3t-7"\n', JSON.stringify({ k: "S3cr3t-9" })),
          fc.array(tie("value"), { maxLength: 3 }),
          fc.dictionary(fc.oneof(fc.string(), fc.constant("S3cr3t-1")), tie("value"), { maxKeys: 3 })
        ) as fc.Arbitrary<Json>
      })).value
      fc.assert(
        fc.property(value, (held) => {
          const written = JSON.stringify(json(held).value)
          assert.notMatch(written, /S3cr3t-\d/)
          assert.notMatch(text(JSON.stringify(held)).value, /S3cr3t-\d/)
        })
      )
    })
  )
})
