/** `tool_result_ok`: a call of this tool ran and its answer in the conversation is no error. */
import * as Schema from "effect/Schema"
import { kind, Tool } from "../Kind.ts"
import { fail, pass } from "../Verdict.ts"
import { settledCalls, settledSeen } from "./Settled.ts"

export const toolResultOk = kind("tool_result_ok", { tool: Schema.optionalKey(Tool) }, ({ tool }, subject) => {
  const found = settledCalls(subject).some(
    ({ executed, result, tool: name }) =>
      executed && result !== undefined && result.is_error !== true && (tool === undefined || name === tool)
  )
  return found
    ? pass
    : fail(
        `no call${tool === undefined ? "" : ` of ${tool}`} ran and was answered without an error; ${settledSeen(subject)}`
      )
})
