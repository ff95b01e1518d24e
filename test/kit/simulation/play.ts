/** Lets one world happen under virtual time: its sessions side by side, each with its runs and, at last, a run that must work. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import type { LedgerEntry } from "../../../src/actors/EffectLedgerEntry.ts"
import { Ids } from "../../../src/actors/Ids.ts"
import { Approval, type Approver, type Decision } from "../../../src/effects/Policy.ts"
import type { RunOptions, RunServices } from "../../../src/effects/Run.ts"
import type { Session } from "../../../src/effects/RunContext.ts"
import type * as ScriptedModel from "../../../src/engine/ScriptedModel.ts"
import type { RunScenario, Scenario, SessionScenario } from "./scenario.ts"
import { layTable, type Table } from "./table.ts"
import { worlds } from "./tools.ts"
import { layerWorld, type Mutant, newRun, type RunSeen, World } from "./world.ts"

/** What was said in one session of a model, and by the engine's own log. */
export interface ConversationSeen {
  readonly session: Session
  readonly talk: boolean
  readonly committed: string
  readonly length: number
}

/** What was seen of one session. */
export interface SessionSeen {
  readonly scenario: SessionScenario
  readonly runs: ReadonlyArray<RunSeen>
  /** The first is the session's own; then those of runs that were routed. */
  readonly conversations: ReadonlyArray<ConversationSeen>
  readonly lost: boolean
}

export interface Seen {
  readonly world: World
  readonly sessions: ReadonlyArray<SessionSeen>
  readonly ledger: ReadonlyArray<LedgerEntry>
  /** Not everything had ended when virtual time was up. */
  readonly stuck: boolean
}

/** What the model says when the turns of a run are used up, and in the run that must work. */
export const lastWord = "That is all."

/** A run without anything special, which says nothing of its own. */
export const probe: RunScenario = {
  gapMillis: 0,
  content: true,
  tokenEvents: false,
  limits: {},
  calls: "sequential",
  approver: "deny",
  candidates: 1,
  turns: [],
  stops: []
}

/** The run that must work: where there is little room, with as much as its session has. */
const probeOf = ({ runs: [first] }: SessionScenario): RunScenario =>
  first?.keep === undefined ? probe : { ...probe, keep: 0.5, limits: { outputTokens: 16 } }

/** Decides for a run and for those that are calls of it. */
const approverOf = (world: World, { scenario: { approver } }: RunSeen): Approver => {
  const say = (decision: Decision) => Effect.succeed(decision)
  const decide = (seen: RunSeen): Effect.Effect<Decision> => {
    switch (approver) {
      case "slow":
        return Effect.delay(say("allow"), 800)
      case "never":
        return Effect.never
      case "defect":
        return Effect.suspend(() => {
          seen.defects++
          return Effect.die(new Error("the approver broke"))
        })
      default:
        return say(approver)
    }
  }
  return {
    name: approver,
    decide: ({ callId, runId }) =>
      Effect.suspend(() => {
        const asking = world.opened(runId)
        return Effect.tap(decide(asking), (decision) => Effect.sync(() => void asking.decisions.set(callId, decision)))
      })
  }
}

/** Stops the run at the virtual instants of its scenario. */
const stopAtInstants = Effect.fnUntraced(function* (seen: RunSeen) {
  for (const { atMillis, how } of seen.scenario.stops) {
    if (atMillis === undefined) continue
    const fire = Effect.sync(() => seen.stop(how))
    yield* Effect.forkChild(atMillis === 0 ? Effect.andThen(Effect.yieldNow, fire) : Effect.delay(fire, atMillis), {
      startImmediately: true
    })
  }
})

const optionsOf = ({ mutant, scenario: { seed } }: World, { label, scenario }: RunSeen): RunOptions => ({
  limits: mutant.limits?.(scenario.limits) ?? scenario.limits,
  calls: scenario.calls,
  gates: { candidates: scenario.candidates },
  sampling: { temperature: scenario.candidates > 1 ? 0.5 : 0 },
  settings: { fixtures: { world: String(seed), run: label } },
  trace: { content: scenario.content, tokenEvents: scenario.tokenEvents },
  ...(scenario.keep === undefined ? {} : { context: { onFull: "compact", keep: scenario.keep } })
})

const playRun = Effect.fnUntraced(function* (
  world: World,
  table: Table,
  seen: RunSeen
): Effect.fn.Return<void, never, RunServices | Scope.Scope> {
  const { mutant } = world
  const { scenario } = seen
  // A stop arrives from a callback, outside of any fiber.
  const runSync = Effect.runSyncWith(yield* Effect.context<never>())
  let cancel: Effect.Effect<void> | undefined
  let self: Fiber.Fiber<unknown, unknown> | undefined
  seen.stop = (how) => {
    if (seen.exit !== undefined || cancel === undefined || self === undefined) return
    seen.stops.push({ how, order: world.tick(), at: world.now() })
    if (how === "interrupt") self.interruptUnsafe()
    else runSync(mutant.cancel?.(cancel) ?? cancel)
  }
  const observed = approverOf(world, seen)
  const running = table
    .run(scenario.route, optionsOf(world, seen), {
      emit: (event) => {
        seen.events.push({ event, order: world.tick() })
        if (event._tag === "Finished") seen.finished = world.tick()
        world.happen(seen)
      },
      started: (effect) => {
        cancel = effect
        // Until then somebody may have been asked where to go.
        seen.startedAt = world.now()
      }
    })
    .pipe(
      Effect.provideService(Approval, mutant.approver?.(observed) ?? observed),
      Effect.provideService(Ids, Ids.of({ run: Effect.succeed(seen.label) })),
      Effect.onExit((exit) =>
        Effect.sync(() => {
          seen.exit = exit
          seen.endedAt = world.now()
        })
      )
    )
  const fiber = yield* Effect.forkChild(
    Effect.withFiber((own) => {
      self = own
      return running
    }),
    { startImmediately: true }
  )
  yield* stopAtInstants(seen)
  const exit = yield* Fiber.await(fiber)
  seen.exit ??= exit
})

/** The turns of the run that is on, one after the other, and then the last word for ever. */
const supplied = () => {
  let waiting: Array<ScriptedModel.ScriptedTurn> = []
  const turns = new Proxy<Array<ScriptedModel.ScriptedTurn>>([], {
    get: (_target, key) => (typeof key === "string" && /^\d+$/.test(key) ? (waiting.shift() ?? { text: lastWord }) : 0)
  })
  const supply = (next: ReadonlyArray<ScriptedModel.ScriptedTurn>): void => {
    waiting = [...next]
  }
  return { supply, turns }
}

const playSession = Effect.fnUntraced(function* (world: World, index: number, scenario: SessionScenario) {
  const { supply, turns } = supplied()
  const table = yield* layTable(world, `s${index}`, scenario, turns)
  const { state } = table
  const runs: Array<RunSeen> = []
  const runAll = Effect.gen(function* () {
    const last = probeOf(scenario)
    for (const [at, run] of [...scenario.runs, last].entries()) {
      if (run.gapMillis > 0) yield* Effect.sleep(run.gapMillis)
      const isProbe = run === last
      const seen = newRun(`w${world.scenario.seed}-s${index}-${isProbe ? "probe" : at}`, run, isProbe, world.now())
      runs.push(seen)
      world.runs.push(seen)
      state.current = seen
      supply(run.turns)
      yield* Effect.scoped(playRun(world, table, seen))
    }
  })
  const seen = Effect.map(
    Effect.forEach(table.conversations, ({ committed, session, talk }) =>
      Effect.map(
        session.context.length,
        (length): ConversationSeen => ({ session, talk, committed: committed(), length })
      )
    ),
    (conversations): SessionSeen => ({ scenario, runs, conversations, lost: state.lost })
  )
  return { runAll, seen }
})

/** More virtual time than any world needs. */
const hours = 6

const playWorld = Effect.fnUntraced(function* (scenario: Scenario, mutant: Mutant) {
  const world = new World(scenario, mutant, yield* Clock.Clock)
  const label = String(scenario.seed)
  worlds.set(label, (performed) => {
    const { looking, run } = performed
    if (looking !== undefined) return world.looked(run, looking)
    world.performed.push({ ...performed, order: world.tick() })
    world.happen(world.byLabel(run))
    return 0
  })
  const play = Effect.gen(function* () {
    const sessions = yield* Effect.forEach(scenario.sessions, (one, index) => playSession(world, index, one))
    const fiber = yield* Effect.forkChild(
      Effect.forEach(sessions, ({ runAll }) => runAll, { concurrency: "unbounded", discard: true }),
      { startImmediately: true }
    )
    for (let hour = 0; hour < hours && fiber.pollUnsafe() === undefined; hour++) yield* TestClock.adjust("1 hour")
    const stuck = fiber.pollUnsafe() === undefined
    if (stuck) fiber.interruptUnsafe()
    else yield* Fiber.join(fiber)
    return {
      world,
      sessions: yield* Effect.forEach(sessions, ({ seen }) => seen),
      ledger: (yield* world.ledger?.list() ?? Effect.succeed([])).map(({ entry }) => entry),
      stuck
    } satisfies Seen
  })
  return yield* Effect.scoped(Effect.provide(play, layerWorld(world))).pipe(
    Effect.ensuring(Effect.sync(() => worlds.delete(label)))
  )
})

/** The world of a scenario, from its beginning to its end, under a clock of its own. */
export const playScenario = (scenario: Scenario, mutant: Mutant = {}): Effect.Effect<Seen, unknown> =>
  Effect.provide(Effect.scoped(playWorld(scenario, mutant)), TestClock.layer({ warningDelay: "1 hour" })) as never
