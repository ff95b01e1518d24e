/** Runs `writ run` in this process with scripted turns, the test tools and virtual time, and stops it where it is told to. */

import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import { parse } from "yaml"
import * as ArtifactStore from "../../src/actors/ArtifactStore.ts"
import { EffectLedger } from "../../src/actors/EffectLedger.ts"
import * as Ids from "../../src/actors/Ids.ts"
import * as ToolPool from "../../src/actors/ToolPool.ts"
import { TraceWriter } from "../../src/actors/TraceWriter.ts"
import { type Provided, Provisions } from "../../src/cli/Provisions.ts"
import { Output } from "../../src/cli/Screen.ts"
import { StopSlot } from "../../src/cli/StopRequests.ts"
import * as Wiring from "../../src/effects/Wiring.ts"
import { invoke } from "./cli.ts"
import { type Line, lines } from "./script.ts"
import * as TestTools from "./tools.ts"

/** Where a run is stopped: at the nth visit of a place, or some virtual time after it. */
export interface Stopping {
  /** `event:TYPE` when it was recorded, `ledger:begin`, `ledger:settle`, `artifact:put` before it is done. */
  readonly place: string
  readonly visit?: number
  readonly thenMillis?: number
}

export interface CliRun {
  /** A directory to work in. */
  readonly cwd: string
  readonly turns: ReadonlyArray<unknown>
  readonly args: ReadonlyArray<string>
  /** Another command that runs something. Default `run`. */
  readonly command?: ReadonlyArray<string>
  readonly stopping?: Stopping
  /** Standard output is a terminal of so many columns. */
  readonly terminal?: number
  /** Changes the services of the run. */
  readonly services?: (layer: ReturnType<Provided["services"]>) => ReturnType<Provided["services"]>
}

export interface Left {
  readonly code: number
  /** Everything a person sees. */
  readonly screen: string
  readonly out: string
  readonly err: string
  readonly performed: ReadonlyArray<string>
}

type Hook = (place: string) => Effect.Effect<void>

/** Long enough for every fiber that has something to do at this moment. */
const settled = Effect.forEach(Array.from({ length: 64 }), () => Effect.yieldNow, { discard: true })

const hooked = (hook: Hook) =>
  Layer.mergeAll(
    Layer.effect(
      TraceWriter,
      Effect.map(TraceWriter, (real) => ({
        open: (runId, options) =>
          Effect.map(real.open(runId, options), (trace) => ({
            ...trace,
            append: (...events) =>
              Effect.andThen(
                trace.append(...events),
                Effect.forEach(events, ({ type }) => hook(`event:${type}`), { discard: true })
              )
          }))
      }))
    ),
    Layer.effect(
      EffectLedger,
      Effect.map(EffectLedger, (real) => ({
        ...real,
        begin: (intent) => Effect.andThen(hook("ledger:begin"), real.begin(intent)),
        settle: (key, outcome) => Effect.andThen(hook("ledger:settle"), real.settle(key, outcome))
      }))
    ),
    Layer.effect(
      ArtifactStore.ArtifactStore,
      Effect.map(ArtifactStore.ArtifactStore, (real) => ({
        ...real,
        put: (runId, artifact) => Effect.andThen(hook("artifact:put"), real.put(runId, artifact))
      }))
    )
  )

/** Files on disk, tools in this thread, the engine of the command line. */
const servicesWith =
  (hook: Hook): Provided["services"] =>
  (options) => {
    const real = Layer.mergeAll(
      Wiring.layerModel(options),
      ToolPool.layerInline(),
      Wiring.layerTrace(options),
      ArtifactStore.layerDirectory((runId) => options.runDirectory!(runId).artifacts),
      Wiring.layerLedger(options),
      Ids.layer
    )
    return Layer.provideMerge(hooked(hook), real)
  }

/** Asks to stop, once, at the place it was told. `reached` is for a stop that comes later. */
const hookFor = (stopping: Stopping | undefined, ask: () => void, reached: Deferred.Deferred<void>): Hook => {
  let visits = 0
  return (place) =>
    Effect.suspend(() => {
      if (place !== stopping?.place || ++visits !== (stopping.visit ?? 1)) return Effect.void
      if (stopping.thenMillis !== undefined) return Effect.asVoid(Deferred.succeed(reached, undefined))
      ask()
      return settled
    })
}

/** Runs to the end. The script is `script.yaml`, the ledger `ledger.sqlite` in `cwd`. */
export const runCli = Effect.fnUntraced(function* ({
  args,
  command = ["run"],
  cwd,
  services,
  stopping,
  terminal,
  turns
}: CliRun) {
  const script = join(cwd, "script.yaml")
  writeFileSync(script, JSON.stringify({ turns }))
  const { performed, registry } = yield* TestTools.make()
  const slot: { handler: (() => void) | undefined } = { handler: undefined }
  const reached = yield* Deferred.make<void>()
  const made = servicesWith(hookFor(stopping, () => slot.handler?.(), reached))
  let screen = ""
  const files = ["--script", script, "--workspace", cwd, "--ledger", join(cwd, "ledger.sqlite")]
  const running = yield* invoke([...command, ...files, ...args]).pipe(
    Effect.provideService(Provisions, {
      tools: Effect.succeed(registry),
      services: services === undefined ? made : (options) => services(made(options))
    }),
    Effect.provideService(StopSlot, slot),
    Effect.provideService(Output, {
      isTTY: terminal !== undefined,
      columns: terminal ?? 80,
      write: (text) => (screen += text)
    }),
    Effect.forkChild({ startImmediately: true })
  )
  if (stopping?.thenMillis !== undefined) {
    yield* Deferred.await(reached)
    yield* settled
    yield* TestClock.adjust(stopping.thenMillis)
    slot.handler?.()
  }
  const ran = yield* Fiber.join(running)
  return { ...ran, screen, performed } satisfies Left
})

export interface TranscriptFile {
  readonly run: string
  readonly status: string
  readonly messages: ReadonlyArray<Readonly<Record<string, unknown>>>
}

/** The record of one part of a run. */
export const recordOf = (
  directory: string,
  suffix = ""
): { trace: ReadonlyArray<Line>; transcript: TranscriptFile } => ({
  trace: lines(readFileSync(join(directory, `trace${suffix}.jsonl`), "utf8")),
  transcript: parse(readFileSync(join(directory, `transcript${suffix}.yaml`), "utf8")) as TranscriptFile
})

/** What a transcript has to hold by its trace: one entry for each message that entered the context, or that is still owed. */
export const entriesOf = (trace: ReadonlyArray<Line>): ReadonlyArray<Readonly<Record<string, unknown>>> =>
  trace.flatMap(({ data, event_type }): ReadonlyArray<Readonly<Record<string, unknown>>> => {
    switch (event_type) {
      case "message_committed":
        return data["content"] === "" ? [] : [{ role: data["role"], content: data["content"] }]
      case "session_state_changed":
        return String(data["role"]).startsWith("assistant_") ? [{ role: "assistant" }] : []
      case "tool_result_committed":
        return [{ role: "tool", call: data["call"], content: data["answer"] }]
      case "tool_result_uncommitted":
        return [{ role: "tool", call: data["call"], content: data["answer"], state: "uncommitted" }]
      case "call_skipped":
        return [{ role: "tool", call: data["call"], state: "uncommitted" }]
      default:
        return []
    }
  })
