/** `tokens`: what the turns took, by their inline traces. A conversation without traces has no figures, so it fails. */
import * as Schema from "effect/Schema"
import { Count, kind, Op } from "../Kind.ts"
import { holds } from "../Operator.ts"
import { fail, pass } from "../Verdict.ts"

export const noTraces = "no turn of the conversation has a trace, so nothing was measured"

export const tokens = kind(
  "tokens",
  { metric: Schema.Literals(["total", "input", "output"]), op: Op, value: Count },
  ({ metric, op, value }, subject) => {
    const traces = subject.traces()
    if (traces.length === 0) return fail(noTraces)
    const sum = traces.reduce(
      (all, { tokens: { input, output } }) =>
        all + (metric === "output" ? 0 : input) + (metric === "input" ? 0 : output),
      0
    )
    return holds(op, sum, value) ? pass : fail(`${sum} ${metric} tokens, wanted ${op} ${value}`)
  }
)
