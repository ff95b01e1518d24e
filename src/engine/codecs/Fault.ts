/** One thing wrong with a turn, and the `Malformed` action it becomes. The first fault in text order decides a turn. */
import type { ProposedCall } from "../../tools/ToolCall.ts"
import type { Action, MalformedCode } from "./Codec.ts"

export interface Fault {
  readonly code: MalformedCode
  /** What is wrong, as a clause without a full stop: it is followed by how to write a call. */
  readonly what: string
  /** UTF-16 offset in the turn's text. */
  readonly at: number
  /** Absent for faults that are not about one call (a forged turn, an empty turn). */
  readonly ordinal?: number
}

/** The one that comes first in the text. */
export const first = (faults: ReadonlyArray<Fault | undefined>): Fault | undefined =>
  faults.reduce((best, one) => (best === undefined || (one !== undefined && one.at < best.at) ? one : best), undefined)

const excerptChars = 160

/** Up to 160 characters around `at`, two thirds of them before it, never half a surrogate pair. */
export const excerptOf = (text: string, at: number): string => {
  const start = Math.max(0, Math.min(at - 106, text.length - excerptChars))
  const piece = text.slice(start, start + excerptChars)
  const from = isLow(piece.charCodeAt(0)) && start > 0 ? 1 : 0
  const to =
    isHigh(piece.charCodeAt(piece.length - 1)) && start + piece.length < text.length ? piece.length - 1 : piece.length
  return piece.slice(from, to)
}

/** A turn's text as far as an excerpt may show it: what comes long after its fault is not kept. */
export class TurnPieces {
  readonly #pieces: Array<string> = []
  #length = 0

  add(text: string, fault: Fault | undefined): void {
    if (fault !== undefined && this.#length > fault.at + 2 * excerptChars) return
    this.#pieces.push(text)
    this.#length += text.length
  }

  get text(): string {
    return this.#pieces.join("")
  }
}

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff

/** The action of a turn that has a fault. `form` says how to do it right; `text` is the whole turn. */
export const malformed = (
  fault: Fault,
  form: string,
  text: string,
  partial: ReadonlyArray<ProposedCall>,
  reasoning: string
): Action => ({
  _tag: "Malformed",
  code: fault.code,
  reason: `${fault.what}; ${form}`,
  excerpt: excerptOf(text, fault.at),
  position: fault.at,
  ...(fault.ordinal === undefined ? {} : { ordinal: fault.ordinal }),
  partial,
  ...(reasoning === "" ? {} : { reasoning })
})
