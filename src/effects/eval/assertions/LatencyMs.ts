/** `latency_ms`: how long the turns took together, by their inline traces. Fails where there are none. */
import * as Schema from "effect/Schema"
import { kind, Op } from "../Kind.ts"
import { holds } from "../Operator.ts"
import { fail, pass } from "../Verdict.ts"
import { noTraces } from "./Tokens.ts"

export const latencyMs = kind(
  "latency_ms",
  { op: Op, value: Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)) },
  ({ op, value }, subject) => {
    const traces = subject.traces()
    if (traces.length === 0) return fail(noTraces)
    const sum = traces.reduce((all, { latency_ms }) => all + latency_ms, 0)
    return holds(op, sum, value) ? pass : fail(`${sum} ms, wanted ${op} ${value}`)
  }
)
