/** The projects of e2e/ in a copy of the checkout that may be changed, and their ci.sh as a person runs it: no key, no settings. */
import { spawn, spawnSync } from "node:child_process"
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import * as Effect from "effect/Effect"
import { parseAllDocuments, stringify } from "yaml"
import { temporary } from "./crash.ts"

const root = join(import.meta.dirname, "..", "..")

/** What a run of ci.sh makes, and must not bring along. */
const generated = /^[^/]+\/(?:runs|evals\/reports|evals\/judges|\.writ)$/

/** A copy of `e2e/` inside something that looks like the checkout: sources and packages are those of the real one. */
export const checkout = Effect.map(temporary("writ-e2e-"), (directory) => {
  const e2e = join(root, "e2e")
  cpSync(e2e, join(directory, "e2e"), {
    recursive: true,
    filter: (path) => !generated.test(relative(e2e, path).replaceAll("\\", "/"))
  })
  for (const name of ["src", "node_modules", "package.json"]) symlinkSync(join(root, name), join(directory, name))
  mkdirSync(join(directory, "elsewhere"))
  return directory
})

/** A prefix that leaves a process no network at all, where the system lets us. */
export const offline: ReadonlyArray<string> | undefined =
  spawnSync("unshare", ["-rn", "true"]).status === 0 ? ["unshare", "-rn"] : undefined

export interface Ran {
  readonly code: number | null
  /** What it says, on both streams. */
  readonly said: string
}

/** Runs the project's ci.sh from a directory. */
export const ci = (script: string, cwd: string, prefix: ReadonlyArray<string> = []): Effect.Effect<Ran> =>
  Effect.callback((resume) => {
    const [program = "sh", ...args] = [...prefix, "sh", script]
    const child = spawn(program, args, {
      cwd,
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: join(dirname(script), "..", "..", "cache") }
    })
    let said = ""
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (part) => (said += part))
    child.on("close", (code) => resume(Effect.succeed({ code, said })))
    return Effect.sync(() => child.kill())
  })

/** Every file below a directory that no `.gitignore` of the directories around it leaves out with `*`. */
export const visible = (directory: string): ReadonlyArray<string> => {
  const ignore = join(directory, ".gitignore")
  if (existsSync(ignore) && readFileSync(ignore, "utf8").split("\n").includes("*")) return []
  return readdirSync(directory, { withFileTypes: true })
    .flatMap((entry) => {
      const path = join(directory, entry.name)
      return entry.isDirectory() ? visible(path) : [path]
    })
    .sort()
}

/** The totals of a report, as ci.sh reads them. */
export const totalsOf = (project: string, id: string) =>
  (
    JSON.parse(readFileSync(join(project, "evals", "reports", `${id}.json`), "utf8")) as {
      readonly totals: {
        readonly conversations_matched: number
        readonly assertions: Readonly<Record<"passed" | "failed" | "deferred" | "malformed" | "errored", number>>
      }
    }
  ).totals

/** The reasons a report gives for what did not pass, with the class in front. */
export const reasonsOf = (project: string, id: string): ReadonlyArray<string> => {
  const { cases } = JSON.parse(readFileSync(join(project, "evals", "reports", `${id}.json`), "utf8")) as {
    readonly cases: ReadonlyArray<{
      readonly matches: ReadonlyArray<{
        readonly conversation: string
        readonly assertions: ReadonlyArray<{
          readonly class: string
          readonly outcome: string
          readonly reason?: string
        }>
      }>
    }>
  }
  return cases.flatMap(({ matches }) =>
    matches.flatMap(({ assertions, conversation }) =>
      assertions.flatMap(({ class: name, outcome, reason }) =>
        outcome === "pass" ? [] : [`${conversation}: ${name}: ${outcome}: ${reason}`]
      )
    )
  )
}

/** A document of a conversation or of a script, as far as tests change it. */
export interface YamlDocument {
  readonly role?: string
  content?: string | Array<Readonly<Record<string, unknown>>>
  readonly engine?: Array<unknown>
}

/** Changes the documents of a YAML file. */
export const rewrite = (path: string, change: (documents: Array<YamlDocument>) => void): void => {
  const documents = parseAllDocuments(readFileSync(path, "utf8")).map((document): YamlDocument => document.toJS())
  change(documents)
  writeFileSync(path, documents.map((document) => `---\n${stringify(document)}`).join(""))
}

/** The run that was assembled last. Names begin with the second, and a ci.sh takes longer. */
export const newestRun = (project: string): string => {
  const runs = join(project, "runs")
  const name = readdirSync(runs)
    .filter((one) => !one.startsWith("."))
    .sort()
    .at(-1)
  if (name === undefined) throw new Error(`${runs}: there is no run`)
  return join(runs, name)
}
