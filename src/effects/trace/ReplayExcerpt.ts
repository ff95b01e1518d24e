/**
 * How many tokens an answer must have had for the loop to cut it as it did. The record holds what the model was shown of an
 * answer and not how many tokens each attempt to shorten it took, so the number is found from the answer that came out.
 */
import type { Tape } from "./ReplayTape.ts"

/** The start of what an answer says, by which a longer form of the same answer is recognised. */
const lead = 24

interface Said {
  readonly ok: boolean
  readonly beginning: string
}

const said = (answer: string): Said | undefined => {
  try {
    const parsed = JSON.parse(answer) as {
      readonly ok: boolean
      readonly result?: unknown
      readonly errors?: ReadonlyArray<{ readonly reason?: unknown }>
    }
    const { result } = parsed
    const whole = parsed.ok ? result : parsed.errors?.[0]?.reason
    const cut = typeof whole === "object" && whole !== null && (whole as { truncated?: unknown }).truncated === true
    const text = cut
      ? String((whole as { head?: unknown }).head)
      : typeof whole === "string"
        ? whole
        : JSON.stringify(whole)
    return { ok: parsed.ok, beginning: text }
  } catch {
    return undefined
  }
}

const sameBeginning = (a: Said, b: Said): boolean => {
  const length = Math.min(lead, a.beginning.length, b.beginning.length)
  return a.ok === b.ok && a.beginning.slice(0, length) === b.beginning.slice(0, length)
}

/** The answers that were put before the model next, or were owed to it when the run stopped. */
const shown = (tape: Tape): ReadonlyArray<string> =>
  tape.records
    .slice(tape.compared)
    .filter(({ event_type: type }) => type === "tool_result_committed" || type === "tool_result_uncommitted")
    .map(({ data }) => String(data["answer"]))

/**
 * @param quarter tokens an answer may have
 * @returns a number up to `quarter` if `answer` was shown as it is; otherwise the one that leads to what was shown
 */
export const sizeThatFits = (answer: string, tape: Tape, quarter: number): number => {
  const own = said(answer)
  if (own === undefined) return 0
  const candidates = shown(tape).filter((text) => {
    const other = said(text)
    return other !== undefined && sameBeginning(own, other)
  })
  const found = candidates.find((text) => text === answer) ?? candidates[0]
  if (found === undefined || found === answer) return 0
  // The loop allows floor(bytes * floor(quarter) / tokens) - 1 bytes next; solved for the bytes that were shown. Half a
  // byte more keeps the division on the right side of the whole number.
  return (Buffer.byteLength(answer) * Math.floor(quarter)) / (Buffer.byteLength(found) + 1.5)
}
