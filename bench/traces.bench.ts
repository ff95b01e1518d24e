/**
 * What the commands cost that read a whole trace, for one of 200 000 events: each as a process of its own, from its start to
 * its end, in turn with a bare program that only reads and parses the same file. Processor time and memory are the process's
 * own; times of a busy machine mean little, ratios more. The best of the rounds counts.
 */
import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { record } from "./validate.bench.ts"

const source = new URL("../src/cli.ts", import.meta.url).pathname
const kit = (name: string): string => new URL(`./kit/${name}.ts`, import.meta.url).pathname

/** Calls that make 200 000 events. */
const calls = 20_000
const rounds = 5

interface Used {
  wallMillis: number
  cpuMillis: number
  megabytes: number
}

const once = (args: ReadonlyArray<string>, directory: string): Promise<Used> =>
  new Promise((resolve, reject) => {
    const usage = join(directory, "usage.json")
    const before = performance.now()
    const child = spawn(process.execPath, ["--import", kit("usage"), ...args], {
      cwd: directory,
      env: { ...process.env, WRIT_BENCH_USAGE: usage },
      stdio: ["ignore", "ignore", "inherit"]
    })
    child.on("error", reject)
    child.on("close", (code) => {
      const wallMillis = performance.now() - before
      if (code !== 0) return reject(new Error(`${args.join(" ")} ended with ${code}`))
      resolve({ wallMillis, ...(JSON.parse(readFileSync(usage, "utf8")) as Omit<Used, "wallMillis">) })
    })
  })

/** `program`: the command line to measure, by default the sources. */
export const tracesBench = async (program: string = source): Promise<Record<string, number>> => {
  const directory = mkdtempSync(join(tmpdir(), "writ-bench-"))
  const trace = join(directory, "trace.jsonl")
  writeFileSync(trace, await record(calls, true))
  const jobs: Readonly<Record<string, ReadonlyArray<string>>> = {
    floor: [kit("readLines"), trace],
    start: [program, "--version"],
    inspect: [program, "trace", "inspect", trace],
    report: [program, "trace", "report", trace, "-o", "report.html"],
    validate: [program, "trace", "validate", trace]
  }
  const best = new Map<string, Used>()
  for (let round = 0; round < rounds; round++) {
    for (const [name, args] of Object.entries(jobs)) {
      const used = await once(args, directory)
      const { cpuMillis, megabytes, wallMillis } = best.get(name) ?? used
      best.set(name, {
        wallMillis: Math.min(wallMillis, used.wallMillis),
        cpuMillis: Math.min(cpuMillis, used.cpuMillis),
        megabytes: Math.max(megabytes, used.megabytes)
      })
    }
  }
  const results: Record<string, number> = { "trace MB": statSync(trace).size / 1e6 }
  const floor = best.get("floor")!
  for (const [name, { cpuMillis, megabytes, wallMillis }] of best) {
    results[`${name} s`] = wallMillis / 1000
    results[`${name} cpu-s`] = cpuMillis / 1000
    results[`${name} MB of memory`] = megabytes
    if (name !== "floor") results[`${name} cpu of the floor's`] = cpuMillis / floor.cpuMillis
  }
  results["report page MB"] = statSync(join(directory, "report.html")).size / 1e6
  rmSync(directory, { recursive: true })
  return results
}
