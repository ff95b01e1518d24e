import { assert, describe, it } from "@effect/vitest"
import { cautious } from "../../src/tools/Contract.ts"
import { copyOf, maxStagedBytes, maxStatements, stagingFault } from "../../src/tools/Staging.ts"

const stages = cautious({ risk: "local-write", ledger: "atomic", stages: true })
const one = { sql: "insert into t values ($1)", parameters: ["x"] }

describe("a statement that is handed over", () => {
  it("is plain data of its own, whatever the tool does with its buffers afterwards", () => {
    const bytes = Uint8Array.from([1, 2])
    const parameters = [null, true, 1.5, 2n ** 63n - 1n, "é", bytes]
    const copy = copyOf({ sql: "s", parameters, rows: 1 })
    bytes.fill(9)
    parameters.length = 0
    const kept = [null, true, 1.5, 2n ** 63n - 1n, "é", Uint8Array.from([1, 2])]
    assert.deepStrictEqual(copy, { sql: "s", parameters: kept, rows: 1 })
    assert.deepStrictEqual(structuredClone(copy), copy)
    assert.deepStrictEqual(copyOf({ sql: "s" }), { sql: "s", parameters: [] })
  })

  it("is refused where it is none, with the place of the value that is at fault", () => {
    for (const wrong of [undefined, {}, Number.NaN, Infinity, 2n ** 63n, new Date(0), () => 1, Symbol("x"), [1]]) {
      assert.throws(() => copyOf({ sql: "s", parameters: [1, wrong as never] }), /parameter \$2/)
    }
    for (const wrong of [{ sql: 1 }, { sql: "s", parameters: "x" }, { sql: "s", rows: 0.5 }, { sql: "s", rows: -1 }]) {
      assert.throws(() => copyOf(wrong as never), /a staged statement has/)
    }
  })

  it("is kept up to a number and a size, which values and text share", () => {
    const many = Array.from({ length: maxStatements }, () => one)
    assert.isUndefined(stagingFault(stages, many, []))
    assert.include(stagingFault(stages, [...many, one], []), `${maxStatements + 1} with`)
    const full = { sql: "s", parameters: ["é".repeat(maxStagedBytes / 2 - 1), new Uint8Array(1)] }
    assert.isUndefined(stagingFault(stages, [full], []))
    assert.include(stagingFault(stages, [{ ...full, sql: "ss" }], []), `1 with ${maxStagedBytes + 1} bytes`)
  })

  it("is for contracts that say so, and for calls without artifacts", () => {
    for (const ledger of ["none", "external", "observe", "atomic"] as const) {
      const contract = cautious({ risk: "external", ledger })
      assert.include(stagingFault(contract, [one], []), "does not say stages")
      assert.isUndefined(stagingFault(contract, [], []))
    }
    const artifact = { name: "a", mediaType: "b", bytes: new Uint8Array() }
    assert.include(stagingFault(stages, [one], [artifact]), "artifacts")
    assert.isUndefined(stagingFault(stages, [], [artifact]))
  })
})
