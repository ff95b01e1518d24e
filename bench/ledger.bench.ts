/**
 * What the effect ledger costs: in memory, in a file with one fsync per step, and when 64 calls share their fsyncs. The bare
 * disk is measured in the same minute, step by step in alternation, because it is never the same disk twice.
 */

import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { EffectLedger, layerMemory } from "../src/actors/EffectLedger.ts"
import type { Intent, SettledOutcome } from "../src/actors/EffectLedgerEntry.ts"
import { argumentsDigest, keyOf } from "../src/actors/EffectLedgerKey.ts"
import { layerSqlite } from "../src/actors/EffectLedgerSqlite.ts"

export interface LedgerFigures {
  /** Microseconds per call, a call being one begin and one settle. */
  readonly memoryMicros: number
  /** The same in the quietest tenth of the blocks: what it costs when nothing else wants the processor. */
  readonly memoryMicrosQuiet: number
  /** Median microseconds of one begin or one settle, alone. */
  readonly sqliteStepMicros: number
  /** Median microseconds of one write of the same size and fdatasync. */
  readonly bareStepMicros: number
  /** Median of the ratios of neighbours in time. */
  readonly sqliteToBare: number
  readonly callsPerSecondAlone: number
  readonly callsPerSecond64: number
  readonly concurrencyGain: number
}

const outcome: SettledOutcome = { ok: true, answer: '{"ok":true,"result":42}', effect: "present", state: "succeeded" }

let made = 0

const intent = (): Intent => {
  const digest = argumentsDigest(`{"n":${made}}`)
  const place = {
    runId: "20261130-061812-4f9a2c",
    step: "tool-0",
    ordinal: made++,
    tool: "pay",
    argumentsDigest: digest
  }
  return { ...place, key: keyOf(place), callId: "call-1", mode: "external" }
}

const intents = (count: number): ReadonlyArray<Intent> => Array.from({ length: count }, intent)

const callOnce = (ledger: EffectLedger["Service"], one: Intent) =>
  Effect.andThen(ledger.begin(one), ledger.settle(one.key, outcome))

const median = (values: ReadonlyArray<number>): number => [...values].sort((a, b) => a - b)[values.length >> 1]!

/** Milliseconds of `effect`, on the fiber that runs it. */
const timed = (effect: Effect.Effect<unknown, unknown>) =>
  Effect.suspend(() => {
    const before = performance.now()
    return Effect.map(Effect.orDie(effect), () => performance.now() - before)
  })

const memory = Effect.gen(function* () {
  const ledger = yield* EffectLedger
  const block = (calls: ReadonlyArray<Intent>) =>
    Effect.forEach(calls, (one) => callOnce(ledger, one), { discard: true })
  yield* block(intents(5_000))
  const blocks: Array<number> = []
  // Short ones, so that some of them meet nobody else on a busy machine.
  for (let at = 0; at < 100; at++) blocks.push(((yield* timed(block(intents(200)))) / 200) * 1_000)
  return { median: median(blocks), quiet: [...blocks].sort((a, b) => a - b)[blocks.length / 10]! }
})

/** One step and one bare write, in turn, so that both meet the same disk. */
const against = (fd: number) =>
  Effect.gen(function* () {
    const ledger = yield* EffectLedger
    // A commit writes about two pages with their frame headers to the write-ahead log.
    const bytes = Buffer.alloc(2 * (4096 + 24), 1)
    const bare = timed(
      Effect.sync(() => {
        writeSync(fd, bytes)
        fdatasyncSync(fd)
      })
    )
    const steps: Array<number> = []
    const bares: Array<number> = []
    for (const [at, one] of intents(450).entries()) {
      for (const step of [ledger.begin(one), ledger.settle(one.key, outcome)]) {
        const stepMillis = yield* timed(step)
        const bareMillis = yield* bare
        if (at < 50) continue
        steps.push(stepMillis * 1_000)
        bares.push(bareMillis * 1_000)
      }
    }
    return { step: median(steps), bare: median(bares), ratio: median(steps.map((value, at) => value / bares[at]!)) }
  })

/** Calls per second of that many callers at once, the middle one of several blocks of each, in turn. */
const throughput = Effect.gen(function* () {
  const ledger = yield* EffectLedger
  const rate = (count: number, concurrency: number) => {
    const calls = intents(count)
    const all = Effect.forEach(calls, (one) => callOnce(ledger, one), { concurrency, discard: true })
    return Effect.map(timed(all), (millis) => (count / millis) * 1_000)
  }
  const alone: Array<number> = []
  const together: Array<number> = []
  for (let at = 0; at < 9; at++) {
    alone.push(yield* rate(64, 1))
    together.push(yield* rate(64 * 8, 64))
  }
  return { alone: median(alone), together: median(together) }
})

const runIn = async <A>(
  layer: Layer.Layer<EffectLedger, unknown>,
  program: Effect.Effect<A, unknown, EffectLedger>
) => {
  const runtime = ManagedRuntime.make(layer)
  try {
    return await runtime.runPromise(program)
  } finally {
    await runtime.dispose()
  }
}

/** What each figure has to be. Memory is judged in its quiet moments: in others it measures who else is at work here. */
const targets = [
  { what: "memory, begin + settle, quiet", of: "memoryMicrosQuiet", unit: "µs", most: 20 },
  { what: "sqlite step / bare fdatasync", of: "sqliteToBare", unit: "×", most: 1.5 },
  { what: "calls/s of 64 callers / of one", of: "concurrencyGain", unit: "×", least: 8 }
] as const

const shown = (value: number): string => value.toFixed(value < 100 ? 2 : 0)

/** Three verdicts, and what they are made of. */
const reportOf = (figures: LedgerFigures): ReadonlyArray<string> => {
  const line = (what: string, value: number, unit: string, verdict = "") =>
    `ledger  ${what.padEnd(34)} ${shown(value).padStart(9)} ${unit.padEnd(8)} ${verdict}`.trimEnd()
  const verdicts = targets.map((target) => {
    const value = figures[target.of]
    const met = "most" in target ? value <= target.most : value >= target.least
    const wanted = "most" in target ? `≤ ${target.most}` : `≥ ${target.least}`
    return line(target.what, value, target.unit, `target ${wanted}  ${met ? "met" : "MISSED"}`)
  })
  return [
    line("memory, begin + settle, median", figures.memoryMicros, "µs"),
    line("sqlite, one durable step", figures.sqliteStepMicros, "µs"),
    line("bare write + fdatasync", figures.bareStepMicros, "µs"),
    line("sqlite, one caller", figures.callsPerSecondAlone, "calls/s"),
    line("sqlite, 64 callers", figures.callsPerSecond64, "calls/s"),
    ...verdicts
  ]
}

/** Measures and prints. `directory` says which disk; it is not changed except for files that are removed again. */
export const ledgerBench = async (directory: string = tmpdir()): Promise<LedgerFigures> => {
  const dir = mkdtempSync(join(directory, "writ-ledger-bench-"))
  const fd = openSync(join(dir, "bare"), "w")
  try {
    const inMemory = await runIn(layerMemory(), memory)
    const { bare, ratio, step } = await runIn(layerSqlite({ path: join(dir, "a.sqlite") }), against(fd))
    const { alone, together } = await runIn(layerSqlite({ path: join(dir, "b.sqlite") }), throughput)
    const figures: LedgerFigures = {
      memoryMicros: inMemory.median,
      memoryMicrosQuiet: inMemory.quiet,
      sqliteStepMicros: step,
      bareStepMicros: bare,
      sqliteToBare: ratio,
      callsPerSecondAlone: alone,
      callsPerSecond64: together,
      concurrencyGain: together / alone
    }
    for (const text of reportOf(figures)) console.log(text)
    return figures
  } finally {
    closeSync(fd)
    rmSync(dir, { recursive: true })
  }
}

if (import.meta.main) await ledgerBench(process.argv[2])
