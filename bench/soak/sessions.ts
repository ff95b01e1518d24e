/**
 * `node bench/soak/sessions.ts [minutes] [seed]`: sessions on the model that ships, four at a time, for so long. Runs are left alone,
 * cancelled, interrupted, cut by the clock, or given tools that have no time; meanwhile the engine's process is killed, aborted and
 * stopped. Every record is validated. Each half minute everything rests and what the program holds is looked at.
 *
 * Ends with 1 where a record is not valid, something grows, or something is left. How fast it is, is nobody's concern.
 */
import { spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { held, shown } from "./held.ts"
import { type Figures, soak } from "./Lanes.ts"

const [minutes = "60", seed = "1"] = process.argv.slice(2)

const median = (list: ReadonlyArray<number>): number => [...list].sort((a, b) => a - b)[list.length >> 1]!

/** The last quarter against the second: the first is warming up. */
const growth = ({ rests }: Figures, field: "rssMb" | "heapMb" | "threads" | "descriptors" | "handles") => {
  const quarter = Math.max(1, rests.length >> 2)
  const of = (from: number) => median(rests.slice(from, from + quarter).map((one) => one[field]))
  const [before, after] = [of(quarter), of(rests.length - quarter)]
  return { field, before, after }
}

/** What may be more at the end than it was: memory moves by itself, everything else is counted. */
const allowed = { rssMb: 24, heapMb: 6, threads: 0, descriptors: 0, handles: 0 } as const

if (globalThis.gc === undefined) {
  const again = spawnSync(process.execPath, ["--expose-gc", import.meta.filename, minutes, seed], { stdio: "inherit" })
  process.exit(again.status ?? 1)
}

const place = mkdtempSync(join(tmpdir(), "writ-soak-"))
const before = held()
const figures = await soak({ minutes: Number(minutes), seed: Number(seed), place })
const after = held()
const problems = [...figures.invalid]
for (const { after, before, field } of (["rssMb", "heapMb", "threads", "descriptors", "handles"] as const).map(
  (field) => growth(figures, field)
)) {
  if (after > before + allowed[field]) problems.push(`${field} grew from ${before.toFixed(1)} to ${after.toFixed(1)}`)
}
// Threads of Node's own pool stay once they were used.
if (after.descriptors > before.descriptors + 1)
  problems.push(`${after.descriptors - before.descriptors} descriptors are left`)
for (const pid of figures.engines) if (existsSync(`/proc/${pid}`)) problems.push(`the engine's process ${pid} is left`)
rmSync(place, { recursive: true, force: true })
console.log(`  after   ${shown(after)}`)
console.log(JSON.stringify({ ...figures.counts, rests: figures.rests.length, problems: problems.length }))
for (const problem of problems) console.log(problem)
process.exitCode = problems.length === 0 ? 0 : 1
