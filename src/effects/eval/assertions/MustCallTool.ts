/** `must_call_tool`: some call of this name, with at least these arguments. Counts proposals: the call may have been refused. */
import * as Schema from "effect/Schema"
import { asObject, kind, Tool, WithArgs } from "../Kind.ts"
import { fail, pass } from "../Verdict.ts"
import { argumentsSeen, fits, namesSeen } from "./Calls.ts"

export const mustCallTool = kind(
  "must_call_tool",
  { tool: Tool, with_args: Schema.optionalKey(WithArgs) },
  ({ tool, with_args }, subject) => {
    const calls = subject.calls().filter(({ name }) => name === tool)
    if (calls.length === 0) return fail(`${tool} was not called; ${namesSeen(subject)}`)
    if (with_args === undefined || calls.some(({ input }) => fits(input, asObject(with_args)))) return pass
    return fail(`${tool} was called, but never with ${JSON.stringify(with_args)}; ${argumentsSeen(calls)}`)
  }
)
