/**
 * From a chat to the task it turned out to be: nothing of the chat stays, and the run goes on in the task's own session with
 * the same text, under the same budgets.
 */
import * as Effect from "effect/Effect"
import type { TraceError } from "../actors/TraceWriter.ts"
import type { RunContext } from "./RunContext.ts"
import { preparing, type State } from "./State.ts"

/** The turn that said so is rolled back already; what it said is noted. */
export const handOver = Effect.fnUntraced(function* (
  run: RunContext,
  turn: number
): Effect.fn.Return<State, TraceError> {
  const task = run.taskSession
  if (task === undefined) return yield* Effect.die(new Error("nobody to hand over to"))
  const left = yield* run.session.context.length
  const length = yield* task.context.length
  run.session = task
  run.taskSession = undefined
  run.userPending = true
  const step = `model-${turn}`
  yield* run.trace.append(
    { type: "turn_rolled_back", step, data: { turn, reason: "handed_over", committed_len: left } },
    { type: "routed", step, data: { route: "task", by: "chat", reason: "handed_over", committed_len: length } }
  )
  run.emit({ _tag: "Routed", route: "task", by: "chat" })
  return preparing(turn + 1)
})
