/** The lanes of `sessions.ts`, and what disturbs them. Prints what is held at each rest; judges nothing but records. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as ArtifactStore from "../../src/actors/ArtifactStore.ts"
import * as Ids from "../../src/actors/Ids.ts"
import { makeWorker, type WorkerModel } from "../../src/actors/Inference.ts"
import * as Agent from "../../src/effects/Agent.ts"
import type { RunOptions } from "../../src/effects/Run.ts"
import * as RunDirectory from "../../src/effects/RunDirectory.ts"
import { validateFile } from "../../src/effects/trace/TraceValidator.ts"
import { layerLedger, layerTools, layerTrace, tinyModel } from "../../src/effects/Wiring.ts"
import { Model } from "../../src/engine/Model.ts"
import { registry as builtin } from "../../src/tools/builtin/index.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { Dice } from "../../test/kit/simulation/dice.ts"
import { type Held, held, shown } from "./held.ts"

export interface Soak {
  readonly minutes: number
  readonly seed: number
  /** A directory for everything that is written. */
  readonly place: string
}

export interface Figures {
  /** What was held whenever nothing ran. */
  readonly rests: ReadonlyArray<Held>
  /** Runs by how they ended, disturbances by what they were. */
  readonly counts: Readonly<Record<string, number>>
  /** Records that are not valid, and why. */
  readonly invalid: ReadonlyArray<string>
  /** Processes that were the engine. */
  readonly engines: ReadonlyArray<number>
}

const lanes = 4
const restMillis = 30_000

const tasks = [
  "Read baseline.json and tuned.json, compute the relative improvement of score in percent and write report.md.",
  "What is 17.5% of 240?",
  "What is the temperature in riyadh?",
  "List the files.",
  "Read baseline.json."
]
const system = "You are a small local assistant. Use the tools when they help and answer briefly."

/** All seven tools that the model was trained with, in that order. */
const tools = ["list_files", "read_text_file", "search_text", "calculate", "lookup", "write_artifact", "clarify"]

/** What happens to a run, by how often it does. */
const fates = { nothing: 50, cancelled: 15, interrupted: 10, clock: 10, tools: 10, budget: 5 } as const
const disturbances = { SIGKILL: 8, SIGABRT: 4, SIGSEGV: 2, SIGSTOP: 1, nothing: 15 } as const

const files = (workspace: string): void => {
  mkdirSync(workspace, { recursive: true })
  writeFileSync(join(workspace, "baseline.json"), '{"run":"baseline_q4","score":0.612}')
  writeFileSync(join(workspace, "tuned.json"), '{"run":"tuned_q8","score":0.744}')
}

/** One that is gone already is none the worse. */
const hit = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal)
  } catch {}
}

class Soaking {
  readonly rests: Array<Held> = []
  readonly counts: Record<string, number> = {}
  readonly invalid: Array<string> = []
  readonly engines = new Set<number>()
  readonly dice: Dice
  readonly #soak: Soak
  readonly #worker: WorkerModel
  readonly #registry: Registry.Registry
  readonly #end: number
  /** Open while lanes may go on. */
  readonly #going = Latch.makeUnsafe(true)
  #busy = 0

  constructor(soak: Soak, worker: WorkerModel, registry: Registry.Registry) {
    this.#soak = soak
    this.#worker = worker
    this.#registry = registry
    this.dice = new Dice(soak.seed)
    this.#end = performance.now() + soak.minutes * 60_000
  }

  get over(): boolean {
    return performance.now() >= this.#end
  }

  readonly count = (what: string): void => {
    this.counts[what] = (this.counts[what] ?? 0) + 1
  }

  readonly directory = (runId: string): string => join(this.#soak.place, "runs", runId)

  /** Sessions, one after another. */
  readonly lane = Effect.gen({ self: this }, function* () {
    while (!this.over) {
      yield* this.#going.await
      this.#busy++
      yield* Effect.scoped(this.#session).pipe(
        // What a restart could not save is the user's to see; it ends this session, not the soak.
        Effect.catchTag("EngineError", ({ reason }) => Effect.sync(() => this.count(`engine ${reason}`))),
        Effect.ensuring(Effect.sync(() => this.#busy--))
      )
    }
  })

  get #session() {
    return Effect.gen({ self: this }, function* () {
      const session = yield* Agent.session({ tools: this.#registry, system })
      this.count("sessions")
      for (let rest = this.dice.between(1, 3); rest > 0; rest--) yield* Effect.scoped(this.#run(session))
    })
  }

  #options(fate: keyof typeof fates): RunOptions {
    const { dice } = this
    return {
      settings: { workspace: join(this.#soak.place, "workspace") },
      limits: {
        outputTokens: fate === "budget" ? dice.between(1, 20) : 128,
        ...(fate === "clock" ? { wallMillis: dice.between(1, 400) } : {}),
        ...(fate === "tools" ? { toolMillis: dice.between(1, 5) } : {})
      },
      trace: { content: dice.chance(0.5), tokenEvents: dice.chance(0.2) }
    }
  }

  #run(session: Effect.Success<ReturnType<typeof Agent.session>>) {
    return Effect.gen({ self: this }, function* () {
      const fate = this.dice.weighted(fates)
      const after = this.dice.between(1, 60)
      const runId = yield* Effect.scoped(this.#started(session, fate, after))
      const path = join(this.directory(runId), "trace.jsonl")
      const verdict = yield* Effect.orDie(validateFile(path, { artifacts: join(this.directory(runId), "artifacts") }))
      if (!verdict.ok || !verdict.complete) {
        this.invalid.push(`${runId} (${fate}): ${JSON.stringify(verdict.violations.slice(0, 3))}`)
        return
      }
      rmSync(this.directory(runId), { recursive: true, force: true })
    })
  }

  /** A run to its end, or until it is left: leaving the scope interrupts it. */
  #started(session: Effect.Success<ReturnType<typeof Agent.session>>, fate: keyof typeof fates, after: number) {
    return Effect.gen({ self: this }, function* () {
      const handle = yield* Effect.orDie(Agent.startIn(session, this.dice.pick(tasks), this.#options(fate)))
      let seen = 0
      const watched = handle.events.pipe(
        Stream.tap(() => (++seen === after && fate === "cancelled" ? handle.cancel : Effect.void)),
        Stream.takeWhile(() => fate !== "interrupted" || seen < after),
        Stream.runDrain
      )
      yield* watched
      if (fate === "interrupted" && seen >= after) {
        this.count("interrupted")
        return handle.runId
      }
      const { stop } = yield* Effect.orDie(handle.outcome)
      this.count(stop._tag === "Failed" ? `failed ${stop.class}` : stop._tag)
      return handle.runId
    })
  }

  /** Hits the engine's process now and then. */
  readonly trouble = Effect.gen({ self: this }, function* () {
    for (;;) {
      yield* Effect.sleep(this.dice.between(1_000, 6_000))
      yield* this.#going.await
      const what = this.dice.weighted(disturbances)
      if (what === "nothing") continue
      const host = yield* Effect.option(this.#worker.host)
      const pid = host._tag === "Some" ? host.value.pid : undefined
      if (pid === undefined) continue
      this.engines.add(pid)
      this.count(what)
      hit(pid, what)
    }
  })

  /** Lets everything come to rest, and looks. */
  readonly looking = Effect.gen({ self: this }, function* () {
    const start = performance.now()
    while (!this.over) {
      yield* Effect.sleep(Math.min(restMillis, Math.max(1, this.#end - performance.now())))
      yield* this.#going.close
      while (this.#busy > 0) yield* Effect.sleep(5)
      // The engine is there again.
      const { pid } = yield* this.#worker.host
      if (pid !== undefined) this.engines.add(pid)
      this.rests.push(held())
      const runs = Object.entries(this.counts).map(([what, count]) => `${what} ${count}`)
      console.log(`  ${((performance.now() - start) / 1000).toFixed(0).padStart(5)} s  ${shown(this.rests.at(-1)!)}`)
      console.log(`           ${runs.join(", ")}`)
      yield* this.#going.open
    }
  })
}

export const soak = (options: Soak): Promise<Figures> =>
  Effect.runPromise(
    Effect.gen(function* () {
      files(join(options.place, "workspace"))
      const worker = yield* makeWorker({
        modelPath: tinyModel,
        contextTokens: 2048,
        sequences: lanes,
        threads: 1,
        isolation: "process",
        stallSeconds: 20,
        // They are what is looked at here; what a program allows is another matter.
        restarts: { times: 100, withinSeconds: 10, waitMillis: 10 }
      })
      const soaking = new Soaking(options, worker, yield* Registry.pick(yield* builtin, tools))
      const runDirectory = (runId: string) => RunDirectory.at(soaking.directory(runId))
      const services = Layer.mergeAll(
        Layer.succeed(Model, worker.model),
        layerTools({}),
        layerTrace({ runDirectory }),
        ArtifactStore.layerDirectory((runId) => runDirectory(runId).artifacts),
        layerLedger({ ledger: join(options.place, "ledger.sqlite") }),
        Ids.layer
      )
      yield* Effect.gen(function* () {
        yield* Effect.forkScoped(soaking.trouble)
        yield* Effect.all([...Array.from({ length: lanes }, () => soaking.lane), soaking.looking], {
          concurrency: lanes + 1,
          discard: true
        })
      }).pipe(Effect.scoped, Effect.provide(services))
      const { counts, engines, invalid, rests } = soaking
      return { counts, engines: [...engines], invalid, rests }
    }).pipe(Effect.scoped)
  )
