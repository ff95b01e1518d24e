/** `tool_result_ok`: a call of this tool ran and its answer in the conversation is no error. */
import * as Schema from "effect/Schema"
import { kind, Tool } from "../Kind.ts"
import { fail, pass } from "../Verdict.ts"
import { settledCalls, settledSeen } from "./Settled.ts"

export const toolResultOk = kind("tool_result_ok", { tool: Schema.optionalKey(Tool) }, ({ tool }, subject) => {
  const fine = new Set(subject.results().flatMap((one) => (one.is_error === true ? [] : [one.tool_use_id])))
  const found = settledCalls(subject).some(
    (call) => call.executed && fine.has(call.id) && (tool === undefined || call.tool === tool)
  )
  return found
    ? pass
    : fail(
        `no call${tool === undefined ? "" : ` of ${tool}`} ran and was answered without an error; ${settledSeen(subject)}`
      )
})
