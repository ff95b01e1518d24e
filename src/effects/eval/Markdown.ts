/** The pieces of a Markdown report: text that stays text, tables, figures. Knows nothing of evaluations. */
import type { Interval } from "./Statistics.ts"

/** Text that no Markdown or HTML comes of, on one line. */
export const plain = (text: string): string =>
  text
    .replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ")
    .replace(
      /[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g,
      (hidden) => `\\u${hidden.charCodeAt(0).toString(16).padStart(4, "0")}`
    )
    .replace(/[\\`*_[\]<>|~#&!]/g, (special) => (special === "<" ? "&lt;" : special === "&" ? "&amp;" : `\\${special}`))
    .trim()

/** Cells are Markdown already. */
export const table = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n")

/** `87.5 %`. */
export const percent = (part: number, whole: number): string =>
  whole === 0 ? "–" : `${((100 * part) / whole).toFixed(1)} %`

/** `62–97 %`. */
export const interval = (found: Interval | undefined): string =>
  found === undefined ? "–" : `${(100 * found.low).toFixed(0)}–${(100 * found.high).toFixed(0)} %`

/** A probability as people write it. */
export const chance = (p: number): string => (p < 0.0001 ? "< 0.0001" : p.toFixed(4))

/** `some` of a list with a note on what is left out. */
export const atMost = <A>(
  all: ReadonlyArray<A>,
  most: number
): { readonly some: ReadonlyArray<A>; readonly note: string } => ({
  some: all.slice(0, most),
  note: all.length > most ? `\n\n${all.length - most} more are in the JSON.` : ""
})
