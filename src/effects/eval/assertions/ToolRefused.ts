/** `tool_refused`: a call was refused before it ran, for this reason: the class of it, or its kind (`unknown_tool`). */
import * as Schema from "effect/Schema"
import { kind, Tool } from "../Kind.ts"
import { fail, pass } from "../Verdict.ts"
import { settledCalls, settledSeen } from "./Settled.ts"

export const toolRefused = kind(
  "tool_refused",
  { class: Schema.NonEmptyString, tool: Schema.optionalKey(Tool) },
  ({ class: wanted, tool }, subject) => {
    const found = settledCalls(subject).some(
      (call) =>
        !call.executed &&
        (call.class === wanted || call.outcome === wanted) &&
        (tool === undefined || call.tool === tool)
    )
    return found
      ? pass
      : fail(`no call${tool === undefined ? "" : ` of ${tool}`} was refused as ${wanted}; ${settledSeen(subject)}`)
  }
)
