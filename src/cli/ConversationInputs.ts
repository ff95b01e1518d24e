/** Which conversation files a command line names, and what the settings say about runs of files. Reads names and files, nothing else. */
import { type Dirent, readdirSync, realpathSync } from "node:fs"
import { dirname, join, relative, resolve, sep } from "node:path"
import * as Effect from "effect/Effect"
import { reasonOf } from "../actors/Directories.ts"
import { isAddress } from "../actors/EffectLedgerAddress.ts"
import * as RunDirectory from "../effects/RunDirectory.ts"
import type { Settings } from "../effects/SettingFields.ts"
import type { RawSettings, Resolved } from "../effects/Settings.ts"
import { type UsageError, usage } from "./Ending.ts"
import * as EngineSettings from "./EngineSettings.ts"
import type { Showing } from "./Execute.ts"
import { checkLedgerPlace } from "./LedgerPlace.ts"
import { problemAt } from "./Places.ts"

/** What the command line says of conversations that are run. */
export interface ConversationFlags extends Showing {
  /** Files, and directories of them. */
  readonly task: ReadonlyArray<string>
  readonly answer: string | undefined
  /** How many are at work at a time. */
  readonly parallel?: number | undefined
  /** Play them again from themselves and compare. */
  readonly replay?: boolean
  readonly settings: RawSettings
}

const isYaml = (name: string): boolean => /\.ya?ml$/i.test(name)

/** A script lies beside the conversations it belongs to. */
const isScript = (name: string): boolean => /\.script\.ya?ml$/i.test(name)

/** Is this argument a conversation file or a directory of them, and no task? */
export const isConversation = (argument: string): boolean => {
  if (argument === "" || argument.includes("\n")) return false
  if (isYaml(argument)) {
    const { _tag } = RunDirectory.look(argument)
    return _tag === "File" || _tag === "Other"
  }
  return !/\s/.test(argument) && RunDirectory.isDirectory(argument)
}

/** The conversations of a directory, by name. What lies deeper is not looked for. */
const filesIn = (directory: string): Effect.Effect<ReadonlyArray<string>, UsageError> => {
  let entries: ReadonlyArray<Dirent>
  try {
    entries = readdirSync(directory, { withFileTypes: true })
  } catch (cause) {
    return usage(`${directory}: it cannot be read: ${reasonOf(cause)}`)
  }
  const names = entries
    .filter(
      (entry) => !entry.isDirectory() && isYaml(entry.name) && !isScript(entry.name) && !entry.name.startsWith(".")
    )
    .map(({ name }) => name)
    .sort()
  return names.length === 0
    ? usage(`${directory}: there is no conversation in it (*.yaml). For a task of that text use --prompt.`)
    : Effect.succeed(names.map((name) => join(directory, name)))
}

/** The files that are named, each once, those of a directory by name. */
export const filesOf = Effect.fnUntraced(function* (
  named: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<string>, UsageError> {
  const files: Array<string> = []
  for (const path of named) {
    if (RunDirectory.isDirectory(path)) files.push(...(yield* filesIn(path)))
    else if (RunDirectory.look(path)._tag === "File") files.push(path)
    else return yield* usage(`${path}: it is not a file`)
  }
  const seen = new Set<string>()
  return files.filter((path) => {
    const real = realpathSync(path)
    return seen.has(real) ? false : seen.add(real)
  })
})

/** A file as its effects know it: by its way from the ledger, so that both can be moved together. */
export const identityOf = (path: string, { ledger = RunDirectory.ledger }: Pick<Settings, "ledger">): string => {
  const real = realpathSync(path)
  if (isAddress(ledger) || ledger === "memory") return real
  return relative(dirname(resolve(ledger)), real)
    .split(sep)
    .join("/")
}

export const checkWorkspace = (path: string): Effect.Effect<string, UsageError> => {
  const problem = problemAt(path, "Directory")
  return problem === undefined ? Effect.succeed(resolve(path)) : usage(`--workspace ${path}: ${problem}`)
}

/** A file that goes on from what it holds cannot hold something else. */
export const checkUnruled = ({ redact }: Settings): Effect.Effect<void, UsageError> =>
  redact.length === 0
    ? Effect.void
    : usage(
        "redaction rules (--redact, WRIT_REDACT, the settings file) are for tasks: a conversation file keeps what is said in it, and goes on from that"
      )

/** What a conversation says itself cannot be said by a flag, and what a file cannot hold cannot be asked for. */
export const checkFlags = ({ origins, settings }: Resolved, replay: boolean): Effect.Effect<void, UsageError> => {
  if (origins.tools === "flag") return usage("--tools: a conversation has its tools in its file (meta.tools)")
  if (origins.system === "flag") return usage("--system: a conversation has its system messages in its file")
  if (settings.dryRun) {
    return usage("--dry-run: a conversation holds what happened; play it with a script instead (--script)")
  }
  if (origins.model === "flag" && origins.script === "flag") return usage("give --model or --script, not both")
  // A replay opens nothing and writes nothing.
  if (replay) return Effect.void
  const engine = settings.script === undefined ? EngineSettings.check(settings) : Effect.void
  return Effect.andThen(checkUnruled(settings), Effect.andThen(checkLedgerPlace(settings), engine))
}
