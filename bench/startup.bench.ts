/** What a person waits for before anything happens: `writ --help` as built, beside an empty Node program. */
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"

const cli = fileURLToPath(new URL("../dist/cli.js", import.meta.url))

const time = (args: ReadonlyArray<string>): number => {
  const before = performance.now()
  const { status } = spawnSync(process.execPath, args, { stdio: "ignore" })
  if (status !== 0) throw new Error(`node ${args.join(" ")} ended with ${status}`)
  return performance.now() - before
}

const median = (values: ReadonlyArray<number>): number => [...values].sort((a, b) => a - b)[values.length >> 1]!

/** Medians of 15 runs each, in alternation, in milliseconds, and their ratio. */
export const startupBench = async (): Promise<Record<string, number>> => {
  if (!existsSync(cli)) throw new Error("dist/ is not built: npm run build")
  const empty: Array<number> = []
  const help: Array<number> = []
  time([cli, "--help"])
  for (let round = 0; round < 15; round++) {
    empty.push(time(["-e", "0"]))
    help.push(time([cli, "--help"]))
  }
  return { "node -e 0 ms": median(empty), "writ --help ms": median(help), "help / empty": median(help) / median(empty) }
}

if (import.meta.main) console.log(await startupBench())
