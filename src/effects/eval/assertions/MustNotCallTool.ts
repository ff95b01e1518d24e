/** `must_not_call_tool`: no call of this name. What is not finished has not refrained from anything yet, so it fails. */
import { kind, Tool } from "../Kind.ts"
import { fail, pass } from "../Verdict.ts"

export const mustNotCallTool = kind("must_not_call_tool", { tool: Tool }, ({ tool }, subject) => {
  const first = subject.calls().find(({ name }) => name === tool)
  if (first !== undefined) {
    return fail(`${tool} was called: call ${first.ordinal} (counted from 0), in message ${first.message}`)
  }
  const unfinished = subject.unfinished()
  return unfinished === undefined ? pass : fail(`${tool} was not called so far, but ${unfinished}`)
})
