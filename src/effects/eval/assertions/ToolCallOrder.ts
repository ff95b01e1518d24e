/** `tool_call_order`: these calls one after the other, with whatever else between them. */
import * as Schema from "effect/Schema"
import { kind, Tool } from "../Kind.ts"
import { fail, malformed, pass } from "../Verdict.ts"
import { orderSeen } from "./Calls.ts"

export const toolCallOrder = kind("tool_call_order", { sequence: Schema.Array(Tool) }, ({ sequence }, subject) => {
  if (sequence.length === 0) return malformed("sequence is empty: every conversation would pass")
  let next = 0
  for (const { name } of subject.calls()) if (name === sequence[next]) next += 1
  if (next === sequence.length) return pass
  const before = next === 0 ? "at all" : `after ${sequence.slice(0, next).join(", ")}`
  return fail(`${sequence[next]} does not come ${before}; ${orderSeen(subject)}`)
})
