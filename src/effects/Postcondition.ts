/**
 * Accepted is not done: the runtime looks whether a call kept its promise, and goes on looking while that is open. What it
 * sees outweighs what the tool said. A promise that is still open when the time is up is unknown, never success.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { TraceError } from "../actors/TraceWriter.ts"
import type { Json } from "../tools/JsonText.ts"
import type { Unmet } from "../tools/Terms.ts"
import type { Failed, Succeeded, ToolOutcome } from "../tools/ToolCall.ts"
import type { Admitted, Seen } from "./ExecutionEvents.ts"
import { type Fault, look } from "./legality/ContractTerms.ts"
import { gatesOf } from "./Profile.ts"
import { nowMillis, type RunContext, wallLeft } from "./RunContext.ts"

export interface Judged {
  readonly outcome: ToolOutcome
  readonly evidence?: Seen
}

const failed = (
  { millis }: Succeeded,
  kind: Failed["kind"],
  effect: Failed["effect"],
  errors: Failed["errors"],
  hint?: string
): Failed => ({ _tag: "Failed", kind, effect, errors, millis, ...(hint === undefined ? {} : { hint }) })

const unknown = (outcome: Succeeded, reason: string): Failed =>
  failed(outcome, "outcome_unknown", "unknown", [{ path: "", reason }])

const seenAs = (seen: Json | undefined): string => (seen === undefined ? "" : `; seen: ${JSON.stringify(seen)}`)

/** What is left behind is there; how to undo it is said, and left to whoever decides. */
const brokenPromise = (call: Admitted, outcome: Succeeded, unmet: ReadonlyArray<Unmet>, seen: Json | undefined) => {
  const { compensation, risk } = call.tool.contract
  const errors = unmet.map(({ path, reason }) => ({ path: path ?? "", reason: `${reason}${seenAs(seen)}` }))
  const said = errors.length > 0 ? errors : [{ path: "", reason: `the promise was not kept${seenAs(seen)}` }]
  const hint = compensation === undefined ? undefined : `what it did is still there; ${compensation} undoes it`
  return failed(outcome, "postcondition_failed", risk === "read" ? "none" : "present", said, hint)
}

type Looked = Result.Result<Judged | "pending", Fault>

/** One look. A look that could not be taken leaves the question open. */
const lookOnce = Effect.fnUntraced(function* (
  run: RunContext,
  call: Admitted,
  outcome: Succeeded
): Effect.fn.Return<Looked> {
  const { contract, terms } = call.tool
  const { post } = terms
  // What it staged is there when the ledger says so, and the ledger is not the tool.
  const source = contract.stages === true ? contract.evidence.source : "self"
  if (post === undefined) return Result.succeed({ outcome, evidence: { source } })
  const found = yield* look("postcondition", () => post(call.arguments, outcome.result), run.settings.tools)
  if (Result.isFailure(found)) return "fault" in found.failure ? Result.fail(found.failure) : Result.succeed("pending")
  const verdict = found.success
  if (verdict._tag === "Pending") return Result.succeed("pending")
  const judge = contract.evidence.source
  const evidence: Seen = verdict.evidence === undefined ? { source: judge } : { source: judge, seen: verdict.evidence }
  return Result.succeed(
    verdict._tag === "Holds"
      ? { outcome, evidence }
      : { outcome: brokenPromise(call, outcome, verdict.unmet, verdict.evidence), evidence }
  )
})

/** The promise is open: look again until it is decided or the time for it, or for the run, is up. */
const waitFor = Effect.fnUntraced(function* (
  run: RunContext,
  call: Admitted,
  outcome: Succeeded
): Effect.fn.Return<Looked, TraceError> {
  const { everyMillis, withinMillis } = call.tool.contract.settle ?? { everyMillis: 1, withinMillis: 0 }
  const { callId } = call.record
  yield* run.trace.append({
    type: "effect_accepted",
    step: call.step,
    phase: "execute",
    data: { call: callId, tool: call.tool.name, settle_within_ms: withinMillis }
  })
  const until = nowMillis(run.clock) + Math.min(withinMillis, wallLeft(run))
  for (;;) {
    const left = until - nowMillis(run.clock)
    if (left <= 0) return Result.succeed("pending")
    yield* Effect.sleep(Math.min(everyMillis, left))
    const looked = yield* lookOnce(run, call, outcome)
    if (Result.isFailure(looked) || looked.success !== "pending") return looked
  }
})

const openPromise = (call: Admitted, outcome: Succeeded): Failed => {
  const within = call.tool.contract.settle?.withinMillis ?? 0
  return unknown(outcome, `the request was taken, and within ${within} ms nothing showed whether it was carried out`)
}

const concluded = (call: Admitted, outcome: Succeeded, looked: Looked): Judged => {
  if (Result.isFailure(looked)) {
    const effect = call.tool.contract.risk === "read" ? "none" : "unknown"
    return { outcome: failed(outcome, "contract_fault", effect, [{ path: "", reason: looked.failure.fault }]) }
  }
  return looked.success === "pending" ? { outcome: openPromise(call, outcome) } : looked.success
}

/** Only a person can see whether it happened. */
const forAPerson = (outcome: Succeeded): Judged => ({
  outcome: unknown(outcome, "the tool says it was done; in this task only a person can confirm that"),
  evidence: { source: "person" }
})

/**
 * In a task where only a person can see what happened, nothing else settles an effect; but nobody could see more of what is
 * committed together with the outcome than the outcome says.
 */
const confirmed = (run: RunContext, { tool }: Admitted, outcome: Succeeded, judged: Judged): Judged => {
  const { contract } = tool
  const forPerson = contract.stages !== true && gatesOf(run.settings.gates.profile, contract).evidence === "person"
  return forPerson && judged.outcome._tag === "Succeeded" ? forAPerson(outcome) : judged
}

/** What an execution that says it succeeded came to. Waits as long as the contract's settle rule says. */
export const judge = Effect.fnUntraced(function* (
  run: RunContext,
  call: Admitted,
  outcome: ToolOutcome
): Effect.fn.Return<Judged, TraceError> {
  if (outcome._tag === "Failed") return { outcome }
  const { contract, terms } = call.tool
  if (contract.risk === "read" && terms.post === undefined) return { outcome }
  const looked = yield* lookOnce(run, call, outcome)
  const settled = Result.isSuccess(looked) && looked.success === "pending" ? yield* waitFor(run, call, outcome) : looked
  return confirmed(run, call, outcome, concluded(call, outcome, settled))
})

/** The same for an outcome that nobody waits for: one look, and what is open then stays unknown. */
export const judgeOnce = (run: RunContext, call: Admitted, outcome: ToolOutcome): Effect.Effect<ToolOutcome> =>
  outcome._tag === "Failed"
    ? Effect.succeed(outcome)
    : Effect.map(
        lookOnce(run, call, outcome),
        (looked) => confirmed(run, call, outcome, concluded(call, outcome, looked)).outcome
      )
