/** Everything that happens in one simulated world, decided by its seed before it begins. Plain data: printable, shrinkable. */
import * as Result from "effect/Result"
import type { Limits } from "../../../src/effects/Limits.ts"
import type { Route } from "../../../src/effects/Router.ts"
import type { CallPolicy } from "../../../src/effects/RunContext.ts"
import { handOverText } from "../../../src/effects/Spoken.ts"
import type { Codec } from "../../../src/engine/codecs/Codec.ts"
import * as Families from "../../../src/engine/codecs/Families.ts"
import type { ScriptedTurn } from "../../../src/engine/ScriptedModel.ts"
import { Dice } from "./dice.ts"
import { registry } from "./tools.ts"
import { type Helper, secret, turnOf } from "./turns.ts"

/** The n-th operation of its kind (from 1) goes wrong in this way. */
export interface Fault<K extends string> {
  readonly at: number
  readonly kind: K
}

export type EngineOperation = "commit" | "keep" | "measure" | "rollback" | "rewind" | "turn"
export type EngineFault = Fault<"lost" | "failed" | "hang" | "defect" | "slow" | "restarted" | "reopened"> & {
  readonly on: EngineOperation
}
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
  /** Room is made in a full context, so that this share of it is filled then. */
  readonly keep?: number
  /** The run has sessions of its own, and somebody decides first whether it talks or works. */
  readonly route?: Route
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
  /** One of the tools is a run of its own, with tools that read or with some that act. */
  readonly helper?: Helper
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
const turnsOf = (codec: Codec, dice: Dice, { helper, trouble }: About): ReadonlyArray<ScriptedTurn> => {
  const turns = dice.times(dice.between(1, 5), () => turnOf(codec, dice, trouble, helper))
  return dice.chance(0.1) ? [...turns, ...turns, ...turns] : turns
}

/** What the model says when it is asked, and when it talks. */
const talkOf = (dice: Dice): ReadonlyArray<ScriptedTurn> => [
  { text: dice.weighted({ chat: 6, task: 2, "chat, I think": 0.5, "": 0.5 }) },
  ...(dice.chance(0.7) ? [{ text: dice.pick([handOverText, `${handOverText} at once`, `Hello, ${secret}.`]) }] : [])
]

/** What the runs of a session have in common. */
interface About {
  readonly trouble: number
  readonly helper: Helper | undefined
  /** The context is small, and room is made in it. */
  readonly tight: boolean
}

const routeOf = (dice: Dice): Pick<RunScenario, "route"> =>
  dice.chance(0.08) ? { route: dice.weighted({ auto: 6, chat: 2, task: 1 }) } : {}

const runOf = (codec: Codec, dice: Dice, about: About): RunScenario => {
  const { tight, trouble } = about
  const limits = { ...limitsOf(dice), ...(tight ? { outputTokens: dice.pick([16, 64]), resultBytes: 200 } : {}) }
  const traceFault = dice.maybe(trouble, () => ({
    at: dice.between(0, 25),
    writes: dice.chance(0.4) ? Infinity : dice.between(1, 3)
  }))
  const route = routeOf(dice)
  return {
    gapMillis: dice.chance(0.2) ? dice.pick([1, 3_000, 40_000]) : 0,
    content: dice.chance(0.6),
    tokenEvents: dice.chance(0.2),
    limits,
    calls: dice.weighted({ single: 1, sequential: 3, parallel: 2 }),
    approver: dice.weighted(approvers),
    candidates: dice.chance(0.08) ? 2 : 1,
    ...(tight ? { keep: dice.pick([0.2, 0.5, 0.9]) } : {}),
    ...route,
    turns: [...(route.route === undefined ? [] : talkOf(dice)), ...turnsOf(codec, dice, about)],
    // Without any wall time nothing but a cancel ends an engine that hangs over the prompt.
    stops: stopsOf(dice, limits.wallMillis === Infinity || limits.wallMillis === 0),
    ...(traceFault === undefined ? {} : { traceFault })
  }
}

const engineKinds = { lost: 1, failed: 2, hang: 1, defect: 1, slow: 3, restarted: 2, reopened: 2 }
const engineOperations = { commit: 4, keep: 1.5, measure: 1, rollback: 0.5, rewind: 0.5, turn: 0.5 }

const engineFault = (dice: Dice): EngineFault => {
  const on = dice.weighted(engineOperations)
  const kind = dice.weighted(engineKinds)
  const at = dice.between(1, on === "rewind" ? 2 : 8)
  // What else goes wrong with a turn is the script's.
  if (on === "turn") return { on, kind: "reopened", at }
  // All others are shielded, or followed by what is: an engine that hangs there, hangs. Theirs to answer or to fail.
  return { on, kind: on !== "commit" && kind === "hang" ? "failed" : kind, at }
}

/** Tokens of system text and tools, in which nobody can make room. */
const frontOf = (codec: Codec, system: string | undefined, helper: Helper | undefined): number => {
  const sizes = codec
    .system(system, { tools: registry.specs })
    .map(({ kind, text }) => (kind === "control" ? 1 : Math.ceil(text.length / 4)))
  return sizes.reduce((sum, size) => sum + size, helper === undefined ? 0 : 80)
}

const sessionOf = (dice: Dice, trouble: number): SessionScenario => {
  const id = dice.weighted(families)
  const codec = codecOf(id)
  const engine = dice.chance(trouble * 1.5) ? dice.times(dice.between(1, 2), () => engineFault(dice)) : []
  const tight = dice.chance(0.07)
  const helper = dice.maybe(0.1, (): Helper => dice.pick(["reading", "acting"]))
  const count = tight ? dice.between(3, 6) : Number(dice.weighted({ "1": 6, "2": 3, "3": 1 }))
  const system = dice.chance(0.7) ? `You are ${secret}.` : undefined
  const room = Number(dice.weighted({ "1500": 1, "3000": 1, "1048576": 5 }))
  const codecFault = dice.maybe(
    trouble * 0.5,
    (): CodecFault => ({ kind: dice.pick(["parser", "push", "answers", "opening", "user"]), at: dice.between(1, 6) })
  )
  return {
    codec: id,
    ...(system === undefined ? {} : { system }),
    contextTokens: tight ? frontOf(codec, system, helper) + dice.pick([90, 160, 300]) : room,
    engine,
    ...(codecFault === undefined ? {} : { codecFault }),
    ...(helper === undefined ? {} : { helper }),
    runs: dice.times(count, () => runOf(codec, dice, { trouble, helper, tight }))
  }
}

const poolKinds = { die_before: 1, die_after: 1, crash: 3, hang: 1, late: 5, not_executed: 1 }
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
    pool: some(2.5, () => ({ at: dice.between(1, 4), kind: dice.weighted(poolKinds) })),
    ledger: some(1, () => ({ at: dice.between(1, 5), kind: dice.weighted(ledgerKinds) })),
    artifacts: some(1, () => dice.between(1, 3))
  }
}
