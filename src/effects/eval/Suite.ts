/**
 * A suite (R-AILLY-25): which conversations are looked at, and what is asserted of each. Reading refuses what nobody can have
 * meant, by its place; what only turns out to be meaningless when it is applied (a bad pattern) is a verdict, not an error here.
 */
import { readFileSync } from "node:fs"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { type Document, isNode, LineCounter, parseAllDocuments, stringify } from "yaml"
import { reasonOf } from "../../actors/Directories.ts"
import { nearest } from "../../tools/Nearest.ts"
import { type Assertion, byType } from "./assertions/Kinds.ts"
import { SuiteError } from "./SuiteError.ts"
import { quote } from "./Verdict.ts"

export interface Case {
  /** The stem of the file the case is about. */
  readonly name?: string
  /** What the conversation's binding must hold at least. */
  readonly when?: Readonly<Record<string, string>>
  /** At least one. */
  readonly assertions: ReadonlyArray<Assertion>
}

export interface Suite {
  readonly name: string
  /** At least one. */
  readonly cases: ReadonlyArray<Case>
}

/** How cases without a name are called. */
export const unnamed = (index: number): string => `case-${index}`

const reserved = /^case-\d+$/

/** Thrown by the readers below, and turned into an error with file and line. */
class Refusal extends Error {
  readonly at: ReadonlyArray<string | number>
  constructor(at: ReadonlyArray<string | number>, reason: string) {
    super(reason)
    this.at = at
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

type At = ReadonlyArray<string | number>

/** The object at a place, with these keys and no others. */
const objectAt = (value: unknown, at: At, keys: ReadonlyArray<string>, what: string) => {
  if (!isObject(value)) throw new Refusal(at, `${what} is a mapping with ${keys.join(", ")}`)
  for (const key of Object.keys(value)) {
    if (keys.includes(key)) continue
    const near = nearest(key, keys)
    throw new Refusal(
      [...at, key],
      `${what} has no ${quote(key)}${near === undefined ? `; it has ${keys.join(", ")}` : `; did you mean ${near}?`}`
    )
  }
  return value
}

const listAt = (value: unknown, at: At, of: string): ReadonlyArray<unknown> => {
  if (!Array.isArray(value)) throw new Refusal(at, `it must be a list of ${of}`)
  if (value.length === 0) throw new Refusal(at, `it is empty: a suite without ${of} passes whatever happens`)
  return value
}

const textAt = (value: unknown, at: At): string => {
  if (typeof value !== "string" || value.trim() === "") throw new Refusal(at, "it must be a text that is not empty")
  return value
}

const explain = SchemaIssue.makeFormatterStandardSchemaV1()

const decoders = new Map(
  [...byType].map(([type, { schema }]) => [
    type,
    Schema.decodeUnknownResult(schema, { errors: "all", onExcessProperty: "error" })
  ])
)

const keysOf = (value: unknown): ReadonlyArray<string> => (isObject(value) ? Object.keys(value) : [])

const assertionAt = (value: unknown, at: At): Assertion => {
  if (!isObject(value)) throw new Refusal(at, "an assertion is a mapping with a type and its fields")
  const { type } = value
  const kind = typeof type === "string" ? byType.get(type) : undefined
  if (kind === undefined) {
    const near = typeof type === "string" ? nearest(type, [...byType.keys()]) : undefined
    const hint = near === undefined ? `there are ${[...byType.keys()].join(", ")}` : `did you mean ${near}?`
    throw new Refusal([...at, "type"], `there is no kind of assertion ${quote(String(type))}; ${hint}`)
  }
  const extra = keysOf(value).find((key) => key !== "type" && !kind.fields.includes(key))
  if (extra !== undefined) {
    const fields = kind.fields.length === 0 ? "no fields" : kind.fields.join(", ")
    throw new Refusal([...at, extra], `${kind.type} has no ${quote(extra)}; it has ${fields}`)
  }
  const read = decoders.get(kind.type)!(value)
  if (Result.isSuccess(read)) return read.success as unknown as Assertion
  const [first] = explain(read.failure.issue).issues
  const path = (first?.path ?? []).map((key) => (typeof key === "number" ? key : String(key)))
  throw new Refusal([...at, ...path], `${kind.type}: ${first?.message ?? "it does not fit"}`)
}

const whenAt = (value: unknown, at: At): Readonly<Record<string, string>> => {
  if (!isObject(value)) throw new Refusal(at, "when is a mapping of axes to values")
  const entries = Object.entries(value)
  if (entries.length === 0) throw new Refusal(at, "when is empty; leave it out to match every conversation")
  for (const [axis, wanted] of entries) {
    if (typeof wanted !== "string") {
      throw new Refusal([...at, axis], `values of a binding are texts: write ${quote(String(wanted))}, in quotes`)
    }
  }
  return value as Readonly<Record<string, string>>
}

const caseAt = (value: unknown, at: At): Case => {
  const { assertions, name, when } = objectAt(value, at, ["name", "when", "assertions"], "a case")
  if (typeof name === "string" && reserved.test(name)) {
    throw new Refusal([...at, "name"], `${quote(name)} is what cases without a name are called; choose another`)
  }
  return {
    ...(name === undefined ? {} : { name: textAt(name, [...at, "name"]) }),
    ...(when === undefined ? {} : { when: whenAt(when, [...at, "when"]) }),
    assertions: listAt(assertions, [...at, "assertions"], "assertions").map((one, index) =>
      assertionAt(one, [...at, "assertions", index])
    )
  }
}

const suiteOf = (value: unknown): Suite => {
  const { cases, name } = objectAt(value, [], ["name", "cases"], "a suite")
  return {
    name: textAt(name, ["name"]),
    cases: listAt(cases, ["cases"], "cases").map((one, index) => caseAt(one, ["cases", index]))
  }
}

const placeOf = (at: At): string =>
  at
    .map((key) => (typeof key === "number" ? `[${key}]` : `.${key}`))
    .join("")
    .replace(/^\./, "")

/** The line of a place, or of the nearest thing around it that is there. */
const lineOf = (document: Document, at: At, lines: LineCounter): number | undefined => {
  for (let length = at.length; length > 0; length--) {
    const node = document.getIn(at.slice(0, length), true)
    if (isNode(node) && node.range != null) return lines.linePos(node.range[0]).line
  }
  return undefined
}

const refused = (path: string, place: string, reason: string, line?: number): Result.Result<never, SuiteError> =>
  Result.fail(new SuiteError({ path, place, reason, ...(line === undefined ? {} : { line }) }))

/** The suite a text holds, or the first thing that is wrong with it. `path` only names the file in errors. */
export const parse = (text: string, path = ""): Result.Result<Suite, SuiteError> => {
  const lines = new LineCounter()
  const documents = parseAllDocuments(text, { lineCounter: lines, uniqueKeys: true, prettyErrors: false })
  if (!Array.isArray(documents) || documents.length === 0)
    return refused(path, "", "it is empty; a suite has name and cases")
  const [document, second] = documents
  const [fault] = documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])
  if (fault !== undefined) return refused(path, "", `it is no YAML: ${fault.message}`, lines.linePos(fault.pos[0]).line)
  if (second !== undefined) {
    return refused(path, "", "it holds more than one document; a suite is one", lines.linePos(second.range[0]).line)
  }
  try {
    return Result.succeed(suiteOf(document!.toJS({ maxAliasCount: 100 })))
  } catch (cause) {
    if (cause instanceof Refusal)
      return refused(path, placeOf(cause.at), cause.message, lineOf(document!, cause.at, lines))
    if (cause instanceof ReferenceError) return refused(path, "", `it is no YAML: ${cause.message}`)
    throw cause
  }
}

/** The text of a suite: read again, it is the same suite. */
export const emit = (suite: Suite): string => stringify(suite, { lineWidth: 0, aliasDuplicateObjects: false })

/** Reads and parses a file. */
export const load = (path: string): Effect.Effect<Suite, SuiteError> =>
  Effect.try({
    try: () => readFileSync(path, "utf8"),
    catch: (cause) => new SuiteError({ path, place: "", reason: `it cannot be read: ${reasonOf(cause)}` })
  }).pipe(Effect.flatMap((text) => Effect.fromResult(parse(text, path))))
