import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { evaluate, maxExpressionDepth, maxExpressionLength } from "../../src/tools/Arithmetic.ts"

const value = (expression: string): number => {
  const outcome = evaluate(expression)
  return typeof outcome === "number" ? outcome : assert.fail(`${expression}: ${outcome.reason}`)
}
const fault = (expression: string) => {
  const outcome = evaluate(expression)
  return typeof outcome === "number" ? assert.fail(`${expression} is ${outcome}`) : outcome
}

describe("evaluate", () => {
  it("knows precedence and associativity", () => {
    const expected: ReadonlyArray<readonly [string, number]> = [
      ["2+2*3", 8],
      ["(3 + 4) * 2", 14],
      ["-2^2", -4],
      ["(-2)^2", 4],
      ["2^3^2", 512],
      ["2**-1", 0.5],
      ["8/4/2", 1],
      ["7-3-2", 2],
      ["--3", 3],
      ["2*-3", -6],
      [".5+1.", 1.5],
      ["1e3", 1000],
      ["2e-3*1E3", 2],
      ["0*-1", 0]
    ]
    for (const [expression, result] of expected) assert.strictEqual(value(expression), result, expression)
    assert.isFalse(Object.is(value("0*-1"), -0))
  })

  it("takes the signs people type", () => {
    assert.strictEqual(value("6 × 7 − 2 ÷ 4"), 41.5)
    assert.strictEqual(value("3–1·2"), 1)
  })

  it("reads % as percent and leaves the remainder to mod", () => {
    assert.strictEqual(value("17.5% * 240"), 42)
    assert.strictEqual(value("200 + 10%"), 200.1)
    assert.strictEqual(value("mod(-7, 3)"), 2)
    assert.match(fault("10 % 3").reason, /unexpected '3' at character 6; % means percent, the remainder is mod\(a, b\)/)
  })

  it("knows functions and constants", () => {
    const expected: ReadonlyArray<readonly [string, number]> = [
      ["sqrt(16)+abs(-3)", 7],
      ["round(2.5)+round(-2.5)", 0],
      ["round(1.005, 2)", 1.01],
      ["floor(-1.5)+ceil(1.2)", 0],
      ["min(3,1,2)+max(3,1,2)", 4],
      ["ln(e)+log(1000)+log(8,2)", 7],
      ["round(sin(pi), 10)+cos(0)+tan(0)", 1],
      ["EXP(0)", 1]
    ]
    for (const [expression, result] of expected) assert.strictEqual(value(expression), result, expression)
  })

  it("rounds to fifteen digits, so that 0.1 + 0.2 is 0.3, and keeps safe integers exact", () => {
    assert.strictEqual(value("0.1+0.2"), 0.3)
    assert.strictEqual(value("2^53-1"), 9007199254740991)
    assert.strictEqual(value("1/3"), 0.333333333333333)
  })

  it("has no value for what is not a finite number", () => {
    for (const expression of [
      "1/0",
      "0/0",
      "1e308*10",
      "2^99999",
      "sqrt(-1)",
      "ln(0)",
      "0^-1",
      "mod(1,0)",
      "1e999",
      "log(8,1)"
    ]) {
      assert.isFalse(fault(expression).syntax, expression)
    }
    assert.strictEqual(fault("1+2/0").reason, "division by zero at character 4")
  })

  it("runs nothing and says where it stopped", () => {
    for (const expression of [
      "1; process.exit(1)",
      "globalThis",
      "(()=>1)()",
      "this.constructor",
      "2+2//x",
      "`1`",
      "${1}",
      "constructor",
      "__proto__(1)",
      "1 2",
      "2(3)",
      "a=1",
      "0x10",
      "1,2",
      "max()"
    ]) {
      assert.isTrue(fault(expression).syntax, expression)
    }
    assert.strictEqual(fault("(1+2))").reason, "unexpected ')' at character 6")
    assert.strictEqual(fault("2+").reason, "the expression ends where a number was expected")
    assert.strictEqual(fault("(2+1").reason, "the '(' at character 1 is not closed")
    assert.strictEqual(fault("sqrt(1,2)").reason, "sqrt takes 1 values, got 2 at character 1")
    assert.strictEqual(fault("  ").reason, "the expression is empty")
  })

  it("is bounded in length and depth", () => {
    assert.match(fault("1".repeat(maxExpressionLength + 1)).reason, /longer than/)
    assert.strictEqual(value(`${"(".repeat(maxExpressionDepth)}1${")".repeat(maxExpressionDepth)}`), 1)
    for (const open of ["(", "-", "2^", "abs("])
      assert.match(fault(`${open.repeat(maxExpressionDepth + 1)}1`).reason, /nested deeper/)
  })

  it("agrees with the language's own arithmetic on what both can say", () => {
    const leaf = fc.integer({ min: 0, max: 99 }).map((n) => ({ text: String(n), value: n }))
    const tree = fc.letrec<{ node: { text: string; value: number } }>((tie) => ({
      node: fc.oneof(
        { depthSize: "small", withCrossShrink: true },
        leaf,
        fc.tuple(tie("node"), fc.constantFrom("+", "-", "*"), tie("node")).map(([a, sign, b]) => ({
          text: `(${a.text} ${sign} ${b.text})`,
          value: sign === "+" ? a.value + b.value : sign === "-" ? a.value - b.value : a.value * b.value
        }))
      )
    })).node
    fc.assert(
      fc.property(tree, (node) => {
        if (node.text.length > maxExpressionLength || !Number.isSafeInteger(node.value)) return
        assert.strictEqual(value(node.text), node.value === 0 ? 0 : node.value)
      })
    )
  })

  it("never throws, whatever it is given", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(..."()+-*/^%,.e0123 minax".split("")) })),
        (text) => {
          const outcome = evaluate(text)
          assert.isTrue(typeof outcome !== "number" || Number.isFinite(outcome))
        }
      ),
      { numRuns: 2_000 }
    )
  })
})
