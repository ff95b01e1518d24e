/** Lets one world happen under virtual time: its sessions side by side, each with its runs and, at last, a run that must work. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import type { LedgerEntry } from "../../../src/actors/EffectLedgerEntry.ts"
import { Ids } from "../../../src/actors/Ids.ts"
import { Approval, type Approver, type Decision } from "../../../src/effects/Policy.ts"
import { execute, type RunServices } from "../../../src/effects/Run.ts"
import type { Session } from "../../../src/effects/RunContext.ts"
import { open } from "../../../src/effects/Session.ts"
import { Model } from "../../../src/engine/Model.ts"
import * as ScriptedModel from "../../../src/engine/ScriptedModel.ts"
import { breaking, faulty, type SessionState } from "./engine.ts"
import { codecOf, type RunScenario, type Scenario, type SessionScenario } from "./scenario.ts"
import { registry, worlds } from "./tools.ts"
import { secret } from "./turns.ts"
import { layerWorld, type Mutant, type RunSeen, World } from "./world.ts"

/** What was seen of one session. */
export interface SessionSeen {
  readonly scenario: SessionScenario
  readonly session: Session
  readonly runs: ReadonlyArray<RunSeen>
  /** What is in the context, by the engine's own log. */
  readonly committed: string
  readonly length: number
  readonly lost: boolean
}

export interface Seen {
  readonly world: World
  readonly sessions: ReadonlyArray<SessionSeen>
  readonly ledger: ReadonlyArray<LedgerEntry>
  /** Not everything had ended when virtual time was up. */
  readonly stuck: boolean
}

/** Text of every task; the secret is in it. */
export const task = `the task of the ${secret}`

/** What the model says when the turns of a run are used up, and in the run that must work. */
export const lastWord = "That is all."

const probe: RunScenario = {
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

const approverOf = (seen: RunSeen): Approver => {
  const { approver } = seen.scenario
  const say = (decision: Decision) => Effect.succeed(decision)
  const decide = (): Effect.Effect<Decision> => {
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
    decide: ({ callId }) =>
      Effect.tap(decide(), (decision) => Effect.sync(() => void seen.decisions.set(callId, decision)))
  }
}

const newRun = (label: string, scenario: RunScenario, isProbe: boolean, startedAt: number): RunSeen => ({
  label,
  scenario,
  probe: isProbe,
  events: [],
  happened: 0,
  startedAt,
  endedAt: undefined,
  finished: undefined,
  stops: [],
  defects: 0,
  exit: undefined,
  lines: "",
  broken: false,
  decisions: new Map(),
  stop: () => {}
})

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

const playRun = Effect.fnUntraced(function* (
  world: World,
  session: Session,
  seen: RunSeen
): Effect.fn.Return<void, never, RunServices> {
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
  const observed = approverOf(seen)
  const running = execute(
    session,
    task,
    {
      limits: mutant.limits?.(scenario.limits) ?? scenario.limits,
      calls: scenario.calls,
      gates: { candidates: scenario.candidates },
      sampling: { temperature: scenario.candidates > 1 ? 0.5 : 0 },
      settings: { fixtures: { world: String(world.scenario.seed), run: seen.label } },
      trace: { content: scenario.content, tokenEvents: scenario.tokenEvents }
    },
    {
      emit: (event) => {
        seen.events.push({ event, order: world.tick() })
        if (event._tag === "Finished") seen.finished = world.tick()
        world.happen(seen)
      },
      started: (effect) => {
        cancel = effect
      }
    }
  ).pipe(
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
  const state: SessionState = { id: `s${index}`, current: undefined, lost: false }
  const context = yield* Layer.build(ScriptedModel.layer({ turns, contextTokens: scenario.contextTokens }))
  const model = yield* Effect.provideContext(Model, context)
  const [log] = [yield* Effect.provideContext(ScriptedModel.ScriptedSessions, context)]
  const codec = breaking(world, state, scenario.codecFault, codecOf(scenario.codec))
  const session = yield* open({
    tools: registry,
    codec: world.mutant.codec?.(codec) ?? codec,
    ...(scenario.system === undefined ? {} : { system: scenario.system })
  }).pipe(
    Effect.provideService(Model, {
      ...model,
      session: Effect.map(model.session, (inner) => {
        const outer = faulty(world, state, scenario, inner)
        return world.mutant.engine?.(outer) ?? outer
      })
    })
  )
  const runs: Array<RunSeen> = []
  const runAll = Effect.gen(function* () {
    for (const [at, run] of [...scenario.runs, probe].entries()) {
      if (run.gapMillis > 0) yield* Effect.sleep(run.gapMillis)
      const isProbe = run === probe
      const seen = newRun(`w${world.scenario.seed}-s${index}-${isProbe ? "probe" : at}`, run, isProbe, world.now())
      runs.push(seen)
      world.runs.push(seen)
      state.current = seen
      supply(run.turns)
      yield* playRun(world, session, seen)
    }
  })
  const seen = Effect.map(
    session.context.length,
    (length): SessionSeen => ({
      scenario,
      session,
      runs,
      committed: log[0]?.committed() ?? "",
      length,
      lost: state.lost
    })
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
