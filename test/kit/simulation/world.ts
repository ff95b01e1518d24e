/**
 * One simulated world: the memory layers with observers around them, faults between, and a place where a mutant can sit.
 *
 *   loop ── mutant ── observer and faults ── memory layer
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as ArtifactStore from "../../../src/actors/ArtifactStore.ts"
import * as EffectLedger from "../../../src/actors/EffectLedger.ts"
import { LedgerError } from "../../../src/actors/EffectLedgerError.ts"
import * as ToolPool from "../../../src/actors/ToolPool.ts"
import { layerSink, type RunTrace, TraceKey, TraceWriter } from "../../../src/actors/TraceWriter.ts"
import type { AgentEvent } from "../../../src/effects/AgentEvent.ts"
import type { Limits } from "../../../src/effects/Limits.ts"
import type { Outcome } from "../../../src/effects/Outcome.ts"
import type { Approver, Decision } from "../../../src/effects/Policy.ts"
import type { Codec } from "../../../src/engine/codecs/Codec.ts"
import type { ModelSession } from "../../../src/engine/Model.ts"
import { failed, unseenEffect } from "../../../src/tools/Execution.ts"
import type { ToolOutcome } from "../../../src/tools/ToolCall.ts"
import type { Fault, PoolFault, RunScenario, Scenario } from "./scenario.ts"
import type { Performed } from "./tools.ts"
import { helperName } from "./turns.ts"

/** Something that is wrong with the product, put where it would be wrong. */
export interface Mutant {
  readonly engine?: (session: ModelSession) => ModelSession
  readonly codec?: (codec: Codec) => Codec
  readonly pool?: (pool: ToolPool.ToolPool["Service"]) => ToolPool.ToolPool["Service"]
  readonly ledger?: (ledger: EffectLedger.EffectLedger["Service"]) => EffectLedger.EffectLedger["Service"]
  readonly artifacts?: (store: ArtifactStore.ArtifactStore["Service"]) => ArtifactStore.ArtifactStore["Service"]
  readonly approver?: (approver: Approver) => Approver
  readonly trace?: (trace: RunTrace) => RunTrace
  readonly lines?: (lines: string) => string
  readonly limits?: (limits: Partial<Limits>) => Partial<Limits>
  readonly cancel?: (cancel: Effect.Effect<void>) => Effect.Effect<void>
}

/** A call that reached the pool. `performs`: how often the tool runs if nothing interrupts it. */
export interface PoolCall {
  readonly run: string
  readonly callId: string
  readonly tool: string
  readonly key: string | undefined
  readonly performs: 0 | 1
  readonly order: number
}

/** What was seen of one run. */
export interface RunSeen {
  /** Its id. */
  readonly label: string
  /** What its effects are keyed under: its own id, or that of its first try where it is a call of another run. */
  readonly effectRun: string
  /** The run that has it as a call. */
  readonly parent: RunSeen | undefined
  readonly scenario: RunScenario
  readonly probe: boolean
  events: Array<{ readonly event: AgentEvent; readonly order: number }>
  /** How many things have happened in it. */
  happened: number
  startedAt: number
  endedAt: number | undefined
  /** When it emitted `Finished`. */
  finished: number | undefined
  stops: Array<{ readonly how: "cancel" | "interrupt"; readonly order: number; readonly at: number }>
  /** Defects that faults have raised in it. */
  defects: number
  exit: Exit.Exit<Outcome, unknown> | undefined
  lines: string
  /** Did the last write fail? Then the record is not complete. */
  broken: boolean
  decisions: Map<string, Decision>
  stop: (how: "cancel" | "interrupt") => void
}

export const newRun = (label: string, scenario: RunScenario, isProbe: boolean, startedAt: number): RunSeen => ({
  label,
  effectRun: label,
  parent: undefined,
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

/** What happens in a run that is a call of another is planned there; its record is written without trouble. */
const childOf = (parent: RunSeen, label: string, startedAt: number): RunSeen => {
  const { traceFault: _, ...scenario } = parent.scenario
  const child = newRun(label, { ...scenario, stops: [] }, parent.probe, startedAt)
  return { ...child, parent, effectRun: label.replace(/-a\d+$/, "") }
}

type Pool = ToolPool.ToolPool["Service"]

export class World {
  readonly scenario: Scenario
  readonly mutant: Mutant
  readonly clock: Clock.Clock
  readonly runs: Array<RunSeen> = []
  readonly performed: Array<Performed & { readonly order: number }> = []
  readonly poolCalls: Array<PoolCall> = []
  readonly puts: Array<{ readonly runId: string; readonly sha256: string }> = []
  /** Keys whose settlement was made to fail. */
  readonly unsettled = new Set<string>()
  /** The ledger as it is, behind what the loop is given. */
  ledger: EffectLedger.EffectLedger["Service"] | undefined
  /** The pool that runs are given, over one that some calls are taken from before they reach the tools. */
  poolOver: ((take: (tools: Pool) => Pool) => Pool) | undefined
  #order = 0
  readonly #counts = new Map<string, number>()

  constructor(scenario: Scenario, mutant: Mutant, clock: Clock.Clock) {
    this.scenario = scenario
    this.mutant = mutant
    this.clock = clock
  }

  /** Looks of a kind in a run, this one included. */
  readonly looked = (run: string, kind: string): number => {
    const count = this.looks(run, kind) + 1
    this.#counts.set(`${run} ${kind}`, count)
    return count
  }

  readonly looks = (run: string, kind: string): number => this.#counts.get(`${run} ${kind}`) ?? 0

  readonly now = (): number => this.clock.currentTimeMillisUnsafe()

  readonly tick = (): number => ++this.#order

  readonly byLabel = (label: string | undefined): RunSeen | undefined => this.runs.find((run) => run.label === label)

  /** The run of this id, which is a call of another one where it was not seen before. */
  readonly opened = (label: string): RunSeen => {
    const known = this.byLabel(label)
    if (known !== undefined) return known
    const parent = this.byLabel(label.slice(0, Math.max(0, label.lastIndexOf(".call-"))))
    if (parent === undefined) throw new Error(`nobody runs ${label}`)
    const child = childOf(parent, label, this.now())
    this.runs.push(child)
    return child
  }

  /** Counts one thing in a run, and so in the one around it, and stops it where its scenario says so. */
  readonly happen = (run: RunSeen | undefined): void => {
    if (run === undefined) return
    this.happen(run.parent)
    run.happened++
    if (run.happened > 20_000) throw new Error(`${run.label} does not end`)
    for (const { atEvent, how } of run.scenario.stops) {
      if (atEvent !== run.happened) continue
      // A fiber is interrupted by another one, so not before this one pauses.
      if (how === "interrupt") queueMicrotask(() => run.stop(how))
      else run.stop(how)
    }
  }

  /** The fault of this operation, if it is its turn. */
  readonly fault = <F extends Fault<string>>(counter: string, faults: ReadonlyArray<F>): F | undefined => {
    const count = (this.#counts.get(counter) ?? 0) + 1
    this.#counts.set(counter, count)
    return faults.find(({ at }) => at === count)
  }
}

/** Lines go to what was seen of the run; a write that fails leaves nothing. */
const traces = (world: World) =>
  layerSink((runId) => {
    const seen = world.opened(runId)
    const fault = seen.scenario.traceFault
    const fails = (write: number) => fault !== undefined && write >= fault.at && write < fault.at + fault.writes
    seen.broken = fails(0)
    if (seen.broken) throw new Error("disk full")
    let writes = 0
    return {
      path: undefined,
      write: (lines) => {
        seen.broken = fails(++writes)
        if (!seen.broken) seen.lines += world.mutant.lines?.(lines) ?? lines
        // A file calls nobody back: whoever reacts to a line does so after it.
        queueMicrotask(() => world.happen(seen))
        if (seen.broken) throw new Error("disk full")
      },
      close: () => {}
    }
  })

const layerTraces = (world: World) =>
  Layer.effect(
    TraceWriter,
    Effect.map(TraceWriter, (writer) =>
      TraceWriter.of({
        open: (runId, options) =>
          Effect.map(writer.open(runId, options), (trace) => world.mutant.trace?.(trace) ?? trace)
      })
    )
  ).pipe(Layer.provide(traces(world)), Layer.provideMerge(Layer.succeed(TraceKey, () => new Uint8Array(32))))

const performsOf = (kind: PoolFault["kind"] | undefined, call: ToolPool.AdmittedCall): 0 | 1 => {
  // A run inside another is seen by its record.
  if (call.deadlineMillis <= 0 || call.tool.name === helperName) return 0
  return kind === undefined || kind === "die_after" || kind === "late" ? 1 : 0
}

/** How late the outcome of a call is that was given up. */
const lateMillis = 5_000

/** A pool in which some calls go wrong. */
const faultyPool =
  (world: World, base: Pool, scope: Scope.Scope) =>
  (
    fault: PoolFault | undefined,
    call: ToolPool.AdmittedCall,
    late: ((outcome: ToolOutcome) => void) | undefined
  ): Effect.Effect<ToolOutcome> => {
    const unseen = unseenEffect(call.tool.contract)
    const die = Effect.suspend(() => {
      const run = world.byLabel(call.runId)
      if (run !== undefined) run.defects++
      return Effect.die(new Error("the pool is broken"))
    })
    switch (fault?.kind) {
      case undefined:
        return base.run(call, late)
      case "die_before":
        return die
      case "die_after":
        return Effect.andThen(base.run(call, late), die)
      case "crash":
        return Effect.succeed(failed("crashed", unseen, "the thread died", 3))
      case "not_executed":
        return Effect.succeed(failed("not_executed", "none", "the pool is shut", 0))
      case "hang":
        return Effect.never
      case "late":
        return Effect.flatMap(base.run(call), (outcome) =>
          Effect.as(
            Effect.forkIn(
              Effect.delay(
                Effect.sync(() => late?.(outcome)),
                lateMillis
              ),
              scope
            ),
            failed("timed_out", unseen, "no answer in time", 1)
          )
        )
    }
  }

const observedPool =
  (world: World, tools: Pool, scope: Scope.Scope) =>
  (take: (tools: Pool) => Pool): Pool => {
    const faulty = faultyPool(world, take(tools), scope)
    const observed = ToolPool.ToolPool.of({
      run: (call, late) =>
        Effect.suspend(() => {
          const { callId, runId: label = "", settings, tool } = call
          const fault = world.fault("pool", world.scenario.pool)
          const performs = performsOf(fault?.kind, call)
          const { idempotencyKey: key } = settings
          world.poolCalls.push({ run: label, callId, tool: tool.name, key, performs, order: world.tick() })
          world.happen(world.byLabel(label))
          const fixtures = { ...settings.fixtures, run: label, call: callId }
          return faulty(fault, { ...call, settings: { ...settings, fixtures } }, late)
        })
    })
    return world.mutant.pool?.(observed) ?? observed
  }

const layerPool = (world: World) =>
  Layer.effect(
    ToolPool.ToolPool,
    Effect.gen(function* () {
      const over = observedPool(world, yield* ToolPool.ToolPool, yield* Effect.scope)
      world.poolOver = over
      return over((tools) => tools)
    })
  ).pipe(Layer.provide(ToolPool.layerInline()))

const layerLedger = (world: World) =>
  Layer.effect(
    EffectLedger.EffectLedger,
    Effect.map(EffectLedger.EffectLedger, (base) => {
      const refuse = (operation: "begin" | "settle") =>
        new LedgerError({ operation, reason: "unavailable", message: `the ledger is out of order (${operation})` })
      const begins = world.scenario.ledger.filter(({ kind }) => kind === "begin")
      const settles = world.scenario.ledger.filter(({ kind }) => kind !== "begin")
      const observed = EffectLedger.EffectLedger.of({
        ...base,
        begin: (intent) =>
          Effect.suspend(() =>
            world.fault("ledger.begin", begins) === undefined ? base.begin(intent) : Effect.fail(refuse("begin"))
          ),
        settle: (key, outcome) =>
          Effect.suspend(() => {
            const fault = world.fault("ledger.settle", settles)
            if (fault === undefined) return base.settle(key, outcome)
            world.unsettled.add(key)
            // It may have been recorded and only the answer was lost.
            const kept = fault.kind === "settle_lost" ? base.settle(key, outcome) : Effect.void
            return Effect.andThen(kept, Effect.fail(refuse("settle")))
          })
      })
      world.ledger = base
      return world.mutant.ledger?.(observed) ?? observed
    })
  ).pipe(Layer.provide(EffectLedger.layerMemory()))

const layerArtifacts = (world: World) =>
  Layer.effect(
    ArtifactStore.ArtifactStore,
    Effect.map(ArtifactStore.ArtifactStore, (base) => {
      const faults = world.scenario.artifacts.map((at) => ({ at, kind: "fails" }))
      const observed = ArtifactStore.ArtifactStore.of({
        ...base,
        put: (runId, artifact) =>
          Effect.suspend(() =>
            world.fault("artifacts", faults) === undefined
              ? Effect.tap(base.put(runId, artifact), ({ sha256 }) =>
                  Effect.sync(() => void world.puts.push({ runId, sha256 }))
                )
              : Effect.fail(new ArtifactStore.ArtifactError({ message: "no room for artifacts" }))
          )
      })
      return world.mutant.artifacts?.(observed) ?? observed
    })
  ).pipe(Layer.provide(ArtifactStore.layerMemory))

/** Everything the runs of a world share. */
export const layerWorld = (world: World) =>
  Layer.mergeAll(layerTraces(world), layerPool(world), layerLedger(world), layerArtifacts(world))
