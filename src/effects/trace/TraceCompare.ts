/**
 * Are two events the same? Says where they differ first. Of the envelope only type, step and phase are compared: the rest is
 * identity, time and position. Of the data what depends on the clock, the machine or the installation is left out by the list
 * below, and nothing else is.
 */
import type { TraceInput } from "../../actors/TraceEvent.ts"
import type { TraceRecord } from "./TraceReader.ts"

/** Fields of `data` that are not compared: durations, the versions a run was made with, and what was spared it. */
export const leftOutOfData: ReadonlySet<string> = new Set([
  "deadline_ms",
  "duration_ms",
  "prefill_ms",
  "decode_ms",
  "model_ms",
  "tool_ms",
  "total_ms",
  "kept_state",
  "product"
])

/** Where two values differ first, with both sides. `path` names fields from the envelope on, as in `data.errors[0].reason`. */
export interface Difference {
  readonly path: string
  readonly recorded: unknown
  readonly replayed: unknown
}

type Fields = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const inObjects = (path: string, recorded: Fields, replayed: Fields): Difference | undefined => {
  for (const name of new Set([...Object.keys(recorded), ...Object.keys(replayed)])) {
    const left = Object.hasOwn(recorded, name) ? recorded[name] : undefined
    const right = Object.hasOwn(replayed, name) ? replayed[name] : undefined
    const found = difference(`${path}.${name}`, left, right)
    if (found !== undefined) return found
  }
  return undefined
}

const difference = (path: string, recorded: unknown, replayed: unknown): Difference | undefined => {
  if (Object.is(recorded, replayed)) return undefined
  if (Array.isArray(recorded) && Array.isArray(replayed)) {
    for (let at = 0; at < Math.max(recorded.length, replayed.length); at++) {
      const found = difference(`${path}[${at}]`, recorded[at], replayed[at])
      if (found !== undefined) return found
    }
    return undefined
  }
  if (isObject(recorded) && isObject(replayed)) return inObjects(path, recorded, replayed)
  return { path, recorded, replayed }
}

const compared = (data: Fields): Fields =>
  Object.fromEntries(Object.entries(data).filter(([name]) => !leftOutOfData.has(name)))

/** The first difference between an event of a trace and one that was just made. */
export const differenceOf = (recorded: TraceRecord, replayed: TraceInput): Difference | undefined => {
  const { data, phase, step, type } = replayed
  if (recorded.event_type !== type) return { path: "event_type", recorded: recorded.event_type, replayed: type }
  if (recorded.step !== step) return { path: "step", recorded: recorded.step, replayed: step }
  if (recorded.phase !== (phase ?? null)) return { path: "phase", recorded: recorded.phase, replayed: phase ?? null }
  // As a line would hold it: what JSON does to a value is no difference.
  return difference("data", compared(recorded.data), compared(JSON.parse(JSON.stringify(data)) as Fields))
}
