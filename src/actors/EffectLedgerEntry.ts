/**
 * One entry of the effect ledger, and the rules by which entries change. Every backend applies the same rules, so they are
 * pure here: given what is stored and a command, what is the answer and what is to be stored? Nothing here keeps anything.
 *
 * An entry never holds arguments, only their digest. It does hold the answer the model was given: replay needs its bytes.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { failureKinds, type StagedStatement } from "../tools/ToolCall.ts"
import { LedgerError } from "./EffectLedgerError.ts"

const Digest = Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/))

/** What is about to be done, in one logical attempt. `key` and `argumentsDigest` are SHA-256 in lower-case hex. */
export const Intent = Schema.Struct({
  key: Digest,
  runId: Schema.String,
  callId: Schema.String,
  tool: Schema.String,
  argumentsDigest: Digest,
  mode: Schema.Literals(["atomic", "external", "observe", "none"])
})
export interface Intent extends Schema.Schema.Type<typeof Intent> {}

/** What a call came to. `unknown` is a state of its own: the caller had to move on and cannot say whether it happened. */
export const SettledOutcome = Schema.Struct({
  ok: Schema.Boolean,
  /** The JSON text of the answer, byte for byte as the model was told. */
  answer: Schema.String,
  kind: Schema.optionalKey(Schema.Literals(failureKinds)),
  effect: Schema.Literals(["none", "present", "unknown"]),
  state: Schema.Literals(["succeeded", "failed", "unknown"])
})
export interface SettledOutcome extends Schema.Schema.Type<typeof SettledOutcome> {}

/** What a person found out, and why we believe it. */
const Resolved = Schema.Struct({
  at: Schema.Finite,
  outcome: SettledOutcome,
  by: Schema.String,
  reason: Schema.String
})

/** One try under the key: who made it, when it began, and what its owner said it came to. Times are epoch milliseconds. */
const Attempt = Schema.Struct({
  owner: Schema.String,
  at: Schema.Finite,
  settled: Schema.optionalKey(Schema.Struct({ at: Schema.Finite, outcome: SettledOutcome })),
  /** That it left nothing was found out by a person, and then it was tried anew. */
  resolved: Schema.optionalKey(Resolved)
})
export interface Attempt extends Schema.Schema.Type<typeof Attempt> {}

export const LedgerEntry = Schema.Struct({
  ...Intent.fields,
  /** At least one. Only the last can be under way. */
  attempts: Schema.Array(Attempt),
  /** What arrived after its caller had moved on. */
  late: Schema.optionalKey(Schema.Struct({ at: Schema.Finite, outcome: SettledOutcome })),
  /** About the last attempt. */
  resolved: Schema.optionalKey(Resolved)
})
export interface LedgerEntry extends Schema.Schema.Type<typeof LedgerEntry> {}

/** A person's verdict on an unknown effect. */
export interface Resolution {
  readonly outcome: SettledOutcome
  readonly by: string
  readonly reason: string
}

export type Command =
  | { readonly _tag: "Begin"; readonly intent: Intent; readonly retake: boolean }
  | {
      readonly _tag: "Settle"
      readonly key: string
      readonly outcome: SettledOutcome
      /** Executed in the same transaction, and only if the outcome is put down. */
      readonly staged?: ReadonlyArray<StagedStatement>
    }
  | { readonly _tag: "Late"; readonly key: string; readonly outcome: SettledOutcome }
  | { readonly _tag: "Resolve"; readonly key: string; readonly resolution: Resolution }

/**
 * What a command found. `Done` answers every command but `Begin`; `instead` is what was put down because a staged statement
 * was refused.
 */
export type Stance =
  | { readonly _tag: "New" }
  | { readonly _tag: "Settled"; readonly outcome: SettledOutcome }
  | { readonly _tag: "Unknown"; readonly entry: LedgerEntry }
  | { readonly _tag: "Conflict"; readonly entry: LedgerEntry }
  | { readonly _tag: "Running"; readonly entry: LedgerEntry }
  | { readonly _tag: "Done"; readonly instead?: SettledOutcome }

/** Where the deciding process stands. */
export interface Present {
  readonly now: number
  /** The owner id of this ledger instance. */
  readonly me: string
  readonly alive: (owner: string) => boolean
}

/** The answer to a command, and the entry to store in place of the old one if it changed. */
export interface Decision {
  readonly reply: Result.Result<Stance, LedgerError>
  readonly put?: LedgerEntry
}

const definite = (outcome: SettledOutcome | undefined): SettledOutcome | undefined =>
  outcome?.state === "unknown" ? undefined : outcome

const current = (entry: LedgerEntry): Attempt => entry.attempts[entry.attempts.length - 1]!

/**
 * What the key came to, once that is known: its owner's word, else a person's, else what arrived late. The rules below let
 * only the first definite word in, so this value never changes after it has been given out.
 */
export const outcomeOf = (entry: LedgerEntry): SettledOutcome | undefined =>
  definite(current(entry).settled?.outcome) ?? entry.resolved?.outcome ?? definite(entry.late?.outcome)

/** `running`: a live owner is at work. `unknown`: it may or may not have happened. `settled`: it is known. */
export type Standing = "running" | "unknown" | "settled"

/** The fold over an entry that says what is owed: unsettled is everything that is not `settled`. */
export const standingOf = (entry: LedgerEntry, alive: (owner: string) => boolean): Standing => {
  if (outcomeOf(entry) !== undefined) return "settled"
  const attempt = current(entry)
  return attempt.settled === undefined && alive(attempt.owner) ? "running" : "unknown"
}

export const sameOutcome = (a: SettledOutcome, b: SettledOutcome): boolean =>
  a.ok === b.ok && a.answer === b.answer && a.kind === b.kind && a.effect === b.effect && a.state === b.state

const done: Decision = { reply: Result.succeed({ _tag: "Done" }) }

const store = (put: LedgerEntry): Decision => ({ ...done, put })

const refuse = (
  operation: LedgerError["operation"],
  reason: LedgerError["reason"],
  key: string,
  message: string
): Decision => ({ reply: Result.fail(new LedgerError({ operation, reason, message: `effect ${key}: ${message}` })) })

const begin = (
  { intent, retake }: Extract<Command, { _tag: "Begin" }>,
  entry: LedgerEntry | undefined,
  { alive, me, now }: Present
): Decision => {
  const attempt: Attempt = { owner: me, at: now }
  if (entry === undefined) return { reply: Result.succeed({ _tag: "New" }), put: { ...intent, attempts: [attempt] } }
  const outcome = outcomeOf(entry)
  // What left nothing may be tried anew, and with other arguments: there is nothing it could be confused with.
  if (retake && outcome?.state === "failed" && outcome.effect === "none" && entry.tool === intent.tool) {
    const { resolved } = entry
    const last = { ...current(entry), ...(resolved === undefined ? {} : { resolved }) }
    const attempts = [...entry.attempts.slice(0, -1), last, attempt]
    return { reply: Result.succeed({ _tag: "New" }), put: { ...intent, attempts } }
  }
  if (entry.argumentsDigest !== intent.argumentsDigest || entry.tool !== intent.tool) {
    return { reply: Result.succeed({ _tag: "Conflict", entry }) }
  }
  if (outcome !== undefined) return { reply: Result.succeed({ _tag: "Settled", outcome }) }
  if (standingOf(entry, alive) === "running") return { reply: Result.succeed({ _tag: "Running", entry }) }
  // Nothing protects a tool of mode `none` from happening twice, so nobody may try again.
  if (!retake || entry.mode === "none" || intent.mode === "none") {
    return { reply: Result.succeed({ _tag: "Unknown", entry }) }
  }
  return { reply: Result.succeed({ _tag: "New" }), put: { ...entry, attempts: [...entry.attempts, attempt] } }
}

const settle = (entry: LedgerEntry, outcome: SettledOutcome, { me, now }: Present): Decision => {
  const attempt = current(entry)
  const before = attempt.settled?.outcome ?? outcomeOf(entry)
  if (before !== undefined && sameOutcome(before, outcome)) {
    if (attempt.settled !== undefined) return done
  } else if (attempt.settled !== undefined || (outcomeOf(entry) !== undefined && outcome.state !== "unknown")) {
    return refuse(
      "settle",
      "settled",
      entry.key,
      "it already came to something else; what arrives now is a late outcome"
    )
  }
  if (attempt.owner !== me) {
    return refuse("settle", "not_owner", entry.key, "another process has this call; what arrives now is a late outcome")
  }
  return store({ ...entry, attempts: [...entry.attempts.slice(0, -1), { ...attempt, settled: { at: now, outcome } }] })
}

/** Attempts of which nobody has said for certain what they came to, the one under way included. */
const openAttempts = ({ attempts }: LedgerEntry): number =>
  attempts.filter(({ resolved, settled }) => resolved === undefined && definite(settled?.outcome) === undefined).length

/**
 * That an attempt left nothing says nothing of the others, one of which may be under way: then the key stays open. That one
 * had its effect says enough.
 */
const late = (entry: LedgerEntry, outcome: SettledOutcome, { now }: Present): Decision => {
  if (definite(entry.late?.outcome) !== undefined) return done
  const open = outcome.effect === "none" && openAttempts(entry) > 1
  return store({ ...entry, late: { at: now, outcome: open ? { ...outcome, state: "unknown" } : outcome } })
}

const resolve = (entry: LedgerEntry, { by, outcome, reason }: Resolution, { alive, now }: Present): Decision => {
  const { key } = entry
  if (outcome.state === "unknown") return refuse("resolve", "invalid", key, "a resolution says whether it happened")
  if (by.trim() === "" || reason.trim() === "") {
    return refuse("resolve", "invalid", key, "a resolution needs a name and a reason")
  }
  switch (standingOf(entry, alive)) {
    case "running":
      return refuse("resolve", "running", key, "its owner is still at work; stop that process first")
    case "settled":
      return refuse("resolve", "settled", key, "it is settled, there is nothing to resolve")
    case "unknown":
      return store({ ...entry, resolved: { at: now, outcome, by, reason } })
  }
}

/** Applies one command to what is stored under its key. */
export const decide = (command: Command, entry: LedgerEntry | undefined, present: Present): Decision => {
  if (command._tag === "Begin") return begin(command, entry, present)
  const operation = command._tag === "Settle" ? "settle" : command._tag === "Late" ? "late" : "resolve"
  if (entry === undefined) return refuse(operation, "missing", command.key, "the ledger has no such key")
  switch (command._tag) {
    case "Settle":
      return settle(entry, command.outcome, present)
    case "Late":
      return late(entry, command.outcome, present)
    case "Resolve":
      return resolve(entry, command.resolution, present)
  }
}

/** The key a command is about. */
export const commandKey = (command: Command): string => (command._tag === "Begin" ? command.intent.key : command.key)
