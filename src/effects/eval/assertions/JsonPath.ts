/** `json_path`: the first value a JSONPath (RFC 9535) finds in `{meta, session}`, compared. */
import { asJson, kind, Op, Value } from "../Kind.ts"
import { equal, holds, isOrder } from "../Operator.ts"
import { fail, malformed, pass, quote } from "../Verdict.ts"
import { find, Path } from "./Paths.ts"

export const jsonPath = kind("json_path", { path: Path, op: Op, value: Value }, ({ op, path, value }, subject) => {
  if (isOrder(op) && typeof value !== "number") {
    return malformed(`${op} compares numbers, and value is ${quote(JSON.stringify(value))}`)
  }
  const found = find(subject.view(), path)
  if (found._tag === "Verdict") return found.verdict
  // Of a place that is not there nothing holds, not even that it is different.
  if (found.values.length === 0) return fail(`nothing is at ${path}`)
  const first = found.values[0]!
  if (!isOrder(op)) {
    return equal(first, asJson(value)) === (op === "==")
      ? pass
      : fail(`${path} is ${quote(JSON.stringify(first))}, wanted ${op} ${quote(JSON.stringify(value))}`)
  }
  if (typeof first !== "number") return fail(`${path} is no number but ${quote(JSON.stringify(first))}`)
  return holds(op, first, value as number) ? pass : fail(`${path} is ${first}, wanted ${op} ${value}`)
})
