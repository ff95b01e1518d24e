/** `tool_call_count`: how many calls, of one tool or of all. */
import * as Schema from "effect/Schema"
import { Count, kind, Op, Tool } from "../Kind.ts"
import { holds } from "../Operator.ts"
import { fail, pass } from "../Verdict.ts"
import { namesSeen } from "./Calls.ts"

export const toolCallCount = kind(
  "tool_call_count",
  { tool: Schema.optionalKey(Tool), op: Op, value: Count },
  ({ op, tool, value }, subject) => {
    const unfinished = subject.unfinished()
    if (unfinished !== undefined) return fail(`calls cannot be counted yet: ${unfinished}`)
    const seen = subject.calls().filter(({ name }) => tool === undefined || name === tool).length
    if (holds(op, seen, value)) return pass
    return fail(`${seen} calls${tool === undefined ? "" : ` of ${tool}`}, wanted ${op} ${value}; ${namesSeen(subject)}`)
  }
)
