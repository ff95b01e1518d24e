import { describe, expect, it } from "vitest"
import * as Assembly from "../../../../src/effects/conversation/assemble/Assembly.ts"
import * as Matrix from "../../../../src/effects/conversation/assemble/Matrix.ts"
import { read } from "../../../../src/effects/conversation/YamlDocuments.ts"

/** The cases of a matrix, as YAML, with what the command line says. */
const cases = (matrix: string, variables: ReadonlyArray<Matrix.Variable> = [], wanted: ReadonlyArray<string> = []) => {
  const text = `model: noop\nmatrix: ${matrix}\nconversation: [{ role: assistant }]\n`
  const assembly = Assembly.decode(read({ text, line: 1 }), "a")
  return Matrix.selected(Matrix.casesOf(assembly, Matrix.withVariables(assembly.axes, variables)), wanted)
}

const names = (...args: Parameters<typeof cases>) => cases(...args).map(({ name }) => name)

describe("a matrix", () => {
  it("is every combination, axes by name and values as they are listed", () => {
    expect(names("{ tone: [warm, dry], case: [b, a] }")).toEqual(["b-warm", "b-dry", "a-warm", "a-dry"])
    expect(cases("{ tone: [warm], case: [b] }")[0]).toEqual({
      name: "b-warm",
      model: "noop",
      binding: { case: "b", tone: "warm" }
    })
  })

  it("that is absent gives one conversation called default", () => {
    for (const none of ["{}", "~"]) expect(cases(none)).toEqual([{ name: "default", model: "noop", binding: {} }])
  })

  it("has maps whose names count, and whose models go before the assembly's", () => {
    expect(cases("{ size: [{ name: small, model: m1 }, { name: large }, plain] }")).toEqual([
      { name: "small", model: "m1", binding: { size: "small" } },
      { name: "large", model: "noop", binding: { size: "large" } },
      { name: "plain", model: "noop", binding: { size: "plain" } }
    ])
  })

  it("may have two axes with a model where both say the same", () => {
    expect(cases("{ a: [{ name: x, model: m }], b: [{ name: y, model: m }] }")[0]!.model).toBe("m")
  })

  const refused: Record<string, RegExp> = {
    "{ a: [{ model: m }] }": /name is missing/,
    "{ a: [{ name: x, modle: m }] }": /unknown key; did you mean model\?/,
    "{ a: [] }": /an axis without values makes no conversation/,
    "{ a: x }": /expected a list, found a text/,
    "{ a: [~] }": /expected a text or a map with name, found nothing/,
    "{ a: [[x]] }": /found a list/,
    "{ 'a b': [x] }": /"a b" cannot be a variable/,
    "[a]": /expected a map of axes and their values, found a list/,
    "{ a: ['x/y'] }": /"x\/y" becomes part of a file's name: it has a \/ in it/,
    "{ a: ['..'] }": /begins with a dot/,
    '{ a: ["x\\0y"] }': /has a U\+0000 in it/,
    "{ a: ['.x'] }": /begins with a dot/,
    "{ a: [{ name: ../x }] }": /has a \/ in it/,
    "{ a: [nul] }": /keep this name for a device/,
    "{ a: [x, x] }": /a=x and a=x are both x\.yaml: rename a value/,
    "{ a: [a-b, a], b: [c, b-c] }": /a=a-b b=c and a=a b=b-c are both a-b-c\.yaml/,
    "{ a: [Case, case] }": /a=Case and a=case are both case\.yaml, where letter case does not count/,
    "{ a: [é, 'e\u0301'] }": /are both/,
    "{ a: [{ name: x, model: m }], b: [{ name: y, model: n }] }":
      /a=x b=y: a says m, b says n: only one axis may choose the model/,
    [`{ a: [${"x".repeat(150)}], b: [${"y".repeat(150)}] }`]: /cannot be a file: it is longer than 200 bytes/,
    [`{ a: [${Array.from({ length: 200 }, (_, n) => n)}], b: [${Array.from({ length: 200 }, (_, n) => n)}] }`]:
      /40000 conversations are more than 10000/
  }
  for (const [matrix, reason] of Object.entries(refused)) {
    it(`is refused: ${matrix.slice(0, 60)}`, () => expect(() => cases(matrix)).toThrow(reason))
  }
})

describe("what the command line says about a matrix", () => {
  it("chooses among the values of an axis, in their own order, models included", () => {
    const matrix = "{ size: [{ name: small, model: m1 }, medium, { name: large, model: m3 }] }"
    expect(
      cases(matrix, [{ axis: "size", values: ["large", "small"] }]).map(({ model, name }) => [name, model])
    ).toEqual([
      ["small", "m1"],
      ["large", "m3"]
    ])
  })

  it("adds an axis that is not there, and may say more about one in two places", () => {
    expect(names("{ b: [x] }", [{ axis: "a", values: ["new"] }])).toEqual(["new-x"])
    expect(
      names("{}", [
        { axis: "a", values: ["1"] },
        { axis: "a", values: ["2"] }
      ])
    ).toEqual(["1", "2"])
  })

  it("chooses conversations by name, or by the value of the axis called case", () => {
    expect(names("{ a: [x, y], b: [1] }", [], ["y-1"])).toEqual(["y-1"])
    expect(names("{ case: [x, y], tone: [dry, warm] }", [], ["y"])).toEqual(["y-dry", "y-warm"])
  })

  it("is refused where it names what is not there, with what is", () => {
    expect(() => cases("{ a: [x, y] }", [], ["z"])).toThrow(/--case: there is no case z: there are x, y/)
    expect(() => cases("{ a: [whales] }", [{ axis: "a", values: ["whale"] }])).toThrow(
      /--var: a has no value whale: did you mean whales\?/
    )
    expect(() => cases("{}", [{ axis: "a b", values: ["x"] }])).toThrow(/--var: "a b" cannot be a variable/)
    expect(() => cases("{}", [{ axis: "a", values: ["../x"] }])).toThrow(/--var: "..\/x" becomes part of a file's name/)
  })
})
