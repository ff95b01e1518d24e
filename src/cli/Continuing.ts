/** How a run that stopped can be continued: the command for it, or why there is none. */
import { shownPlace } from "../actors/EffectLedgerAddress.ts"
import type { Outcome } from "../effects/Outcome.ts"
import * as RunDirectory from "../effects/RunDirectory.ts"
import { fields, flagOf, type Settings } from "../effects/SettingFields.ts"
import { grantText, type Resolved } from "../effects/Settings.ts"
import { unrecorded } from "./SettingLists.ts"

export type Continuing =
  | { readonly _tag: "Nothing" }
  /** `others`: what can be done instead. */
  | { readonly _tag: "Command"; readonly command: string; readonly others: ReadonlyArray<string> }
  /** It could be continued, were it not for something that can be done better next time. */
  | { readonly _tag: "Hint"; readonly text: string }
  /** Nobody here knows what an effect came to: a person looks, and says what they found. */
  | { readonly _tag: "Settle"; readonly commands: ReadonlyArray<string> }

/** A word as a shell takes it. */
export const quoted = (word: string): string =>
  /^[\w./@%+:,=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`

/** The flags of this command line that the next one has to repeat, because no record holds what they say. */
export const repeated = ({ origins, settings }: Pick<Resolved, "origins" | "settings">): ReadonlyArray<string> =>
  unrecorded.flatMap((name) => {
    if (origins[name] !== "flag") return []
    const value = settings[name]
    if (name === "fixture") {
      return Object.entries(settings.fixture).flatMap(([key, fact]) => ["--fixture", `${key}=${fact}`])
    }
    if (name === "redact") {
      return settings.redact.flatMap((rule) => ["--redact", `${rule.name}=${rule.pattern}`])
    }
    if (name === "grant" || name === "deny") {
      return settings[name].flatMap((grant) => [`--${flagOf(name)}`, grantText(grant)])
    }
    if (Array.isArray(value)) return (value as ReadonlyArray<string>).flatMap((said) => [`--${flagOf(name)}`, said])
    if (fields[name].kind === "boolean") return [`--${value === true ? "" : "no-"}${flagOf(name)}`]
    if (name === "approvalExpiry") return [`--${flagOf(name)}`, `${settings.approvalExpiry}ms`]
    // The record says who was asked.
    if (name === "approve" && (value === "suspend" || value === "ask")) return []
    // A password is not written on a screen.
    if (name === "ledger") return ["--ledger", shownPlace(String(value))]
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

/** A command about a run, as it is typed. */
export const commandOf = (
  command: ReadonlyArray<string>,
  runId: string,
  directory: string,
  rest: ReadonlyArray<string>
): string => ["npx", "writ", ...command, nameOf(runId, directory), ...rest].map(quoted).join(" ")

/** As much of a key as `writ ledger list` shows. */
const keyLength = 12

/** What is left to do about an effect of unknown outcome; a ledger in memory is gone. */
const settling = (key: string, { ledger }: Settings, again: ReadonlyArray<string>): Continuing => {
  if (ledger === "memory") return { _tag: "Nothing" }
  const at = again.indexOf("--ledger")
  const where = at < 0 ? [] : again.slice(at, at + 2)
  const command = (...words: ReadonlyArray<string>) =>
    ["npx", "writ", "ledger", ...words, ...where].map(quoted).join(" ")
  const short = key.slice(0, keyLength)
  const found = ["--happened", "--did-not-happen", "--failed"]
  return {
    _tag: "Settle",
    commands: [command("show", short), ...found.map((what) => command("resolve", short, what, "--reason", "…"))]
  }
}

export const continuing = (
  outcome: Outcome,
  settings: Settings,
  directory: string,
  again: ReadonlyArray<string>
): Continuing => {
  const { stop } = outcome
  // What the model was told of its calls is not what happened: there is nothing to go on with.
  if (settings.dryRun) return { _tag: "Nothing" }
  if (stop._tag === "Escalated" && stop.key !== undefined) return settling(stop.key, settings, again)
  const extra = more(outcome, settings)
  if (extra === undefined) return { _tag: "Nothing" }
  if (!settings.traceContent) {
    const text =
      stop._tag === "AwaitingApproval"
        ? "recorded without content, so it cannot go on once it is approved: start it again with --suspend --trace-content"
        : "recorded without content, so it cannot be continued; --trace-content makes runs resumable"
    return { _tag: "Hint", text }
  }
  if (outcome.redactions !== undefined) {
    return { _tag: "Hint", text: "recorded with texts that redaction rules replaced, so it cannot be continued" }
  }
  const next = (command: ReadonlyArray<string>) => commandOf(command, outcome.runId, directory, [...extra, ...again])
  return stop._tag === "AwaitingApproval"
    ? { _tag: "Command", command: next(["approve"]), others: [next(["deny"])] }
    : { _tag: "Command", command: next(["run", "--resume"]), others: [] }
}
