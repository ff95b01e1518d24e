/**
 * Rows of the Berkeley Function Calling Leaderboard (single turn) as conversations with one blank slot, and as the suite that
 * decides about them. Reads the rows' own form (docs/evaluation.md); fetches nothing.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { JsonObject } from "../../../tools/JsonText.ts"
import type { Conversation, Message, ToolDefinition } from "../../conversation/Conversation.ts"
import type { Named } from "../Matching.ts"
import type { Case, Suite } from "../Suite.ts"
import { schemaOf } from "./BfclTypes.ts"

const Parameters = Schema.Record(Schema.String, Schema.Array(Schema.Json))

const Row = Schema.Struct({
  /** `bfcl/simple_python_0` */
  id: Schema.NonEmptyString,
  category: Schema.NonEmptyString,
  /** Turns of messages. There is one turn. */
  question: Schema.Array(
    Schema.Array(Schema.Struct({ role: Schema.Literals(["system", "user", "assistant"]), content: Schema.String }))
  ),
  tools: Schema.Array(
    Schema.Struct({
      name: Schema.NonEmptyString,
      description: Schema.optionalKey(Schema.String),
      parameters: Schema.Record(Schema.String, Schema.Json)
    })
  ),
  expect: Schema.Literals(["calls", "some_call", "no_call"]),
  /** For each call, under the tool's name, the values each parameter may have. */
  possible_answers: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.Record(Schema.String, Parameters))))
})

export type Row = typeof Row.Type

const decode = Schema.decodeUnknownResult(Schema.fromJsonString(Row))

/** The rows of a text, one JSON object a line; or what is wrong with the first line that is none. */
export const read = (text: string): Result.Result<ReadonlyArray<Row>, string> => {
  const rows: Array<Row> = []
  for (const [at, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue
    const row = decode(line)
    if (Result.isFailure(row)) return Result.fail(`line ${at + 1} is no row of the leaderboard: ${row.failure.message}`)
    if (row.success.question.length !== 1) {
      return Result.fail(
        `line ${at + 1}: ${row.success.id} has ${row.success.question.length} turns; rows of one are read`
      )
    }
    rows.push(row.success)
  }
  return rows.length === 0 ? Result.fail("there is no row in it") : Result.succeed(rows)
}

/** Dots are nothing a tool's name has here. The leaderboard replaces them too, for models that cannot have them. */
export const toolName = (name: string): string => name.replaceAll(".", "_")

/** What the row's conversation is called. */
export const nameOf = ({ id }: Row): string => id.replace(/^bfcl\//, "").replaceAll(/[^A-Za-z0-9_.-]/g, "_")

const toolOf = ({ description = "", name, parameters }: Row["tools"][number]): ToolDefinition => ({
  name: toolName(name),
  description,
  input_schema: schemaOf(parameters as JsonObject)
})

export const conversationOf = ({ category, question, tools }: Row): Conversation => ({
  meta: { model: "noop", binding: { category }, tools: tools.map(toolOf) },
  session: [...question[0]!.map(({ content, role }): Message => ({ role, content })), { role: "assistant" }]
})

const answersOf = ({ possible_answers }: Row) =>
  (possible_answers ?? []).flatMap((answer) =>
    Object.entries(answer).map(([name, parameters]) => ({ name: toolName(name), parameters }))
  )

export interface SuiteOptions {
  /** A right call that our validation refuses is not right. Default true. */
  readonly legal?: boolean
}

const caseOf = (row: Row, legal: boolean): Case => ({
  name: nameOf(row),
  assertions: [
    {
      type: "bfcl_calls",
      expect: row.expect,
      // Where any call will do, nobody says with which arguments.
      ...(row.expect === "calls" ? { answers: answersOf(row), legal } : {})
    }
  ]
})

/** One case per row. */
export const suiteOf = (rows: ReadonlyArray<Row>, { legal = true }: SuiteOptions = {}): Suite => ({
  name: "bfcl",
  cases: rows.map((row) => caseOf(row, legal))
})

export const conversationsOf = (rows: ReadonlyArray<Row>): ReadonlyArray<Named> =>
  rows.map((row) => ({ name: nameOf(row), conversation: conversationOf(row) }))
