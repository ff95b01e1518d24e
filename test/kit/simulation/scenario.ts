/** Everything that happens in one simulated world, decided by its seed before it begins. Plain data: printable, shrinkable. */
import * as Result from "effect/Result"
import type { Limits } from "../../../src/effects/Limits.ts"
import type { CallPolicy } from "../../../src/effects/RunContext.ts"
import type { Codec } from "../../../src/engine/codecs/Codec.ts"
import * as Families from "../../../src/engine/codecs/Families.ts"
import type { ScriptedTurn } from "../../../src/engine/ScriptedModel.ts"
import { Dice } from "./dice.ts"
import { secret, turnOf } from "./turns.ts"

/** The n-th operation of its kind (from 1) goes wrong in this way. */
export interface Fault<K extends string> {
  readonly at: number
  readonly kind: K
}

export type EngineOperation = "commit" | "keep" | "measure" | "rollback"
export type EngineFault = Fault<"lost" | "failed" | "hang" | "defect" | "slow"> & { readonly on: EngineOperation }
export type CodecFault = Fault<"parser" | "push" | "answers" | "opening" | "user">
export type PoolFault = Fault<"die_before" | "die_after" | "crash" | "hang" | "late" | "not_executed">
export type LedgerFault = Fault<"begin" | "settle" | "settle_lost">
export type ApproverKind = "allow" | "deny" | "suspend" | "slow" | "never" | "defect"

/** Somebody stops the run: at a virtual instant, or as the n-th thing happens in it. */
export interface StopWish {
  readonly how: "cancel" | "interrupt"
  readonly atMillis?: number
  readonly atEvent?: number
}

export interface RunScenario {
  readonly gapMillis: number
  readonly content: boolean
  readonly tokenEvents: boolean
  readonly limits: Partial<Limits>
  readonly calls: CallPolicy
  readonly approver: ApproverKind
  /** How many turns are sampled before one of them is kept. */
  readonly candidates: number
  readonly turns: ReadonlyArray<ScriptedTurn>
  readonly stops: ReadonlyArray<StopWish>
  /** The n-th write (from 0: opening the trace) fails, and as many after it. */
  readonly traceFault?: { readonly at: number; readonly writes: number }
}

export interface SessionScenario {
  readonly codec: string
  readonly system?: string
  readonly contextTokens: number
  readonly engine: ReadonlyArray<EngineFault>
  readonly codecFault?: CodecFault
  readonly runs: ReadonlyArray<RunScenario>
}

export interface Scenario {
  readonly seed: number
  readonly sessions: ReadonlyArray<SessionScenario>
  readonly pool: ReadonlyArray<PoolFault>
  readonly ledger: ReadonlyArray<LedgerFault>
  /** Which puts fail, from 1. */
  readonly artifacts: ReadonlyArray<number>
}

const families = { "qwen2.5": 6, qwen3: 1, hermes: 1, "generic-json": 1.5, llama3: 1 }

export const codecOf = (id: string): Codec => Result.getOrThrow(Families.byId(id))

const limitsOf = (dice: Dice): Partial<Limits> => ({
  ...(dice.chance(0.25) ? { modelTurns: dice.between(0, 4) } : {}),
  ...(dice.chance(0.2) ? { toolCalls: dice.between(0, 3) } : {}),
  ...(dice.chance(0.2) ? { wallMillis: dice.pick([0, 1, 40, 700, 20_000, Infinity]) } : {}),
  ...(dice.chance(0.2) ? { toolMillis: dice.pick([0, 1, 100, Infinity]) } : {}),
  ...(dice.chance(0.25) ? { outputTokens: dice.pick([1, 4, 16, 64]) } : {}),
  ...(dice.chance(0.2) ? { resultBytes: dice.pick([0, 30, 200]) } : {}),
  ...(dice.chance(0.2) ? { repairs: dice.between(0, 1) } : {}),
  ...(dice.chance(0.2) ? { loopThreshold: dice.pick([0, 2]) } : {})
})

const approvers = { allow: 8, deny: 2, suspend: 0.7, slow: 2, never: 0.4, defect: 0.2 }

const stopsOf = (dice: Dice, endless: boolean): ReadonlyArray<StopWish> => {
  const wish = (): StopWish => {
    const how = dice.chance(0.7) ? "cancel" : "interrupt"
    return dice.chance(0.5)
      ? { how, atEvent: dice.between(1, 45) }
      : { how, atMillis: dice.pick([0, 1, 8, 35, 290, 310, 1_000, 5_000, 45_000]) }
  }
  const wishes = dice.chance(0.3) ? dice.times(dice.chance(0.2) ? 3 : 1, wish) : []
  return endless ? [...wishes, { how: "cancel", atMillis: 400_000 }] : wishes
}

/** The same turn again and again now and then, for loops. */
const turnsOf = (codec: Codec, dice: Dice, trouble: number): ReadonlyArray<ScriptedTurn> => {
  const turns = dice.times(dice.between(1, 5), () => turnOf(codec, dice, trouble))
  return dice.chance(0.1) ? [...turns, ...turns, ...turns] : turns
}

const runOf = (codec: Codec, dice: Dice, trouble: number): RunScenario => {
  const limits = limitsOf(dice)
  const traceFault = dice.maybe(trouble, () => ({
    at: dice.between(0, 25),
    writes: dice.chance(0.4) ? Infinity : dice.between(1, 3)
  }))
  return {
    gapMillis: dice.chance(0.2) ? dice.pick([1, 3_000, 40_000]) : 0,
    content: dice.chance(0.6),
    tokenEvents: dice.chance(0.2),
    limits,
    calls: dice.weighted({ single: 1, sequential: 3, parallel: 2 }),
    approver: dice.weighted(approvers),
    candidates: dice.chance(0.08) ? 2 : 1,
    turns: turnsOf(codec, dice, trouble),
    // Without any wall time nothing but a cancel ends an engine that hangs over the prompt.
    stops: stopsOf(dice, limits.wallMillis === Infinity || limits.wallMillis === 0),
    ...(traceFault === undefined ? {} : { traceFault })
  }
}

const engineKinds = { lost: 1, failed: 2, hang: 1, defect: 1, slow: 3 }
const engineOperations = { commit: 4, keep: 1.5, measure: 1, rollback: 0.5 }

const sessionOf = (dice: Dice, trouble: number): SessionScenario => {
  const id = dice.weighted(families)
  const codec = codecOf(id)
  const engine = dice.chance(trouble * 1.5)
    ? dice.times(dice.between(1, 2), (): EngineFault => {
        const on = dice.weighted(engineOperations)
        const kind = dice.weighted(engineKinds)
        // Keeping and rolling back are shielded: an engine that hangs there, hangs. Theirs to answer or to fail.
        const patient = on === "keep" || on === "rollback" || on === "measure"
        return { on, kind: patient && kind === "hang" ? "failed" : kind, at: dice.between(1, 8) }
      })
    : []
  const codecFault = dice.maybe(
    trouble * 0.5,
    (): CodecFault => ({ kind: dice.pick(["parser", "push", "answers", "opening", "user"]), at: dice.between(1, 6) })
  )
  return {
    codec: id,
    ...(dice.chance(0.7) ? { system: `You are ${secret}.` } : {}),
    contextTokens: Number(dice.weighted({ "1500": 1, "3000": 1, "1048576": 5 })),
    engine,
    ...(codecFault === undefined ? {} : { codecFault }),
    runs: dice.times(Number(dice.weighted({ "1": 6, "2": 3, "3": 1 })), () => runOf(codec, dice, trouble))
  }
}

const poolKinds = { die_before: 1, die_after: 1, crash: 2, hang: 1, late: 2, not_executed: 1 }
const ledgerKinds = { begin: 1, settle: 1, settle_lost: 1 }

/** The world of a seed. Half of the worlds are free of trouble, so that what ordinary runs do is seen too. */
export const scenarioOf = (seed: number): Scenario => {
  const dice = new Dice(seed)
  const trouble = dice.chance(0.5) ? 0 : dice.pick([0.05, 0.15, 0.4])
  const some = <A>(factor: number, make: () => A): ReadonlyArray<A> =>
    dice.chance(trouble * factor) ? dice.times(dice.between(1, 2), make) : []
  return {
    seed,
    sessions: dice.times(Number(dice.weighted({ "1": 7, "2": 2, "3": 1 })), () => sessionOf(dice, trouble)),
    pool: some(1.5, () => ({ at: dice.between(1, 6), kind: dice.weighted(poolKinds) })),
    ledger: some(1, () => ({ at: dice.between(1, 5), kind: dice.weighted(ledgerKinds) })),
    artifacts: some(1, () => dice.between(1, 3))
  }
}
