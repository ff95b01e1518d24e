/** What `writ serve` says when it listens, in a line for people. Says nothing itself. */
import { block, inline } from "./Printable.ts"

export interface Listening {
  /** The model for people: its file's name, size, family. */
  readonly title: string
  /** What requests call it. */
  readonly model: string
  readonly url: string
  readonly tools: ReadonlyArray<string>
  /** Who may ask; undefined is anybody on this machine. */
  readonly names: ReadonlyArray<string> | undefined
}

/** The model's name is said once where requests call it by that of its file. */
export const startLine = ({ model, names, title, tools, url }: Listening): string => {
  const called = `${title} `.startsWith(`${model} `) ? title : `${title} as ${model}`
  const offered = tools.length === 0 ? "no tools" : `tools ${tools.map(inline).join(", ")}`
  return `writ: ${block(called)} on ${url} (${offered}; for ${names?.join(", ") ?? "anybody on this machine"})`
}
