/** Recorded values as words: content as it is, and what was left out by its size. Knows no event. */
import { isLeftOut } from "./TraceValues.ts"

export type Tone = "plain" | "good" | "bad" | "quiet"

/** Shows a value: content as it is, content that was left out by its size. */
export const show = (value: unknown): string => {
  if (typeof value === "string") return value
  if (value === undefined || value === null) return ""
  if (isHidden(value)) return `(${value.bytes} bytes, not recorded)`
  // Ember's stand-in does not always say how long the content was.
  if (isLeftOut(value)) return notRecorded(value.bytes)
  return JSON.stringify(value)
}

export const notRecorded = (bytes: unknown): string =>
  typeof bytes === "number" ? `(${bytes} bytes, not recorded)` : "(not recorded)"

export const isHidden = (value: unknown): value is { readonly bytes: number } =>
  typeof value === "object" &&
  value !== null &&
  "hmac" in value &&
  typeof (value as { bytes?: unknown }).bytes === "number"

export const millis = (value: unknown): string => (typeof value === "number" ? `${Math.round(value * 10) / 10} ms` : "")
export const num = (value: unknown): number => (typeof value === "number" && Number.isFinite(value) ? value : 0)
export const join = (...parts: ReadonlyArray<string>): string => parts.filter((part) => part !== "").join(" · ")

/** A row's words. */
export type Words = readonly [label: string, detail: string, tone?: Tone]
