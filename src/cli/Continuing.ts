/** How a run that stopped can be continued: the command for it, or why there is none. */
import type { Outcome } from "../effects/Outcome.ts"
import * as RunDirectory from "../effects/RunDirectory.ts"
import { flagOf, type SettingName, type Settings } from "../effects/SettingFields.ts"
import type { Resolved } from "../effects/Settings.ts"

export type Continuing =
  | { readonly _tag: "Nothing" }
  | { readonly _tag: "Command"; readonly command: string }
  /** It could be continued, were it not for something that can be done better next time. */
  | { readonly _tag: "Hint"; readonly text: string }

/** A word as a shell takes it. */
export const quoted = (word: string): string =>
  /^[\w./@%+:,=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`

/** Settings that a record does not hold. */
const unrecorded: ReadonlyArray<SettingName> = [
  "model",
  "script",
  "workspace",
  "fixture",
  "approve",
  "ledger",
  "modelsDir",
  "threads",
  "gpu"
]

/** The flags of this command line that the next one has to repeat, because no record holds what they say. */
export const repeated = ({ origins, settings }: Pick<Resolved, "origins" | "settings">): ReadonlyArray<string> =>
  unrecorded.flatMap((name) => {
    if (origins[name] !== "flag") return []
    const value = settings[name]
    if (name === "fixture") {
      return Object.entries(settings.fixture).flatMap(([key, fact]) => ["--fixture", `${key}=${fact}`])
    }
    return [`--${flagOf(name)}`, value === false ? "off" : String(value)]
  })

/** The id, where that is enough to find the run. */
const nameOf = (runId: string, directory: string): string => {
  const { root } = RunDirectory.partOf(runId)
  return RunDirectory.standard(root).directory === directory ? root : RunDirectory.shown(directory)
}

/** What the next command line has to say besides, for this stop; `undefined` where a next part would come to the same. */
const more = ({ stop }: Outcome, { maxTurns }: Settings): ReadonlyArray<string> | undefined => {
  switch (stop._tag) {
    case "Completed":
    case "ContextExhausted":
    case "LoopDetected":
    case "Escalated":
      return undefined
    case "Failed":
      return stop.class === "engine" ? [] : undefined
    case "NeedsInput":
      return ["--answer", "…"]
    case "Limit":
      // Turns are counted over all parts of a run, everything else anew in each.
      return stop.kind === "model_turns" ? [`--${flagOf("maxTurns")}`, String(Math.max(8, 2 * maxTurns))] : []
    case "AwaitingApproval":
    case "Cancelled":
      return []
  }
}

export const continuing = (
  outcome: Outcome,
  settings: Settings,
  directory: string,
  again: ReadonlyArray<string>
): Continuing => {
  const extra = more(outcome, settings)
  if (extra === undefined) return { _tag: "Nothing" }
  if (!settings.traceContent) {
    const text = "recorded without content, so it cannot be continued; --trace-content makes runs resumable"
    return { _tag: "Hint", text }
  }
  const words = ["npx", "writ", "run", "--resume", nameOf(outcome.runId, directory), ...extra, ...again]
  return { _tag: "Command", command: words.map(quoted).join(" ") }
}
