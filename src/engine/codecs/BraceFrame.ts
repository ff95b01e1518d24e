/** Reads `call:NAME{…}` up to the closing mark. Marks between two quote tokens are data. */
import * as Result from "effect/Result"
import { readObject } from "./BraceText.ts"
import { broken, type Frame, type FrameEnd, openFrame } from "./Dialect.ts"
import { callBody, checkName } from "./Envelope.ts"
import { MarkerSearch, type MarkerTable, markerTable } from "./MarkerSearch.ts"
import { heldBack, type Window } from "./Window.ts"

export interface BraceMarks {
  readonly opener: string
  readonly closer: string
  readonly quote: string
}

export class BraceFrame implements Frame {
  readonly #marks: BraceMarks
  readonly #parts: Array<string> = []
  #start: number | undefined
  readonly #search: MarkerSearch
  #inString = false

  constructor(marks: BraceMarks) {
    this.#marks = marks
    this.#search = new MarkerSearch(tableOf(marks))
  }

  read(window: Window): FrameEnd | undefined {
    this.#start ??= window.position
    const { closer, opener, quote } = this.#marks
    for (;;) {
      const found = this.#next(window)
      if (found === undefined) {
        const tokens = this.#inString ? [quote] : [quote, closer, opener]
        const held = window.ending === undefined ? heldBack(window.rest, tokens) : 0
        this.#keep(window, window.text.length - held)
        return window.ending === undefined ? undefined : { calls: [], fault: openFrame(window.ending, window.position) }
      }
      this.#keep(window, found.at)
      if (found.token === opener) {
        return broken({ code: "missing_closer", what: `a second ${opener} came before ${closer}` }, window.position)
      }
      window.at += found.token.length
      if (found.token === closer) return this.#finish()
      this.#parts.push(quote)
      this.#inString = !this.#inString
    }
  }

  /** The next mark; in a string only the one that ends it. All begin alike, so that no search runs past the next. */
  #next(window: Window): { readonly at: number; readonly token: string } | undefined {
    const { quote } = this.#marks
    if (this.#inString) {
      const at = window.text.indexOf(quote, window.at)
      return at < 0 ? undefined : { at, token: quote }
    }
    return this.#search.find(window.text, window.at) ? { at: this.#search.at, token: this.#search.marker } : undefined
  }

  #keep(window: Window, end: number): void {
    if (end > window.at) this.#parts.push(window.text.slice(window.at, end))
    window.at = end
  }

  #finish(): FrameEnd {
    const text = this.#parts.join("")
    const start = this.#start!
    if (text.trim() === "") return broken({ code: "empty_call", what: "there is no call between the marks" }, start)
    const head = /^\s*call:([^{]{0,256})(?=\{)/.exec(text)
    if (head === null) return broken({ code: "wrong_envelope", what: "a call must begin with call:NAME{" }, start)
    const name = head[1]!.trim()
    const wrong = checkName(name)
    if (wrong !== undefined) return broken(wrong, start)
    const args = readObject(text, head[0].length, this.#marks.quote)
    return Result.isFailure(args)
      ? broken({ code: args.failure.code, what: args.failure.what }, start + args.failure.at)
      : { calls: [callBody(name, args.success)] }
  }
}

/** Prepared once for each family. */
const tables = new WeakMap<BraceMarks, MarkerTable>()

const tableOf = (marks: BraceMarks): MarkerTable => {
  const before = tables.get(marks)
  if (before !== undefined) return before
  const table = markerTable([marks.quote, marks.closer, marks.opener])
  tables.set(marks, table)
  return table
}
