/**
 * The choice among legal candidates: the highest `value - weight * cost - weight * risk` is performed. Pure arithmetic
 * around one injectable estimate of what a candidate is worth; it neither judges legality nor computes cost and risk.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { JsonObject } from "../tools/JsonText.ts"

/** `proposal`: a tool call. `answer`: text instead of a call. `do_nothing` and `observe` (a read-only probe) are always open to the runtime. */
export type CandidateKind = "proposal" | "answer" | "do_nothing" | "observe"

/** `order`: the place among the candidates as they were proposed. `value`, `cost` and `risk` share one unit; infinite cost or risk is forbidden. */
export interface Candidate {
  readonly id: string
  readonly order: number
  readonly kind: CandidateKind
  readonly legal: boolean
  readonly value: number
  readonly cost: number
  readonly risk: number
}

/** What cost and risk count for against value. Zero or more; zero leaves that term out, but never what is forbidden. */
export interface Weights {
  readonly cost: number
  readonly risk: number
}

/** `-Infinity`: forbidden, or not a number one can compare. Never `NaN`. */
export type Scored = Candidate & { readonly score: number }

/** `scored`: every candidate in the order given, losers and illegal ones too. */
export interface Choice {
  readonly chosen: Scored | undefined
  readonly scored: ReadonlyArray<Scored>
}

/** Cost, risk and weights: `NaN` and negative numbers are no amounts. */
const isAmount = (n: number): boolean => n >= 0

const scoreOf = (candidate: Candidate, weights: Weights): number => {
  const { cost, risk, value } = candidate
  const amounts = [cost, risk, weights.cost, weights.risk]
  // Zero times infinity would be NaN, and a weight of zero must not unlock what is forbidden.
  if (!Number.isFinite(value) || !amounts.every((n) => isAmount(n) && Number.isFinite(n))) return -Infinity
  return value - weights.cost * cost - weights.risk * risk
}

const implicit = (kind: CandidateKind): number => (kind === "do_nothing" || kind === "observe" ? 1 : 0)

/** Best first: score, then lower risk, lower cost, what was proposed before what is always open, and the order given. */
const compare = (a: Scored, b: Scored): number =>
  b.score - a.score ||
  a.risk - b.risk ||
  a.cost - b.cost ||
  implicit(a.kind) - implicit(b.kind) ||
  a.order - b.order ||
  (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)

/** The best legal candidate, or none: an illegal or forbidden one is not taken for want of a better. The sequence of `candidates` has no say. */
export const choose = (candidates: ReadonlyArray<Candidate>, weights: Weights): Choice => {
  const scored = candidates.map((candidate): Scored => ({ ...candidate, score: scoreOf(candidate, weights) }))
  const open = scored.filter((candidate) => candidate.legal && candidate.score > -Infinity)
  return { chosen: open.sort(compare)[0], scored }
}

/** A candidate before it was valued. `call` is there for the estimate to look at; it goes no further. */
export type Prospect = Omit<Candidate, "value"> & {
  readonly call?: { readonly tool: string; readonly arguments: JsonObject }
}

/** Where the run stands when it chooses. `turn` and `toolCalls` count what is done. */
export interface Situation {
  readonly task: string
  readonly turn: number
  readonly toolCalls: number
  readonly candidates: ReadonlyArray<Prospect>
}

/** `value`: the expected worth of ending up where the candidate leads; it may look ahead as far as it likes. */
export interface Governor {
  readonly name: string
  readonly weights: Weights
  readonly value: (situation: Situation, candidate: Prospect) => Effect.Effect<number>
}

/** A governor, or the cost or risk it was given, that yields no number. Nothing is chosen then: class `contract_fault`. */
export class GovernorFault extends Schema.TaggedError<GovernorFault>()("GovernorFault", {
  governor: Schema.String,
  /** Empty where the weights are at fault. */
  candidate: Schema.String,
  reason: Schema.Literals([
    "the value function threw",
    "the value is not a finite number",
    "the cost is not a number of zero or more",
    "the risk is not a number of zero or more",
    "the weights are not finite numbers of zero or more"
  ]),
  cause: Schema.optionalKey(Schema.Defect())
}) {
  override get message(): string {
    const about = this.candidate === "" ? "" : `, candidate ${this.candidate}`
    return `governor ${this.governor}${about}: ${this.reason}`
  }
}

/**
 * Values every candidate and chooses. Illegal ones are valued too, for the record; what they would cost may be unknown
 * (`NaN`), since arguments that do not fit have no price.
 */
export const weigh = Effect.fnUntraced(function* (governor: Governor, situation: Situation) {
  const refuse = (candidate: string, reason: GovernorFault["reason"], cause?: unknown) =>
    Effect.fail(new GovernorFault({ governor: governor.name, candidate, reason, ...(cause ? { cause } : {}) }))
  const { weights } = governor
  if (![weights.cost, weights.risk].every((n) => isAmount(n) && Number.isFinite(n))) {
    return yield* refuse("", "the weights are not finite numbers of zero or more")
  }
  const valued: Array<Candidate> = []
  for (const prospect of situation.candidates) {
    const { call: _, ...candidate } = prospect
    if (prospect.legal && !isAmount(prospect.cost)) {
      return yield* refuse(prospect.id, "the cost is not a number of zero or more")
    }
    if (prospect.legal && !isAmount(prospect.risk)) {
      return yield* refuse(prospect.id, "the risk is not a number of zero or more")
    }
    // Somebody else's code: what it throws is a fault of that code, not of the loop.
    const value = yield* Effect.suspend(() => {
      const estimate: unknown = governor.value(situation, prospect)
      return Effect.isEffect(estimate) ? (estimate as Effect.Effect<number>) : Effect.succeed(Number.NaN)
    }).pipe(Effect.catchDefect((defect) => refuse(prospect.id, "the value function threw", defect)))
    if (!Number.isFinite(value)) return yield* refuse(prospect.id, "the value is not a finite number")
    valued.push({ ...candidate, value })
  }
  return choose(valued, weights)
})

/**
 * The default. A proposed call is worth 10, everything else 0, and both weights are 1: the value and weights of the
 * worked example this rule is tested by (0.9 * 10 - 2 - 1 = 6). So a call goes through while cost and risk stay below 10 together.
 * An answer is worth no more than doing nothing, so it never displaces a call that may be made.
 */
export const standard: Governor = {
  name: "standard",
  weights: { cost: 1, risk: 1 },
  value: (_, candidate) => Effect.succeed(candidate.kind === "proposal" ? 10 : 0)
}

/** The read-only probe that could be run instead. */
export type Observation = Pick<Candidate, "cost" | "risk" | "legal">

/** Proposals with what is always open beside them: to do nothing, and to observe where there is a probe. */
export const withImplicit = (proposals: ReadonlyArray<Prospect>, probe?: Observation): ReadonlyArray<Prospect> => {
  const order = 1 + Math.max(-1, ...proposals.map((proposal) => proposal.order))
  const nothing: Prospect = { id: "do_nothing", order, kind: "do_nothing", legal: true, cost: 0, risk: 0 }
  if (probe === undefined) return [...proposals, nothing]
  const { cost, legal, risk } = probe
  return [...proposals, nothing, { id: "observe", order: order + 1, kind: "observe", legal, cost, risk }]
}

/** The candidates where there is one proposal: it goes through only if it beats the implicit ones. */
export const gate = (proposal: Prospect, probe?: Observation): ReadonlyArray<Prospect> =>
  withImplicit([proposal], probe)
