/**
 * Damages good traces in exactly one way. Lines are edited as objects and sealed again: numbered, counted and chained as the
 * writer would have, so that the damage is the only thing that is wrong.
 */
import { hash } from "node:crypto"
import { genesis, terminalTypes } from "../../src/actors/TraceEvent.ts"

export interface EditableLine {
  schema: string
  run_id: string
  seq: number
  event_type: string
  t_ms: number
  ts_epoch_ms: number
  step: string
  phase: string | null
  // biome-ignore lint/suspicious/noExplicitAny: tests write whatever would be wrong.
  data: Record<string, any>
  redacted?: Array<{ at: string; count: number; bytes: number; hmac: string }>
  prev: string
}

export type Lines = Array<EditableLine>

export const parse = (text: string): Lines =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as EditableLine)

/** Chains the lines anew. */
export const chain = (lines: Lines): string => {
  let prev = genesis
  let text = ""
  for (const line of lines) {
    const written = JSON.stringify({ ...line, prev })
    prev = hash("sha256", written)
    text += `${written}\n`
  }
  return text
}

/** Numbers the lines, sets the terminal event's count of lines, and chains. */
export const seal = (lines: Lines): string => {
  for (const [at, line] of lines.entries()) {
    line.seq = at
    if (terminalTypes.has(line.event_type)) line.data["events"] = at
  }
  return chain(lines)
}

/** Edits a trace and seals it. */
export const corrupt = (text: string, edit: (lines: Lines) => void): string => {
  const lines = parse(text)
  edit(lines)
  return seal(lines)
}

const indexOf = (lines: Lines, type: string, nth: number): number => {
  const found = lines.flatMap((line, at) => (line.event_type === type ? [at] : []))
  const index = found.at(nth)
  if (index === undefined) throw new Error(`the trace has no ${type} ${nth}`)
  return index
}

/** The n-th event of a type, from 0; negative: from the end. */
export const event = (lines: Lines, type: string, nth = 0): EditableLine => lines[indexOf(lines, type, nth)]!

export const data = (lines: Lines, type: string, nth = 0) => event(lines, type, nth).data

export const drop = (lines: Lines, type: string, nth = 0): void => void lines.splice(indexOf(lines, type, nth), 1)

export const repeat = (lines: Lines, type: string, nth = 0): void => {
  const at = indexOf(lines, type, nth)
  lines.splice(at, 0, structuredClone(lines[at]!))
}

export const swap = (lines: Lines, type: string, one: number, other: number): void => {
  const [a, b] = [indexOf(lines, type, one), indexOf(lines, type, other)]
  ;[lines[a], lines[b]] = [lines[b]!, lines[a]!]
}

/** Puts a new event after the n-th of a type. */
export const insertAfter = (
  lines: Lines,
  type: string,
  nth: number,
  fresh: Pick<EditableLine, "event_type" | "data"> & { readonly step?: string }
): void => {
  const at = indexOf(lines, type, nth)
  lines.splice(at + 1, 0, { ...structuredClone(lines[at]!), ...fresh })
}

export const terminal = (lines: Lines) => lines.at(-1)!.data

/** Ends the run in another way, with the same counts. */
export const endAs = (lines: Lines, type: string, extra: Record<string, unknown>): void => {
  const last = lines.at(-1)!
  const counts = [
    "turns",
    "tool_calls",
    "rejected_calls",
    "skipped_calls",
    "artifacts",
    "output_tokens",
    "model_ms",
    "tool_ms",
    "total_ms",
    "events"
  ]
  last.event_type = type
  last.data = { ...Object.fromEntries(counts.map((name) => [name, last.data[name]])), ...extra }
}
