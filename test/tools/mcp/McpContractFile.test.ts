import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { placeOf, read } from "../../../src/tools/mcp/McpContractFile.ts"

const problems = (value: unknown): ReadonlyArray<string> =>
  Result.match(read(value), {
    onFailure: (found) => found.map(({ message, path }) => `${placeOf(path)}: ${message}`),
    onSuccess: () => []
  })

const inTool = (tool: unknown) => problems({ version: 1, servers: { files: { tools: { write_file: tool } } } })
const place = "servers.files.tools.write_file"

describe("a contract file", () => {
  it("can say everything about a tool", () => {
    const whole = {
      risk: "external",
      ledger: "external",
      retry: "safe",
      reversible: false,
      evidence: { source: "sensor", describes: "the list of invoices" },
      post: "result",
      scopes: ["billing"],
      touches: [{ verb: "send", resource: "invoice:{order}" }],
      cost: 1,
      hazard: 0.5,
      key: "invoice:{order}",
      keyParameter: "key",
      version: 2,
      deadlineMillis: 1000,
      polling: false,
      failure: "unknown",
      hidden: false
    }
    assert.deepStrictEqual(inTool(whole), [])
    assert.deepStrictEqual(
      problems({ version: 1, servers: { a: { hints: "trust", default: { compensation: "undo" } } } }),
      []
    )
  })

  it("names every mistake with its place and what to do", () => {
    assert.deepStrictEqual(inTool({ risk: "raed", touchs: [], touches: [{ verb: "reed" }], cost: -1 }), [
      `${place}.touchs: there is no "touchs" here; did you mean "touches"?`,
      `${place}.risk: expected "read" or "local-write" or "external"`,
      `${place}.touches[0].verb: expected "read" or "write" or "delete" or "send" or "execute"`,
      `${place}.touches[0].resource: it is missing`,
      `${place}.cost: expected a value greater than or equal to 0`
    ])
  })

  it("says why a ledger mode or a postcondition that needs code cannot stand there", () => {
    assert.match(inTool({ ledger: "observe" })[0]!, /\.ledger: expected "external" or "none": "observe" needs a probe/)
    assert.match(inTool({ post: "looks" })[0]!, /\.post: expected "result": a file holds no code/)
  })

  it("is of version 1 and has servers", () => {
    assert.deepStrictEqual(problems({ version: 2, server: {} }), [
      'server: there is no "server" here; did you mean "servers"?',
      "version: expected 1, the only version there is",
      "servers: it is missing"
    ])
    assert.lengthOf(problems("text"), 1)
    assert.lengthOf(problems(null), 1)
  })

  it("quotes names that are not plain in places", () =>
    assert.deepStrictEqual(problems({ version: 1, servers: { s: { tools: { "a b/c": { risk: 1 } } } } }), [
      'servers.s.tools["a b/c"].risk: expected "read" or "local-write" or "external"'
    ]))
})
