/** `tool_executed`: a call of this tool really ran. A proposal that was refused, skipped or answered from elsewhere did not. */
import * as Schema from "effect/Schema"
import { asObject, kind, Tool, WithArgs } from "../Kind.ts"
import { fail, pass } from "../Verdict.ts"
import { fits } from "./Calls.ts"
import { settledCalls, settledSeen } from "./Settled.ts"

export const toolExecuted = kind(
  "tool_executed",
  { tool: Tool, with_args: Schema.optionalKey(WithArgs) },
  ({ tool, with_args }, subject) => {
    const ran = settledCalls(subject).filter((call) => call.executed && call.tool === tool)
    if (ran.length === 0) return fail(`${tool} was not executed; ${settledSeen(subject)}`)
    if (with_args === undefined) return pass
    const found = ran.some(({ input }) => input !== undefined && fits(input, asObject(with_args)))
    return found ? pass : fail(`${tool} was executed, but never with ${JSON.stringify(with_args)}`)
  }
)
