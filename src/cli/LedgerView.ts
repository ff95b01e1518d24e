/** One effect as lines of text and as JSON. Answers and reasons are other people's text: they are shown, never sent. */
import * as DateTime from "effect/DateTime"
import type { LedgerRecord } from "../actors/EffectLedger.ts"
import { type LedgerEntry, outcomeOf, type SettledOutcome } from "../actors/EffectLedgerEntry.ts"
import { cut, inline } from "./Printable.ts"
import type { Paint } from "./Screen.ts"

const iso = (millis: number): string => DateTime.formatIso(DateTime.makeUnsafe(millis))

/** `2026-11-30 09:14:59Z`. */
export const moment = (millis: number): string =>
  iso(millis)
    .replace("T", " ")
    .replace(/\.\d+Z$/, "Z")

/** What an effect came to, in a word; where nobody knows yet, how things stand. */
export const wordOf = ({ entry, standing }: LedgerRecord): string => {
  const outcome = outcomeOf(entry)
  return outcome === undefined ? standing : outcome.effect === "present" ? "happened" : "no effect"
}

export const painted = (paint: Paint, record: LedgerRecord): ((text: string) => string) => {
  if (record.standing === "unknown") return paint.red
  return record.standing === "running" ? paint.yellow : paint.green
}

const outcomeDocument = ({ at, outcome }: { readonly at: number; readonly outcome: SettledOutcome }) => ({
  at: iso(at),
  state: outcome.state,
  effect: outcome.effect,
  kind: outcome.kind ?? null,
  ok: outcome.ok,
  answer: outcome.answer
})

/** An effect in a list. */
export const rowDocument = (record: LedgerRecord) => {
  const { entry, standing } = record
  return {
    key: entry.key,
    tool: entry.tool,
    run_id: entry.runId,
    call_id: entry.callId,
    mode: entry.mode,
    standing,
    outcome: outcomeOf(entry)?.state ?? null,
    attempts: entry.attempts.length,
    at: iso(entry.attempts[0]!.at)
  }
}

/** Everything that is known of an effect. */
export const document = (record: LedgerRecord, place: string) => {
  const { entry } = record
  const { attempts: _, ...row } = rowDocument(record)
  return {
    ledger: place,
    ...row,
    arguments_sha256: entry.argumentsDigest,
    answer: outcomeOf(entry)?.answer ?? null,
    attempts: entry.attempts.map(({ at, owner, resolved, settled }) => ({
      at: iso(at),
      owner,
      settled: settled === undefined ? null : outcomeDocument(settled),
      ...(resolved === undefined ? {} : { resolved: resolvedDocument(resolved) })
    })),
    late: entry.late === undefined ? null : outcomeDocument(entry.late),
    resolved: entry.resolved === undefined ? null : resolvedDocument(entry.resolved)
  }
}

type Resolved = NonNullable<LedgerEntry["resolved"]>

const resolvedDocument = (resolved: Resolved) => ({
  ...outcomeDocument(resolved),
  by: resolved.by,
  reason: resolved.reason
})

const resolvedLines = ({ at, by, outcome, reason }: Resolved): ReadonlyArray<readonly [string, string]> => [
  ["resolved", `${moment(at)}  by ${inline(by)}: ${inline(reason)}`],
  ["", outcomeWords(outcome)]
]

const effects = {
  none: "left no effect",
  present: "had its effect",
  unknown: "nobody knows whether it had its effect"
} as const

const outcomeWords = ({ effect, kind, state }: SettledOutcome): string =>
  `${state === "unknown" ? "" : `${state}${kind === undefined ? "" : ` (${kind})`}: `}${effects[effect]}${state === "unknown" && kind !== undefined ? ` (${kind})` : ""}`

const answerWidth = 400

const attemptLines = ({ attempts }: LedgerEntry, running: boolean): ReadonlyArray<readonly [string, string]> =>
  attempts.flatMap(({ at, owner, resolved, settled }, index) => {
    const last = index === attempts.length - 1
    const ended =
      settled === undefined
        ? last && running
          ? "is at work"
          : "never said what it came to"
        : `${moment(settled.at)}  ${outcomeWords(settled.outcome)}`
    const name = attempts.length === 1 ? "attempt" : `attempt ${index + 1}`
    const found = resolved === undefined ? [] : resolvedLines(resolved)
    return [[name, `${moment(at)}  by ${inline(owner)}`] as const, ["", ended] as const, ...found]
  })

/** What to do about an effect, where there is something to do. */
const advice = ({ entry, standing }: LedgerRecord): string | undefined =>
  standing === "unknown"
    ? `Nobody knows whether it happened. Look where it would be seen, then say what you found:\n  writ ledger resolve ${entry.key.slice(0, 12)} --happened | --did-not-happen | --failed --reason TEXT`
    : undefined

/** Everything that is known of an effect, for people. */
export const lines = (record: LedgerRecord, place: string, paint: Paint): string => {
  const { entry, standing } = record
  const outcome = outcomeOf(entry)
  const said = advice(record)
  const rows: ReadonlyArray<readonly [string, string]> = [
    ["key", entry.key],
    ["run", inline(entry.runId)],
    ["call", inline(entry.callId)],
    ["mode", entry.mode],
    ["arguments", `SHA-256 ${entry.argumentsDigest}`],
    ...attemptLines(entry, standing === "running"),
    ...(entry.late === undefined
      ? []
      : [["late", `${moment(entry.late.at)}  ${outcomeWords(entry.late.outcome)}`] as const]),
    ...(entry.resolved === undefined ? [] : resolvedLines(entry.resolved)),
    ...(outcome === undefined ? [] : [["answer", cut(outcome.answer, answerWidth)] as const]),
    ["ledger", inline(place)]
  ]
  return [
    `${paint.bold(inline(entry.tool))}: ${painted(paint, record)(wordOf(record))}`,
    "",
    ...rows.map(([name, value]) => `${paint.dim(name.padEnd(10))} ${value}`),
    ...(said === undefined ? [] : ["", said])
  ].join("\n")
}
