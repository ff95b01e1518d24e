/**
 * What becomes of a script's turn when its reasoning has a budget. A script cannot react, so the rest of the reasoning is
 * skipped and the turn goes on behind the end that the script itself gives it, or with what the script says for this case.
 */
import type { ThinkingBudget } from "./Generation.ts"
import { ThinkClock } from "./ThinkClock.ts"

export interface Scene {
  readonly tokens: ReadonlyArray<string>
  /** Where the text that closed the reasoning begins and ends, and after how many tokens of reasoning it was written. */
  readonly closed?: { readonly from: number; readonly to: number; readonly count: number }
}

/** The tokens behind `offset`; one that is cut there keeps its rest. */
const from = (tokens: ReadonlyArray<string>, offset: number): ReadonlyArray<string> => {
  const out: Array<string> = []
  let at = 0
  for (const token of tokens) {
    const rest = token.slice(Math.max(0, offset - at))
    if (rest !== "") out.push(rest)
    at += token.length
  }
  return out
}

/** What follows the script's own end of the reasoning, without what was written in its place. */
const behind = (
  tokens: ReadonlyArray<string>,
  shown: number,
  close: string,
  closing: string
): ReadonlyArray<string> => {
  const text = tokens.join("")
  const given = tokens.slice(0, shown).join("").length
  const end = text.indexOf(close, Math.max(0, given - close.length + 1))
  if (end < 0) return []
  const same = closing.trim()
  let at = end + (text.startsWith(same, end) ? same.length : close.length)
  if (/\s$/.test(closing)) while (/\s/.test(text[at] ?? "")) at += 1
  return from(tokens, at)
}

/** `cut`: how the engine makes tokens of a text. */
export const withBudget = (
  tokens: ReadonlyArray<string>,
  budget: ThinkingBudget,
  cut: (text: string) => ReadonlyArray<string>,
  onceClosed: string | undefined
): Scene => {
  const clock = new ThinkClock(budget)
  const out: Array<string> = []
  let closed: Scene["closed"]
  let rest = tokens
  for (let at = 0; at < rest.length; at++) {
    out.push(rest[at]!)
    const closing = clock.take(rest[at]!)
    if (closing === undefined) continue
    const begun = out.length
    out.push(...cut(closing))
    const instead = closed === undefined && onceClosed !== undefined ? cut(onceClosed) : undefined
    closed ??= { from: begun, to: out.length, count: clock.closed! }
    rest = instead ?? behind(rest, at + 1, budget.close, closing)
    at = -1
  }
  return { tokens: out, ...(closed === undefined ? {} : { closed }) }
}
