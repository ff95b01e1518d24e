/** `terminal_state`: how the run that filled the conversation ended, by its last record of that. */
import * as Schema from "effect/Schema"
import { turnEvents } from "../../conversation/Conversation.ts"
import { kind } from "../Kind.ts"
import { fail, pass } from "../Verdict.ts"

export const terminalState = kind("terminal_state", { state: Schema.NonEmptyString }, ({ state }, subject) => {
  const last = subject.events(turnEvents.end).at(-1)
  if (last === undefined) return fail("the conversation has no record of how its run ended")
  if (last.state === state) return pass
  const why = typeof last.reason === "string" ? ` (${last.reason})` : ""
  return fail(`the run ended as ${String(last.state)}${why}, wanted ${state}`)
})
