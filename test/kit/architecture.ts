/**
 * The rules of docs/architecture.md as functions from parsed files to complaints. Each complaint begins with the file it
 * is about. What a rule means is said there; only what cannot be read off the code is commented here.
 */
import { basename } from "node:path/posix"
import type { Import, Source } from "./sources.ts"

export type Files = ReadonlyMap<string, Source>
export type Rule = (files: Files) => ReadonlyArray<string>

const order = ["tools", "engine", "actors", "effects", "cli"]

/** The folder right under `src`, or undefined for an entry point. */
const folderOf = (file: string): string | undefined => /^src\/([^/]+)\//.exec(file)?.[1]

const rank = (file: string): number => {
  const folder = folderOf(file)
  return folder === undefined ? order.length : order.indexOf(folder)
}

const sources = (files: Files): ReadonlyArray<Source> =>
  [...files.values()].filter(({ file }) => file.startsWith("src/"))

/** One complaint per import that `complain` has something to say about. */
const perImport =
  (complain: (file: string, found: Import, files: Files) => string | undefined): Rule =>
  (files) =>
    sources(files).flatMap(({ file, imports }) =>
      imports.flatMap((found) => {
        const complaint = complain(file, found, files)
        return complaint === undefined ? [] : [`${file}: ${complaint}`]
      })
    )

/** Files that run tools or touch the disk for them: whoever talks to a model has no business there. */
const runsTools = /^src\/tools\/(?:Execution|worker|Workspace|builtin\/.*)\.ts$/

export const importOrder: Rule = perImport((file, { relative, target }, files) => {
  if (rank(file) < 0) return "lies in a folder that has no place in the order"
  if (!relative) return undefined
  if (!files.has(target)) return `imports ${target}, which does not exist`
  if (rank(target) > rank(file) || rank(target) < 0) return `must not import ${target}`
  if (folderOf(target) === "cli" && folderOf(file) !== "cli" && file !== "src/cli.ts")
    return `must not import ${target}`
  if (folderOf(file) === "engine" && runsTools.test(target)) return `must not import ${target}: engine runs no tools`
  return undefined
})

export const noCycles: Rule = (files) => {
  const found: Array<string> = []
  const done = new Set<string>()
  const visit = (file: string, path: ReadonlyArray<string>): void => {
    if (path.includes(file)) {
      found.push(`${file}: cycle ${[...path.slice(path.indexOf(file)), file].join(" > ")}`)
    } else if (!done.has(file)) {
      for (const { relative, target } of files.get(file)?.imports ?? []) if (relative) visit(target, [...path, file])
      done.add(file)
    }
  }
  for (const { file } of sources(files)) visit(file, [])
  return found
}

/** What does recorded things again runs the loop, and the entry offers that too: both stand behind the run, not with the readers. */
const replays = /^src\/effects\/trace\/(?:Replay[A-Za-z]*|index)\.ts$/

/** The folder right under `src/effects` that a file lies in, or the file. */
const wholeOf = (file: string): string =>
  replays.test(file) ? file : (/^src\/effects\/[^/]+\//.exec(file)?.[0] ?? file)

/** Each folder of `effects` as if it were one file: then a way out of a folder and back into it is a cycle. */
export const foldersApart: Rule = (files) => {
  const wholes = new Map<string, Source>()
  for (const source of sources(files)) {
    const file = wholeOf(source.file)
    const imports = source.imports.map((found) => ({ ...found, target: wholeOf(found.target) }))
    const outside = imports.filter(({ target }) => target !== file)
    wholes.set(file, { ...source, file, imports: [...(wholes.get(file)?.imports ?? []), ...outside] })
  }
  return noCycles(wholes)
}

const threads =
  /^src\/(?:actors\/Inference[A-Za-z]*|engine\/Wire|engine\/worker|tools\/worker|tools\/workerProcess)\.ts$/

/** The first pattern that fits a package decides where it may be imported. */
const reserved: ReadonlyArray<readonly [name: RegExp, where: RegExp]> = [
  [/^piscina$/, /^src\/actors\/ToolPool\.ts$/],
  [/^re2js$/, /^src\/actors\/Redaction\.ts$/],
  [/^@effect\/sql-pg(?:\/|$)|^effect\/sql(?:\/|$)/, /^src\/actors\/EffectLedgerPostgres[A-Za-z]*\.ts$/],
  // Who listens for others is one file, with all limits on what they may do there.
  [/^@effect\/platform-node\/NodeHttpServer$/, /^src\/effects\/serve\/HttpListener\.ts$/],
  [/^node:http$/, /^src\/(?:effects\/serve\/HttpListener|tools\/web\/[A-Za-z]+)\.ts$/],
  // What reaches a network or reads what came from one, for tools: loaded when a web tool is called.
  [/^(?:html-to-text|htmlparser2|(?:node:)?(?:https?|dns|tls)(?:\/.*)?)$/, /^src\/tools\/web\/[A-Za-z]+\.ts$/],
  [/^node-llama-cpp$/, /^src\/engine\/Llama[A-Za-z]*\.ts$/],
  [/^(?:node:)?worker_threads$|^effect\/(?:workers|rpc)(?:\/|$)|^@effect\/platform-node\/NodeWorker/, threads],
  // Who starts a process owns it to its end; tools start theirs as effects, through `effect/process`.
  [/^(?:node:)?child_process$/, /^src\/actors\/(?:InferenceProcess|ToolPoolProcess)\.ts$/],
  [/^effect\/cli(?:\/|$)/, /^src\/cli(?:\/.*)?\.ts$/],
  [/^@effect\/platform-node\//, /^src\/(?:effects\/Wiring|cli|engine\/worker)\.ts$/],
  [/^effect\/ai\/McpClient(?:Error)?$/, /^src\/actors\/Mcp[A-Za-z]*\.ts$/],
  [/^effect\/ai\/McpServer$/, /^src\/effects\/McpServe\.ts$/],
  // The barrels load everything they name; start-up time is made of such things.
  [/^(?:effect|effect\/ai|@effect\/platform-node)$/, /^$/]
]

export const reservedPackages: Rule = perImport((file, { relative, target }) => {
  const entry = relative ? undefined : reserved.find(([name]) => name.test(target))
  return entry === undefined || entry[1].test(file) ? undefined : `must not import ${target}`
})

/** What is published has to bring what it imports. */
export const declaredPackages = (declared: ReadonlyArray<string>): Rule =>
  perImport((_, { relative, target }) => {
    if (relative || target.startsWith("node:")) return undefined
    const name = /^(?:@[^/]+\/)?[^/]+/.exec(target)![0]
    return declared.includes(name) ? undefined : `imports ${name}, which package.json does not declare`
  })

const isState = (file: string): boolean => file.startsWith("src/effects/states/")

export const statesApart: Rule = perImport((file, { target }) =>
  isState(file) && isState(target) ? `is a state and must not import the state ${target}` : undefined
)

const isTrace = (file: string): boolean => file.startsWith("src/effects/trace/") && !replays.test(file)

/** What a record is judged by is what the run went by: sums and tables that know of no run. */
const judgedBy = /^src\/effects\/(?:Backoff|EngineTries|Governor|Profile)\.ts$/

export const traceAlone: Rule = perImport((file, { target }) =>
  isTrace(file) && folderOf(target) === "effects" && !isTrace(target) && !judgedBy.test(target)
    ? `reads what was recorded and must not import ${target}`
    : undefined
)

const isService = ({ file, text }: Source): boolean =>
  folderOf(file) === "actors" && /\bContext\.(?:Service|Reference)\b/.test(text)

const shared = /^src\/actors\/(?:Mailbox|Ids)\.ts$/

/** A file named after an actor (`EffectLedgerSqlite` beside `EffectLedger`) is part of it. */
const isPartOf = (one: string, other: string): boolean =>
  basename(one, ".ts").startsWith(basename(other, ".ts")) || basename(other, ".ts").startsWith(basename(one, ".ts"))

export const actorsApart: Rule = perImport((file, { target }, files) => {
  const other = files.get(target)
  if (folderOf(file) !== "actors" || other === undefined || !isService(other)) return undefined
  return shared.test(target) || isPartOf(file, target) ? undefined : `must not import the service of ${target}`
})

const isTest = (file: string): boolean => file.endsWith(".test.ts")

export const sizes: Rule = (files) =>
  [...files.values()].flatMap(({ file, functions, lines }) => {
    const most = isTest(file) ? 500 : 350
    return [
      ...(lines > most ? [`${file}: ${lines} lines of code, the limit is ${most}`] : []),
      ...functions
        .filter((one) => !isTest(file) && one.lines > 60)
        .map((one) => `${file}:${one.line}: a function of ${one.lines} lines of code, the limit is 60`)
    ]
  })

export const names: Rule = (files) =>
  [...files.keys()]
    .filter((file) => /^(?:utils?|helpers?|common|types)\.ts$/i.test(basename(file)))
    .map((file) => `${file}: says nothing about what is in it`)

export const headers: Rule = (files) =>
  sources(files)
    .filter(({ text }) => !/^(?:#!.*\n)?\/\*\*/.test(text))
    .map(({ file }) => `${file}: does not begin with a comment that says what it is for`)

/** Needed to run, not to print help: each of these costs more than Node's own start. */
const heavy = /^(?:src\/engine\/Llama[A-Za-z]*\.ts|ajv|yaml|piscina|node-llama-cpp|@effect\/sql-pg)(?:\/|$)/

export const lightStart: Rule = (files) => {
  const found: Array<string> = []
  const seen = new Set<string>()
  const visit = (file: string, path: ReadonlyArray<string>): void => {
    if (seen.has(file)) return
    seen.add(file)
    if (heavy.test(file)) found.push(`${file}: loaded at start by ${path.join(" > ")}`)
    for (const { dynamic, target, typeOnly } of files.get(file)?.imports ?? []) {
      if (!dynamic && !typeOnly) visit(target, [...path, file])
    }
  }
  visit("src/cli.ts", [])
  return found
}
