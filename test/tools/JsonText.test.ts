import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import * as JsonText from "../../src/tools/JsonText.ts"

const codeOf = (text: string, maxDepth?: number): string => {
  const parsed = JsonText.parse(text, maxDepth === undefined ? {} : { maxDepth })
  return Result.isFailure(parsed) ? parsed.failure.code : "accepted"
}
const faultOf = (text: string) => {
  const parsed = JsonText.parse(text)
  assert.isTrue(Result.isFailure(parsed), text)
  return Result.isFailure(parsed) ? parsed.failure : assert.fail()
}
const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth)

describe("JsonText.parse", () => {
  it("reads what JSON.parse reads, to the same value", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 8 }), (text) => {
        const value = JSON.parse(text)
        const strict = JsonText.parse(text)
        // Generated numbers may be integers no double can hold; then and only then the two differ.
        if (Result.isFailure(strict)) assert.include(["unsafe_integer", "lone_surrogate"], strict.failure.code)
        else assert.deepStrictEqual(strict.success, value)
      })
    )
  })

  it("accepts no text that JSON.parse refuses", () => {
    const characters = fc.constantFrom(..."[]{},:\"\\u0123456789eE+-.truefalsn \t\n'a\u0000".split(""))
    fc.assert(
      fc.property(fc.array(characters, { maxLength: 24 }), (parts) => {
        const text = parts.join("")
        if (Result.isSuccess(JsonText.parse(text))) JSON.parse(text)
      }),
      { numRuns: 5_000 }
    )
  })

  it("refuses a duplicate key at any level, also when the spellings differ", () => {
    assert.deepInclude(faultOf(`{"a":1,"b":{"c":1, "\\u0063":2}}`), { code: "duplicate_key", position: 19 })
    const wide = Array.from({ length: 50 }, (_, index) => `"k${index}":0`).join(",")
    assert.strictEqual(codeOf(`{${wide}}`), "accepted")
    assert.strictEqual(codeOf(`{${wide},"k7":0}`), "duplicate_key")
    assert.strictEqual(codeOf(`[{"a":1},{"a":1}]`), "accepted")
  })

  it("finds the one key that is there twice, however wide and deep the objects around, before and inside are", () => {
    interface Members {
      readonly members: ReadonlyArray<readonly [number, unknown]>
    }
    const keys = fc.uniqueArray(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 24 })
    const tree = fc.letrec<{ readonly object: Members; readonly value: unknown }>((tie) => ({
      object: fc
        .tuple(keys, fc.array(tie("value"), { maxLength: 4 }))
        .map(([names, values]) => ({ members: names.map((name, at) => [name, values[at] ?? null] as const) })),
      value: fc.oneof(
        { depthSize: "small" },
        fc.constant(null),
        fc.array(tie("value"), { maxLength: 3 }),
        tie("object")
      )
    }))
    /** The text, with one key of the object `which` (counted as they end) written once more at its end. */
    const written = (root: Members, which: number, again: number) => {
      let objects = 0
      const write = (value: unknown): string => {
        if (Array.isArray(value)) return `[${value.map(write).join(",")}]`
        if (value === null) return "null"
        const { members } = value as Members
        const parts = members.map(([name, inner]) => `"k${name}":${write(inner)}`)
        if (objects++ === which) parts.push(`"k${members[again % members.length]![0]}":0`)
        return `{${parts.join(",")}}`
      }
      return { text: write(root), objects }
    }
    let wide = 0
    fc.assert(
      fc.property(tree.object, fc.nat(), fc.nat(), (root, which, again) => {
        const { objects, text } = written(root, -1, 0)
        assert.strictEqual(codeOf(text, 100), "accepted", text)
        const twice = written(root, which % objects, again)
        assert.strictEqual(codeOf(twice.text, 100), "duplicate_key", twice.text)
        // What a broken text left open does not reach into the next.
        assert.strictEqual(codeOf(text, 100), "accepted", text)
        if (root.members.length > 8 && objects > 2) wide += 1
      }),
      { numRuns: 500 }
    )
    assert.isAbove(wide, 20)
  })

  it("keeps __proto__ an ordinary key", () => {
    const value = Result.getOrThrow(JsonText.parse(`{"__proto__":{"polluted":true},"a":1}`)) as JsonText.JsonObject
    assert.deepStrictEqual(Object.keys(value), ["__proto__", "a"])
    assert.isUndefined((value as { polluted?: unknown }).polluted)
    assert.strictEqual(codeOf(`{"__proto__":1,"__proto__":2}`), "duplicate_key")
    assert.strictEqual(JsonText.canonical(value), `{"__proto__":{"polluted":true},"a":1}`)
  })

  it("refuses integers that a double cannot tell apart and takes the last safe one", () => {
    assert.strictEqual(codeOf("[9007199254740991,-9007199254740991]"), "accepted")
    assert.deepInclude(faultOf("[1, 9007199254740992]"), { code: "unsafe_integer", position: 4 })
    assert.strictEqual(codeOf("-9007199254740992"), "unsafe_integer")
    assert.strictEqual(codeOf("9007199254740993.0"), "unsafe_integer")
    assert.strictEqual(codeOf("6.02e23"), "accepted")
  })

  it("refuses numbers that overflow, and NaN", () => {
    assert.strictEqual(codeOf("1e400"), "number_out_of_range")
    assert.strictEqual(codeOf("-1e400"), "number_out_of_range")
    assert.strictEqual(codeOf("NaN"), "invalid_json")
    assert.strictEqual(codeOf("1e-400"), "accepted")
  })

  it("refuses lone surrogates, escaped or raw, and accepts pairs", () => {
    for (const text of [`"\\ud800"`, `"\\udc00"`, `"\\ud800\\u0041"`, `"\ud800x"`, `"\udc00"`, `{"\\ud800":1}`]) {
      assert.strictEqual(codeOf(text), "lone_surrogate", JSON.stringify(text))
    }
    assert.strictEqual(Result.getOrThrow(JsonText.parse(`"\\ud83d\\ude00 😀"`)), "😀 😀")
  })

  it("counts open arrays and objects against the depth", () => {
    assert.strictEqual(codeOf(nested(32)), "accepted")
    assert.deepInclude(faultOf(nested(33)), { code: "too_deep", position: 32 })
    assert.strictEqual(codeOf(nested(100), 100), "accepted")
    assert.strictEqual(codeOf("[".repeat(100_000), 1_000_000), "invalid_json")
  })

  it("points at text after the value", () => {
    assert.deepInclude(faultOf(`{"a":1} x`), { code: "trailing_characters", position: 8 })
    assert.strictEqual(codeOf(` \r\n\t{} \n`), "accepted")
  })

  it("says where and what, and marks only texts that end too early as incomplete", () => {
    assert.deepInclude(faultOf(`{"a":1,}`), { code: "invalid_json", position: 7 })
    assert.match(faultOf(`{"a" 1}`).reason, /expected ":", found "1"/)
    for (const text of [
      "",
      " ",
      "{",
      `{"a`,
      `{"a"`,
      `{"a":`,
      `{"a":1`,
      "[1,",
      "tru",
      "-",
      "1.",
      "1e+",
      `"\\`,
      `"\\u12`,
      `"\ud83d`,
      `"\\ud83d`,
      `"\\ud83d\\`,
      `"\\ud83d\\u`
    ]) {
      assert.isTrue(faultOf(text).incomplete, text)
    }
    for (const text of ["}", "{,", "[1 2", "trux", `"\\x`, `"\u0001`, "01", `"\\ud83d"`]) {
      assert.isUndefined(faultOf(text).incomplete, text)
    }
  })

  it("calls every proper prefix of an object incomplete", () => {
    const values = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }))
    fc.assert(
      fc.property(values, fc.nat(), (value, cut) => {
        const text = JSON.stringify(value)
        if (codeOf(text) !== "accepted") return
        const prefix = JsonText.parsePrefix(text.slice(0, cut % text.length), 0)
        assert.isTrue(Result.isFailure(prefix) && prefix.failure.incomplete === true)
      })
    )
  })
})

describe("JsonText.parsePrefix", () => {
  it("reads one value and says where it ends, whatever follows", () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })),
        fc.string(),
        (before, value, after) => {
          const text = JSON.stringify(value)
          if (codeOf(text) !== "accepted") return
          const read = Result.getOrThrow(JsonText.parsePrefix(before + text + after, before.length))
          assert.strictEqual(read.end, before.length + text.length)
          assert.strictEqual(JsonText.canonical(read.value), JsonText.canonical(JSON.parse(text)))
        }
      )
    )
  })

  it("reports positions in the whole text", () => {
    const read = JsonText.parsePrefix(`<call>{"a":1,"a":2}`, 6)
    assert.isTrue(Result.isFailure(read) && read.failure.code === "duplicate_key" && read.failure.position === 13)
  })
})

describe("JsonText.canonical", () => {
  it("orders keys by UTF-16 code unit and writes numbers as ECMAScript does", () => {
    // The ordering example of RFC 8785, section 3.2.3.
    const value = { "\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\ud83d\ude00": 5, "\u0080": 6, "\u00f6": 7 }
    assert.strictEqual(
      JsonText.canonical(value),
      `{"\\r":2,"1":4,"\u0080":6,"\u00f6":7,"\u20ac":1,"\ud83d\ude00":5,"\ufb33":3}`
    )
    assert.strictEqual(
      JsonText.canonical([1e21, 0.000001, 1e-7, -0, 333333333.3333333]),
      "[1e+21,0.000001,1e-7,0,333333333.3333333]"
    )
  })

  it("gives equal values equal texts and different values different texts", () => {
    const shuffled = (value: JsonText.Json): JsonText.Json =>
      Array.isArray(value)
        ? value.map(shuffled)
        : JsonText.isObject(value)
          ? Object.fromEntries(
              Object.entries(value)
                .reverse()
                .map(([key, inner]) => [key, shuffled(inner)])
            )
          : value
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
        const text = JsonText.canonical(one as JsonText.Json)
        assert.strictEqual(JsonText.canonical(shuffled(one as JsonText.Json)), text)
        assert.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(one)))
        if (text === JsonText.canonical(other as JsonText.Json)) {
          assert.deepEqual(JSON.parse(JSON.stringify(one)), JSON.parse(JSON.stringify(other)))
        }
      })
    )
  })

  it("has no text for NaN", () => {
    assert.throws(() => JsonText.canonical([Number.NaN]), RangeError)
  })
})

const suite = join(process.env["WRIT_CONFORMANCE"] ?? "../shared/conformance", "json-parsing.jsonl")

describe.skipIf(!existsSync(suite))(`JSON parsing suite (${suite})`, () => {
  interface Row {
    readonly file: string
    readonly expected: "accept" | "reject" | "either"
    readonly text: string | null
  }
  const rows = existsSync(suite)
    ? readFileSync(suite, "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Row)
    : []

  it("accepts what must be accepted, but for duplicate keys", () => {
    const refused = rows.filter(
      (row) => row.expected === "accept" && row.text !== null && codeOf(row.text, 100) !== "accepted"
    )
    assert.isAbove(rows.filter((row) => row.expected === "accept").length, 50)
    assert.deepStrictEqual(refused.map((row) => `${row.file}: ${codeOf(row.text!, 100)}`).sort(), [
      "y_object_duplicated_key.json: duplicate_key",
      "y_object_duplicated_key_and_value.json: duplicate_key"
    ])
  })

  it("refuses what must be refused", () => {
    const accepted = rows.filter(
      (row) => row.expected === "reject" && row.text !== null && codeOf(row.text, 100) === "accepted"
    )
    assert.isAbove(rows.filter((row) => row.expected === "reject").length, 100)
    assert.deepStrictEqual(
      accepted.map((row) => row.file),
      []
    )
  })
})
