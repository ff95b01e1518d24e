/** Suites: read, written, and refused by file, line and place. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { kinds } from "../../../src/effects/eval/assertions/Kinds.ts"
import * as Suite from "../../../src/effects/eval/Suite.ts"

const everything = readFileSync(join(import.meta.dirname, "../../fixtures/eval/evals/everything.yaml"), "utf8")

const suite = (assertions: string) => `name: s\ncases:\n  - assertions:\n${assertions}`

const refusals: ReadonlyArray<readonly [claim: string, text: string, message: RegExp]> = [
  ["an empty text", "", /it is empty/],
  ["two documents", "name: a\ncases: []\n---\nname: b\n", /f\.yaml:3: it holds more than one document/],
  ["no YAML", "name: [", /it is no YAML/],
  ["a key twice", "name: a\nname: b\n", /f\.yaml:2: it is no YAML/],
  ["a list", "- a", /a suite is a mapping with name, cases/],
  ["no name", "cases:\n  - assertions: [{ type: calls_answered }]", /name: it must be a text/],
  ["no cases", "name: a\ncases: []", /f\.yaml:2: cases: it is empty: a suite without cases passes/],
  [
    "an unknown key, with the nearest one",
    "name: a\ncase: []",
    /f\.yaml:2: case: a suite has no "case"; did you mean cases\?/
  ],
  ["no assertions", "name: a\ncases:\n  - name: x\n    assertions: []", /cases\[0\]\.assertions: it is empty/],
  [
    "a reserved name",
    "name: a\ncases:\n  - name: case-3\n    assertions: [{ type: calls_answered }]",
    /f\.yaml:3: cases\[0\]\.name: "case-3" is what cases without a name are called/
  ],
  ["an empty when", "name: a\ncases:\n  - when: {}\n    assertions: [{ type: calls_answered }]", /when is empty/],
  [
    "a when that is no text",
    "name: a\ncases:\n  - when: { n: 3 }\n    assertions: [{ type: calls_answered }]",
    /cases\[0\]\.when\.n: .*write "3", in quotes/
  ],
  [
    "an unknown kind, with the nearest one",
    suite("      - { type: text_contain, value: x }"),
    /f\.yaml:4: cases\[0\]\.assertions\[0\]\.type: there is no kind of assertion "text_contain"; did you mean text_contains\?/
  ],
  ["no kind", suite("      - { value: x }"), /there is no kind of assertion "undefined"; there are must_call_tool/],
  ["an assertion that is no mapping", suite("      - calls_answered"), /an assertion is a mapping/],
  [
    "a field too many",
    suite("      - { type: calls_answered, tool: x }"),
    /calls_answered has no "tool"; it has no fields/
  ],
  [
    "a field too few",
    suite("      - type: text_contains"),
    /f\.yaml:4: cases\[0\]\.assertions\[0\]\.value: text_contains: /
  ],
  [
    "an operator there is none of",
    suite('      - { type: tokens, metric: total, op: "=", value: 1 }'),
    /assertions\[0\]\.op: tokens: /
  ],
  ["a count that is none", suite("      - { type: tool_call_count, op: ==, value: 1.5 }"), /assertions\[0\]\.value: /],
  ["a hash that is none", suite("      - { type: artifact_exists, sha256: abc }"), /assertions\[0\]\.sha256: /],
  [
    "a name of a variable that is none",
    suite('      - { type: program, script: { path: a }, pass_env: ["A=B"] }'),
    /pass_env\[0\]/
  ],
  [
    "an alias that grows",
    `a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]`,
    /it is no YAML/
  ]
]

describe("a suite", () => {
  for (const [claim, text, message] of refusals) {
    it(`refuses ${claim}`, () => {
      const read = Suite.parse(text, "f.yaml")
      assert.isTrue(Result.isFailure(read))
      if (Result.isFailure(read)) assert.match(read.failure.message, message)
    })
  }

  it("round-trips with every kind in it", () => {
    const read = Result.getOrThrow(Suite.parse(everything))
    const used = new Set(read.cases.flatMap(({ assertions }) => assertions.map(({ type }) => type)))
    assert.deepStrictEqual([...used].sort(), kinds.map(({ type }) => type).sort())
    const text = Suite.emit(read)
    assert.deepStrictEqual(Result.getOrThrow(Suite.parse(text)), read)
    assert.strictEqual(Suite.emit(Result.getOrThrow(Suite.parse(text))), text)
  })

  it("takes JSON, which is YAML", () => {
    const text = '{"name":"s","cases":[{"assertions":[{"type":"calls_answered"}]}]}'
    assert.strictEqual(Result.getOrThrow(Suite.parse(text)).cases.length, 1)
  })

  it("leaves what only shows when it is applied to the verdicts", () => {
    const text = suite(
      '      - { type: text_matches, pattern: "(" }\n      - { type: json_path, path: x, op: ==, value: 1 }'
    )
    assert.isTrue(Result.isSuccess(Suite.parse(text)))
  })
})
