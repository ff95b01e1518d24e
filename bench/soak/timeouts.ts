/**
 * `npm run bench soak`, or `node bench/soak/timeouts.ts [timeouts] [thread|process]`: so many calls that never end by themselves, in two
 * lanes, each cut at its deadline and ended. What the program holds is looked at on the way (memory, threads, descriptors) and
 * has to be flat. What starts again and again is bundled first, as it is in the command: it is most of the cost.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { build } from "esbuild"

const root = dirname(dirname(import.meta.dirname))
const place = join(root, "node_modules/.cache/writ-soak")

/** The pool finds its workers in `../tools`, seen from where it is: here, from the program it is bundled into. */
const bundle = async (): Promise<string> => {
  mkdirSync(place, { recursive: true })
  const common = {
    bundle: true,
    platform: "node",
    format: "esm",
    minify: true,
    outdir: place,
    logLevel: "error"
  } as const
  await build({
    ...common,
    splitting: true,
    entryPoints: {
      "tools/worker": join(root, "src/tools/worker.ts"),
      "tools/workerProcess": join(root, "src/tools/workerProcess.ts"),
      "soak/spinning": join(root, "bench/soak/spinning.ts")
    }
  })
  await build({
    ...common,
    external: ["piscina"],
    entryPoints: { "soak/timeoutsProgram": join(root, "bench/soak/timeoutsProgram.ts") }
  })
  return join(place, "soak/timeoutsProgram.js")
}

export const soak = async (timeouts = "10000", isolation = "thread"): Promise<Record<string, number>> => {
  const child = spawn(process.execPath, ["--expose-gc", await bundle(), timeouts, isolation], {
    stdio: ["ignore", "pipe", "inherit"]
  })
  let said = ""
  child.stdout.on("data", (piece: Buffer) => {
    said += piece.toString()
    process.stdout.write(piece)
  })
  const [code] = await once(child, "close")
  if (code !== 0) throw new Error(`the soak ended with ${code}`)
  return JSON.parse(said.trimEnd().split("\n").at(-1)!)
}

if (import.meta.main) console.log(await soak(...process.argv.slice(2)))
