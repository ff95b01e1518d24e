/**
 * Statements of tools that are to be part of a ledger's transaction, before a database sees them: what all databases have in
 * common. What was refused becomes a failure that is known to have left nothing.
 */

import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { plain } from "../tools/Execution.ts"
import { answerText, type StagedStatement } from "../tools/ToolCall.ts"
import {
  type Command,
  type Decision,
  decide,
  type LedgerEntry,
  type Present,
  type SettledOutcome
} from "./EffectLedgerEntry.ts"

/** A statement that is not executed, or not kept; the message says why, for a model. */
export class Refused extends Schema.TaggedError<Refused>()("Refused", { message: Schema.String }) {}

export const refused = (message: string): Refused => new Refused({ message })

/** Statements that change or read rows; only of those it is known how many. */
const countsRows = /^\s*(?:insert|update|delete|replace|merge|with|select|values)\b/i

/** Throws `Refused` where the values and their places in the text do not fit. */
export const checkText = ({ parameters, rows, sql }: StagedStatement): void => {
  const named = new Set(Array.from(sql.matchAll(/\$(\d+)/g), ([, number]) => Number(number)))
  const wanted = parameters.map((_, at) => at + 1)
  const odd = [...named].find((number) => !wanted.includes(number)) ?? wanted.find((number) => !named.has(number))
  if (odd !== undefined) {
    throw refused(
      `it has ${parameters.length} parameters, and $${odd} is ${named.has(odd) ? "none of them" : "not used"}`
    )
  }
  if (rows !== undefined && !countsRows.test(sql)) {
    throw refused("rows is for statements that change or read rows")
  }
}

/** Throws `Refused` where it has to concern another number of rows. */
export const checkRows = ({ rows }: StagedStatement, found: number): void => {
  if (rows !== undefined && rows !== found) throw refused(`it concerns ${found} rows, and has to concern ${rows}`)
}

/** Which statement was refused, and why. */
export const reasonFor = (at: number, staged: ReadonlyArray<StagedStatement>, why: string): string => {
  const which = staged.length === 1 ? "the staged statement" : `staged statement ${at + 1} of ${staged.length}`
  return `${which} was refused: ${plain(why)}; nothing of this call was kept`
}

const refusedOutcome = (reason: string): SettledOutcome => ({
  ok: false,
  answer: answerText({ ok: false, kind: "execution_failed", errors: [{ path: "", reason }] }),
  kind: "execution_failed",
  effect: "none",
  state: "failed"
})

/** What is put down in place of an outcome whose statements were refused. */
export const insteadOf = (
  command: Extract<Command, { readonly _tag: "Settle" }>,
  reason: string,
  entry: LedgerEntry | undefined,
  present: Present
): Decision => {
  const instead = refusedOutcome(reason)
  const decision = decide({ _tag: "Settle", key: command.key, outcome: instead }, entry, present)
  return Result.isFailure(decision.reply) ? decision : { ...decision, reply: Result.succeed({ _tag: "Done", instead }) }
}
