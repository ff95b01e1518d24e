/**
 * `npm run bench [name…]`: runs the benchmarks and prints every figure beside the committed baseline. Nothing fails here
 * because a machine is slow; `--update` writes the figures seen as the new baseline.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { cpus, loadavg } from "node:os"

type Figures = Readonly<Record<string, number>>

const suites: Readonly<Record<string, () => Promise<Figures>>> = {
  loop: async () => (await import("./loop.bench.ts")).loopBench(),
  ledger: async () => ({ ...(await (await import("./ledger.bench.ts")).ledgerBench()) }),
  sessions: async () => (await import("./sessions.bench.ts")).sessionsBench(),
  validate: async () => (await import("./validate.bench.ts")).validateBench(),
  traces: async () => (await import("./traces.bench.ts")).tracesBench(process.env["WRIT_BENCH_PROGRAM"]),
  eval: async () => (await import("./eval.bench.ts")).evalBench(),
  codecs: async () => {
    const speeds = await (await import("./codecs.bench.ts")).codecs()
    const figures = Object.entries(speeds).flatMap(([id, { calls, plain }]) => [
      [`${id} plain MB/s`, plain] as const,
      [`${id} calls MB/s`, calls] as const
    ])
    return Object.fromEntries(figures)
  },
  soak: async () => (await import("./soak/timeouts.ts")).soak(),
  startup: async () => (await import("./startup.bench.ts")).startupBench(),
  engine: async () => (await import("./engine.bench.ts")).engineBench(),
  together: async () => (await import("./together.bench.ts")).togetherBench(),
  conversation: async () => (await import("./conversation.bench.ts")).conversationBench(),
  states: async () => (await import("./states.bench.ts")).statesBench()
}

const file = new URL("./baseline.json", import.meta.url)
const baseline = JSON.parse(readFileSync(file, "utf8")) as Record<string, Record<string, number>>
const asked = process.argv.slice(2).filter((word) => !word.startsWith("-"))
const update = process.argv.includes("--update")
/** Takes many minutes: only by name. */
const names = asked.length === 0 ? Object.keys(suites).filter((name) => name !== "soak") : asked

const round = (value: number): number => (Math.abs(value) >= 100 ? Math.round(value) : Math.round(value * 100) / 100)

for (const name of names) {
  const suite = suites[name]
  if (suite === undefined) {
    console.error(`no benchmark is called ${name}; there are ${Object.keys(suites).join(", ")}`)
    process.exitCode = 2
    break
  }
  const load = loadavg()[0]!.toFixed(1)
  console.log(`\n${name} (${cpus().length} processors, load ${load}, Node ${process.versions.node})`)
  const figures = await suite()
  const before = baseline[name] ?? {}
  for (const [figure, value] of Object.entries(figures)) {
    const was = before[figure]
    const against = was === undefined ? "" : `   baseline ${round(was)}`
    console.log(`  ${figure.padEnd(44)} ${String(round(value)).padStart(10)}${against}`)
  }
  if (update) {
    baseline[name] = Object.fromEntries(Object.entries(figures).map(([figure, value]) => [figure, round(value)]))
    writeFileSync(file, `${JSON.stringify(baseline, null, 2)}\n`)
  }
}
