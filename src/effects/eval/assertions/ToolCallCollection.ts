/** `tool_call_collection`: at least these calls, each as often as it is listed, in any order; `exact` for no others. */
import * as Schema from "effect/Schema"
import { kind, Tool } from "../Kind.ts"
import { fail, malformed, pass } from "../Verdict.ts"
import { namesSeen } from "./Calls.ts"

const counted = (names: ReadonlyArray<string>): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

export const toolCallCollection = kind(
  "tool_call_collection",
  { tools: Schema.Array(Tool), exact: Schema.optionalKey(Schema.Boolean) },
  ({ exact = false, tools }, subject) => {
    if (tools.length === 0 && !exact) return malformed("tools is empty: every conversation would pass")
    const unfinished = exact ? subject.unfinished() : undefined
    if (unfinished !== undefined) return fail(`calls cannot be counted yet: ${unfinished}`)
    const [wanted, seen] = [counted(tools), counted(subject.calls().map(({ name }) => name))]
    const missing = [...wanted].flatMap(([name, n]) => {
      const lack = n - (seen.get(name) ?? 0)
      return lack > 0 ? [`${name}${lack === 1 ? "" : ` ×${lack}`}`] : []
    })
    if (missing.length > 0) return fail(`missing: ${missing.join(", ")}; ${namesSeen(subject)}`)
    if (!exact) return pass
    const extra = [...seen].flatMap(([name, n]) => (n > (wanted.get(name) ?? 0) ? [name] : []))
    return extra.length === 0 ? pass : fail(`called more often than listed: ${extra.join(", ")}; ${namesSeen(subject)}`)
  }
)
