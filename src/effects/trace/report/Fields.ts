/** Reads the fields of an event whatever schema it is of and however broken: never fails, never trusts. */
import { json } from "./Markup.ts"

export type Data = Readonly<Record<string, unknown>>

export const isData = (value: unknown): value is Data =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** A text of the run's bookkeeping. */
export const word = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined || value === null ? "" : json(value)

export const amount = (value: unknown): number => (typeof value === "number" && Number.isFinite(value) ? value : 0)

/** Content that was left out of the record. */
export const isLeftOut = (value: unknown): value is { readonly bytes: number; readonly hmac: string } =>
  isData(value) && typeof value["bytes"] === "number" && typeof value["hmac"] === "string"

/** Content as text: itself, or how much of it there was. */
export const content = (value: unknown, indent = 0): string => {
  if (typeof value === "string") return value
  if (value === undefined || value === null) return ""
  return isLeftOut(value) ? `(${value.bytes} bytes, not recorded)` : json(value, indent)
}

/** `850 ms`, `1.93 s`, `2 min 5 s`. */
export const duration = (millis: number): string => {
  if (millis < 1000) return `${Math.round(millis * 10) / 10} ms`
  if (millis < 60_000) return `${Math.round(millis / 10) / 100} s`
  const seconds = Math.round(millis / 1000)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

/** `1 call`, `2 calls`. */
export const count = (many: number, noun: string): string => `${many} ${noun}${many === 1 ? "" : "s"}`

/** The number of a turn, from 0, by its event's data or the name of its step. */
export const turnOf = (data: Data, step: string): number => {
  const named = data["turn"] ?? data["step_index"] ?? /^model-(\d{1,9})$/.exec(step)?.[1]
  const turn = Number(named)
  return Number.isSafeInteger(turn) && turn >= 0 ? turn : 0
}

/** What tells a call from the others: its id, or, where a schema has none, its step. */
export const callOf = (data: Data, step: string): string => word(data["call"]) || step
