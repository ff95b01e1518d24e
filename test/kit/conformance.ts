/**
 * Runs conformance rows through a codec and reports where it differs. Every row of the asked-for kind is run; a difference
 * that is meant has to be listed with its ruling by the test, and a ruling that nothing needs any more is reported too.
 */
import { readFileSync } from "node:fs"
import type { Codec, MalformedCode, ParserOptions } from "../../src/engine/codecs/Codec.ts"
import type { Json, JsonObject } from "../../src/tools/JsonText.ts"
import type { ToolSpec } from "../../src/tools/ToolCall.ts"
import { conformance, type Outcome, parsePieces, type SharedCase, specsOf, splits, tool, units } from "./codecs.ts"

/** Matched against `id [mode]: difference`, so that a ruling can say which row and which difference it means. */
export type Ruling = readonly [rows: RegExp, why: string]

export interface Report {
  readonly ran: number
  /** Differences no ruling covers, then rulings no difference needs. */
  readonly problems: ReadonlyArray<string>
  /** Rows that a ruling makes us read more strictly. */
  readonly ruled: number
}

const page = readFileSync(new URL("../../docs/codecs.md", import.meta.url), "utf8")

/** What docs/codecs.md must say about the rows of a family, or nothing where it does. */
export const undocumented = (family: string, { problems, ran, ruled }: Report): ReadonlyArray<string> => {
  const row = `| ${family} | ${ran} | ${ran - ruled} | ${ruled} |`
  return [...problems, ...(page.includes(`\n${row}\n`) ? [] : [`docs/codecs.md needs the row ${row}`])]
}

const judge = (ran: number, differences: ReadonlyMap<string, string>, rulings: ReadonlyArray<Ruling>): Report => {
  const lines = [...differences].map(([id, what]) => `${id}: ${what}`)
  const open = lines.filter((line) => !rulings.some(([rows]) => rows.test(line)))
  const idle = rulings
    .filter(([rows]) => !lines.some((line) => rows.test(line)))
    .map(([rows, why]) => `no row needs the ruling ${rows} (${why})`)
  return { ran, problems: [...open, ...idle], ruled: lines.length - open.length }
}

interface ParseRow {
  readonly id: string
  readonly family: string
  readonly raw_output: string
  readonly mode: string
  readonly chunks?: ReadonlyArray<string>
  readonly expected_content: string | null
  readonly content_asserted: boolean
  readonly expected_reasoning: string | null
  readonly reasoning_asserted: boolean
  readonly expected_calls: ReadonlyArray<ExpectedCall> | null
  readonly tools: ReadonlyArray<{ readonly function?: ToolSpec } & Partial<ToolSpec>> | null
  readonly thinking_prefilled?: boolean
  readonly expects_some_call?: boolean
}

interface ExpectedCall {
  readonly name: string | null
  readonly arguments: Json
  readonly match: "exact" | "subset" | "any" | "text-contains" | "text" | "partial-text"
}

export interface ParseOptions {
  readonly rulings?: ReadonlyArray<Ruling>
  /** Puts the markers around a row that is only the inside of a call. */
  readonly wrap?: (body: string) => string
  /** Rows of this kind only. */
  readonly rows?: (row: { readonly id: string; readonly raw_output: string; readonly mode: string }) => boolean
  readonly thinkCalls?: ParserOptions["thinkCalls"]
}

/** Parses every row of a family, whole, in its chunks and unit by unit; `undefined` where there is no data. */
export const parseReport = (codec: Codec, family: string, options: ParseOptions = {}): Report | undefined => {
  const rows = conformance<ParseRow>("tool-call-parse")?.filter(
    (row) => row.family === family && (options.rows === undefined || options.rows(row))
  )
  if (rows === undefined) return undefined
  const differences = new Map<string, string>()
  for (const row of rows) {
    const what = parseDifference(codec, row, options)
    if (what !== undefined) differences.set(`${row.id} [${row.mode}]`, what)
  }
  return judge(rows.length, differences, options.rulings ?? [])
}

const toolsOf = (row: ParseRow): ReadonlyArray<ToolSpec> => {
  if (row.tools !== null && row.tools.length > 0) {
    return row.tools.map((one) => {
      const spec = one.function ?? one
      return {
        name: spec.name!,
        description: spec.description ?? "",
        parameters: spec.parameters ?? { type: "object" }
      }
    })
  }
  const named = (row.expected_calls ?? []).map((call) => call.name).filter((name): name is string => name !== null)
  return [...new Set([...named, "some_tool"])].map((name) => tool(name))
}

const parseDifference = (codec: Codec, row: ParseRow, options: ParseOptions): string | undefined => {
  const isBody = row.mode === "call-body" || row.mode === "arguments-body"
  const text = isBody ? (options.wrap?.(row.raw_output) ?? row.raw_output) : row.raw_output
  const parserOptions: ParserOptions = {
    tools: toolsOf(row),
    reasoningOpen: row.thinking_prefilled === true,
    ...(options.thinkCalls === undefined ? {} : { thinkCalls: options.thinkCalls })
  }
  const run = (pieces: ReadonlyArray<string>) => parsePieces(codec, pieces, parserOptions)
  const whole = run([text])
  for (const pieces of [units(text), isBody ? [text] : (row.chunks ?? [text])]) {
    if (JSON.stringify(run(pieces)) !== JSON.stringify(whole)) return "the outcome depends on how the text is cut"
  }
  const action = whole.action
  if (action._tag === "Malformed") return `malformed ${action.code}: ${action.reason.slice(0, 60)}`
  const calls = action._tag === "ToolCalls" ? action.calls : []
  if (row.expected_calls !== null) {
    if (calls.length !== row.expected_calls.length)
      return `${calls.length} calls, expected ${row.expected_calls.length}`
    for (const [index, expected] of row.expected_calls.entries()) {
      const call = calls[index]!
      if (expected.name !== null && call.name !== expected.name) return `name ${call.name}, expected ${expected.name}`
      if (!argumentsMatch(call.arguments, expected)) {
        return `arguments ${JSON.stringify(call.arguments)}, expected ${JSON.stringify(expected.arguments)}`
      }
    }
  }
  if (row.content_asserted && !isBody && whole.text.trim() !== (row.expected_content ?? "").trim()) {
    return `text ${JSON.stringify(whole.text)}, expected ${JSON.stringify(row.expected_content)}`
  }
  const reasoning = action.reasoning ?? ""
  if (row.reasoning_asserted && reasoning !== (row.expected_reasoning ?? "").trim()) {
    return `reasoning ${JSON.stringify(reasoning)}, expected ${JSON.stringify(row.expected_reasoning)}`
  }
  return undefined
}

const argumentsMatch = (actual: Json, expected: ExpectedCall): boolean => {
  if (expected.match === "exact") return same(actual, expected.arguments)
  if (expected.match === "subset") return contains(actual, expected.arguments)
  return true
}

const same = (left: Json, right: Json): boolean => {
  if (typeof left !== "object" || left === null || typeof right !== "object" || right === null) return left === right
  const [one, other] = [left as JsonObject, right as JsonObject]
  const keys = Object.keys(one)
  return (
    Array.isArray(left) === Array.isArray(right) &&
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && same(one[key]!, other[key]!))
  )
}

const contains = (actual: Json, expected: Json): boolean => {
  if (typeof expected !== "object" || expected === null || Array.isArray(expected)) return same(actual, expected)
  return (
    typeof actual === "object" &&
    actual !== null &&
    Object.entries(expected as JsonObject).every(
      ([key, value]) => Object.hasOwn(actual, key) && contains((actual as JsonObject)[key]!, value)
    )
  )
}

/** The words of the shared cases for our codes. */
const meanings: Readonly<Record<string, ReadonlyArray<MalformedCode>>> = {
  unclosed_envelope: ["unclosed_call"],
  call_outside_envelope: ["wrong_envelope"],
  envelope_in_code_block: ["call_in_code_block"],
  missing_open_tag: ["missing_opener"],
  missing_close_tag: ["missing_closer", "unclosed_call"],
  empty_envelope: ["empty_call"],
  trailing_text: ["text_after_call"],
  bad_header: ["wrong_envelope"],
  invalid_call_syntax: ["invalid_json"],
  bad_parameter_tag: ["wrong_envelope"]
}

/**
 * What is wrong with how a codec ends a shared case: whole, in its chunks, unit by unit and at every cut. `ruled` is the
 * outcome where the rulings choose among what a case allows.
 */
export const sharedProblems = (
  codec: Codec,
  shared: SharedCase,
  ruled?: Outcome["action"]["_tag"]
): ReadonlyArray<string> => {
  const { expected, raw_model_output: text } = shared
  const reason = shared.stop === "length" ? "length" : "eog"
  const options: ParserOptions = { tools: specsOf(shared), reasoningOpen: shared.reasoning_open === true }
  const run = (pieces: ReadonlyArray<string>) => parsePieces(codec, pieces, options, reason)
  const whole = run([text])
  const action = whole.action
  const tags = { tool_calls: "ToolCalls", final_text: "FinalText", malformed: "Malformed" } as const
  // What only the validator can reject must come out of the codec as the call it is.
  const wanted = ruled ?? (expected.layer === "validate" ? "ToolCalls" : tags[expected.action])
  const problems: Array<string> = []
  if (action._tag !== wanted) problems.push(`${action._tag}, expected ${wanted}: ${JSON.stringify(action)}`)
  if (action._tag === "Malformed" && expected.errors !== undefined) {
    const codes: ReadonlyArray<string> = expected.errors.flatMap(
      (code): ReadonlyArray<string> => meanings[code] ?? [code]
    )
    if (!codes.includes(action.code)) problems.push(`${action.code}, expected ${codes}`)
  }
  const calls = action._tag === "ToolCalls" ? action.calls : action._tag === "Malformed" ? action.partial : []
  const plain = calls.map((call) => ({ name: call.name, arguments: call.arguments }))
  if (
    expected.calls !== undefined &&
    (plain.length !== expected.calls.length ||
      !plain.every((call, index) => same(call, expected.calls![index]! as unknown as JsonObject)))
  ) {
    problems.push(`calls ${JSON.stringify(plain)}`)
  }
  if (expected.text !== undefined && whole.text.trim() !== expected.text)
    problems.push(`shown ${JSON.stringify(whole.text)}`)
  for (const pieces of [units(text), shared.chunks ?? [text], ...splits(text)]) {
    if (JSON.stringify(run(pieces)) !== JSON.stringify(whole))
      problems.push(`depends on the cut ${JSON.stringify(pieces)}`)
  }
  return problems
}
