/** What `timeouts.ts` runs, bundled: prints what is held on the way, and the figures as JSON in the last line. */
import { enableCompileCache } from "node:module"
import { extname } from "node:path"
import * as Effect from "effect/Effect"
import { layerPiscina, ToolPool } from "../../src/actors/ToolPool.ts"
import { admitted } from "../../test/kit/toolCalls.ts"
import { type Held, held, shown } from "./held.ts"
import { made } from "./spinning.ts"

enableCompileCache()

/** Least-squares growth per 1,000 timeouts, over the second half: the first is warming up. */
const growth = (seen: ReadonlyArray<readonly [number, number]>): number => {
  const late = seen.slice(Math.floor(seen.length / 2))
  const x = late.reduce((sum, [done]) => sum + done, 0) / late.length
  const y = late.reduce((sum, [, value]) => sum + value, 0) / late.length
  const over = late.reduce((sum, [done, value]) => sum + (done - x) * (value - y), 0)
  return (over / late.reduce((sum, [done]) => sum + (done - x) ** 2, 0)) * 1_000
}

const show = (done: number, start: number, now: Held): void =>
  console.log(
    `  ${String(done).padStart(6)}  ${((performance.now() - start) / 1000).toFixed(0).padStart(6)} s  ${shown(now)}`
  )

const soaked = async (timeouts: number, isolation: "thread" | "process"): Promise<Record<string, number>> => {
  const start = performance.now()
  const seen: Array<readonly [number, Held]> = []
  // The first line opens what printing needs.
  console.log(`  ${timeouts} timeouts, each ending a ${isolation}`)
  const before = held()
  const every = Math.max(1, Math.floor(timeouts / 40))
  await Effect.runPromise(
    Effect.gen(function* () {
      const pool = yield* ToolPool
      const one = (index: number) =>
        Effect.flatMap(pool.run(admitted(made, "spin", {}, { deadlineMillis: 1 })), (outcome) =>
          outcome._tag === "Failed" && outcome.kind === "timed_out"
            ? Effect.void
            : Effect.die(new Error(`call ${index} came to ${JSON.stringify(outcome)}`))
        )
      let done = 0
      const lane = Effect.gen(function* () {
        while (done < timeouts) {
          const index = ++done
          yield* one(index)
          if (index % every !== 0) continue
          seen.push([index, held()])
          show(index, start, seen.at(-1)![1])
        }
      })
      yield* Effect.all([lane, lane], { concurrency: 2, discard: true })
      const after = yield* pool.run(admitted(made, "answer", {}, { deadlineMillis: 60_000 }))
      if (after._tag !== "Succeeded") return yield* Effect.die(new Error("the pool was lost"))
    }).pipe(
      Effect.provide(
        layerPiscina({
          module: new URL(`spinning${extname(import.meta.url)}`, import.meta.url),
          threads: 3,
          threadsPerTool: 2,
          graceMillis: 0,
          isolation
        })
      )
    )
  )
  const seconds = (performance.now() - start) / 1000
  const left = held()
  show(timeouts, start, left)
  const series = (field: keyof Held) => growth(seen.map(([done, one]) => [done, one[field]]))
  return {
    timeouts,
    "timeouts per second": timeouts / seconds,
    "rss MB, growth per 1000": series("rssMb"),
    "heap MB, growth per 1000": series("heapMb"),
    "threads, growth per 1000": series("threads"),
    "descriptors, growth per 1000": series("descriptors"),
    "threads left after close": left.threads - before.threads,
    "descriptors left after close": left.descriptors - before.descriptors
  }
}

const [timeouts = "10000", isolation = "thread"] = process.argv.slice(2)
console.log(JSON.stringify(await soaked(Number(timeouts), isolation === "process" ? "process" : "thread")))
