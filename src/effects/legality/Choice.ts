/**
 * Is the call worth it? Its expected value less weighted cost and risk is compared with doing nothing and, where the run has
 * something to look with, with looking first. A call that is not free of both, or a governor of the caller's own, is scored.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { RegisteredTool, ValidatedArguments } from "../../tools/Registry.ts"
import type { Gates } from "../Gates.ts"
import { type Governor, type GovernorFault, gate, type Scored, standard, weigh } from "../Governor.ts"
import { riskWeightOf } from "../Profile.ts"
import type { CallRecord, RunContext } from "../RunContext.ts"
import { prices } from "./ContractTerms.ts"
import { type Refusal, refusal } from "./Refusal.ts"

/** JSON has no number for what is forbidden. */
export const amountForTrace = (value: number): number | null => (Number.isFinite(value) ? value : null)

/** The run's governor, with risk weighing what it weighs in this kind of task. */
export const governorFor = ({ governor, profile }: Gates): Governor => ({
  ...governor,
  weights: { ...governor.weights, risk: governor.weights.risk * riskWeightOf(profile) }
})

export const scoredForTrace = ({ cost, id, kind, legal, risk, score, value }: Scored) => ({
  id,
  kind,
  legal,
  value,
  cost: amountForTrace(cost),
  risk: amountForTrace(risk),
  score: amountForTrace(score)
})

/** Tools that only look: what could be done instead of acting. */
const canObserve = (run: RunContext): boolean =>
  run.session.registry.tools.some(({ contract }) => contract.risk === "read" && !contract.asksUser)

/** Nothing if the call may go on. Prices are kept with the call. */
export const notWorthIt = Effect.fnUntraced(function* (
  run: RunContext,
  record: CallRecord,
  tool: RegisteredTool,
  args: ValidatedArguments,
  step: string
): Effect.fn.Return<Refusal | undefined> {
  const priced = prices(tool, args)
  if (Result.isFailure(priced)) return refusal("contract_fault", "governor", priced.failure.fault)
  const { cost, hazard } = priced.success
  record.prices = { cost, hazard }
  if (run.settings.gates.governor === standard && cost === 0 && hazard === 0) return undefined
  const governor = governorFor(run.settings.gates)
  const call = { tool: tool.name, arguments: structuredClone(args.effective) }
  const proposal = { id: record.callId, order: 0, kind: "proposal", legal: true, cost, risk: hazard, call } as const
  const probe = tool.contract.risk !== "read" && canObserve(run) ? { cost: 0, risk: 0, legal: true } : undefined
  const situation = {
    task: run.task,
    turn: record.turn,
    toolCalls: run.budget.toolCalls,
    candidates: gate(proposal, probe)
  }
  const weighed = yield* Effect.result(weigh(governor, situation))
  if (Result.isFailure(weighed)) return faulty(weighed.failure)
  const { chosen, scored } = weighed.success
  run.trace.note({
    type: "proposal_scored",
    step,
    phase: "validate",
    data: {
      call: record.callId,
      governor: governor.name,
      weights: governor.weights,
      candidates: scored.map(scoredForTrace),
      chosen: chosen?.id ?? null
    }
  })
  return chosen?.id === record.callId ? undefined : instead(chosen)
})

const faulty = ({ message }: GovernorFault): Refusal => refusal("contract_fault", "governor", message)

const instead = (chosen: Scored | undefined): Refusal =>
  chosen?.kind === "observe"
    ? refusal(
        "not_chosen",
        "governor",
        "looking first is worth more than this call; nothing was executed",
        "look first"
      )
    : refusal("not_chosen", "governor", "this call costs or risks more than it is worth; nothing was executed")
