/**
 * `bfcl_calls`: the first turn calls what the Berkeley Function Calling Leaderboard wants, by its own rules of matching. With
 * `legal`, every one of those calls was executed too: what our validation refused never counts as right.
 */
import * as Schema from "effect/Schema"
import type { Json, JsonObject } from "../../../tools/JsonText.ts"
import { callsOf, isBlank, type Message, turnEvents } from "../../conversation/Conversation.ts"
import { type Answer, callsProblem } from "../external/BfclMatching.ts"
import { asJson, Count, kind, Tool } from "../Kind.ts"
import type { Subject } from "../Subject.ts"
import { deferred, fail, pass, type Verdict } from "../Verdict.ts"
import { recordMissing, settledCalls } from "./Settled.ts"

const Answers = Schema.Array(
  Schema.Struct({ name: Tool, parameters: Schema.Record(Schema.String, Schema.Array(Schema.Json)) })
)

const answerOf = ({ name, parameters }: (typeof Answers.Type)[number]): Answer => ({
  name,
  parameters: Object.fromEntries(
    Object.entries(parameters).map(([parameter, allowed]) => [parameter, asJson(allowed) as ReadonlyArray<Json>])
  )
})

/** The first assistant message that was generated here: an earlier one without a trace is part of the question. */
const firstTurn = ({ conversation: { session } }: Subject): Message | undefined => {
  const filled = session.filter((message) => message.role === "assistant" && !isBlank(message))
  return filled.find(({ trace }) => trace !== undefined) ?? filled.findLast(() => true)
}

const schemaOf =
  ({ conversation: { meta } }: Subject) =>
  (tool: string): JsonObject | undefined =>
    meta.tools?.find(({ name }) => name === tool)?.input_schema

/** What was not executed of these calls, and why. */
const illegal = (subject: Subject, ids: ReadonlyArray<string>): Verdict | undefined => {
  const missing = recordMissing(subject)
  if (missing !== undefined) return deferred(missing)
  const settled = settledCalls(subject)
  for (const id of ids) {
    const found = settled.find((call) => call.id === id)
    if (found === undefined) return fail(`the call ${id} was not settled`)
    if (!found.executed)
      return fail(`the right call, but it was refused: ${found.tool} ${found.class ?? found.outcome}`)
  }
  return undefined
}

export const bfclCalls = kind(
  "bfcl_calls",
  {
    /** `calls`: those of `answers`. `some_call`, `no_call`: whether any. */
    expect: Schema.Literals(["calls", "some_call", "no_call"]),
    answers: Schema.optionalKey(Answers),
    legal: Schema.optionalKey(Schema.Boolean),
    /** How many turns before the first usable one may have been malformed: none unless given. */
    malformed: Schema.optionalKey(Count)
  },
  ({ answers = [], expect, legal = false, malformed = 0 }, subject) => {
    const turn = firstTurn(subject)
    if (turn === undefined) return fail(subject.unfinished() ?? "nothing was answered")
    const broken = (turn.trace?.events ?? []).filter(({ name }) => name === turnEvents.malformed).length
    if (broken > malformed) return fail(`${broken} malformed turn${broken === 1 ? "" : "s"} came before it`)
    const calls = callsOf(turn)
    if (expect === "no_call")
      return calls.length === 0 ? pass : fail(`no call was wanted; ${calls[0]!.name} was called`)
    if (calls.length === 0) return fail("no tool was called")
    const problem = expect === "some_call" ? undefined : callsProblem(calls, answers.map(answerOf), schemaOf(subject))
    if (problem !== undefined) return fail(problem)
    return legal
      ? (illegal(
          subject,
          calls.map(({ id }) => id)
        ) ?? pass)
      : pass
  }
)
