/** Performs the admitted calls of a turn, in order or reads side by side, watching limits and circles between them. */
import * as Effect from "effect/Effect"
import type { LedgerError } from "../../actors/EffectLedgerError.ts"
import type { TraceError } from "../../actors/TraceWriter.ts"
import { detect, fingerprint } from "../LoopDetection.ts"
import { performAdmitted } from "../Permitting.ts"
import { type CallRecord, type RunContext, wallLeft } from "../RunContext.ts"
import { acting as actingState, committing, type State, type Stop } from "../State.ts"

/** The next calls to perform together: one, or under `parallel` all reads up to the next call that is not one. */
const nextBatch = (run: RunContext, waiting: ReadonlyArray<CallRecord>): ReadonlyArray<CallRecord> => {
  if (run.settings.calls !== "parallel") return waiting.slice(0, 1)
  const end = waiting.findIndex((record) => record.tool?.contract.risk !== "read")
  return waiting.slice(0, end === -1 ? waiting.length : Math.max(1, end))
}

const limitBetween = (run: RunContext): Stop | undefined => {
  if (wallLeft(run) <= 0) return { _tag: "Limit", kind: "wall_time" }
  if (run.budget.toolCalls >= run.settings.limits.toolCalls) return { _tag: "Limit", kind: "tool_calls" }
  return undefined
}

/** Has the model been here before? Tools that poll are expected to be. */
const circles = (run: RunContext, record: CallRecord): Stop | undefined => {
  const { answer, arguments: args, tool } = record
  if (answer === undefined || args === undefined || tool === undefined || tool.contract.polling) return undefined
  run.fingerprints.push(fingerprint(tool.name, args.canonical, answer))
  const kind = detect(run.fingerprints, run.settings.limits.loopThreshold)
  if (kind === undefined) return undefined
  const what = kind === "identical" ? "the same call with the same answer" : "the same two calls in turn"
  return { _tag: "LoopDetected", detail: `${tool.name}: ${what}, ${run.settings.limits.loopThreshold} times` }
}

export const acting = Effect.fnUntraced(function* (
  run: RunContext,
  turn: number
): Effect.fn.Return<State, TraceError | LedgerError> {
  let waiting = (run.open?.records ?? []).filter((record) => record.answer === undefined)
  while (waiting.length > 0) {
    run.point = "between-calls"
    const limit = limitBetween(run)
    if (limit !== undefined) return committing(turn, limit)
    const room = run.settings.limits.toolCalls - run.budget.toolCalls
    const batch = nextBatch(run, waiting).slice(0, room)
    const stops =
      batch.length === 1
        ? [yield* performAdmitted(run, turn, batch[0]!)]
        : yield* Effect.forEach(batch, (record) => performAdmitted(run, turn, record), { concurrency: "unbounded" })
    run.budget.repairs = 0
    for (const [at, record] of batch.entries()) {
      const stop = stops[at] ?? circles(run, record)
      if (stop !== undefined) return committing(turn, stop)
    }
    waiting = waiting.slice(batch.length)
    if (run.watch === undefined || waiting.length === 0) continue
    const objection = yield* Effect.uninterruptible(run.watch(run, "Acting", actingState(turn)))
    if (objection !== undefined) return committing(turn, objection)
  }
  return committing(turn)
})
