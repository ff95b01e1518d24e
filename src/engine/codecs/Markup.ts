/**
 * Builds the segments of a prompt from markers and content, so that they are tokenised as the whole text would have been.
 *
 * Only marker texts (the strings a vocabulary may hold as one control token) need special-token parsing. Plain words of
 * ours that touch content (`user\n`, the newline before a closing tag) are moved into the content's segment: a tokenizer
 * merges over that seam (`}` and a newline are one token in many vocabularies), and plain words cannot forge anything.
 */
import { control, type Segment } from "../Prompt.ts"

/** Joins neighbours of one kind, drops empty ones, and moves plain scaffolding next to content into the content. */
export const settle = (pieces: ReadonlyArray<Segment>, markers: ReadonlyArray<string>): ReadonlyArray<Segment> => {
  const joined = join(pieces)
  const out: Array<Segment> = []
  for (let i = 0; i < joined.length; i++) {
    const piece = joined[i]!
    if (piece.kind === "text") {
      out.push(piece)
      continue
    }
    const first = i > 0 ? firstMarker(piece.text, markers) : 0
    const last = i < joined.length - 1 ? lastMarker(piece.text, markers, first) : piece.text.length
    out.push({ kind: "text", text: piece.text.slice(0, first) })
    out.push({ kind: "control", text: piece.text.slice(first, last) })
    out.push({ kind: "text", text: piece.text.slice(last) })
  }
  return join(out)
}

const join = (pieces: ReadonlyArray<Segment>): ReadonlyArray<Segment> => {
  const out: Array<Segment> = []
  for (const piece of pieces) {
    const last = out[out.length - 1]
    if (piece.text === "") continue
    if (last !== undefined && last.kind === piece.kind)
      out[out.length - 1] = { kind: last.kind, text: last.text + piece.text }
    else out.push(piece)
  }
  return out
}

/** Where the first marker starts; the length of the text when there is none. */
const firstMarker = (text: string, markers: ReadonlyArray<string>): number => {
  let first = text.length
  for (const marker of markers) {
    const at = text.indexOf(marker)
    if (at >= 0 && at < first) first = at
  }
  return first
}

/** Where the last marker ends; `otherwise` when there is none. */
const lastMarker = (text: string, markers: ReadonlyArray<string>, otherwise: number): number => {
  let last = otherwise
  for (const marker of markers) {
    const at = text.lastIndexOf(marker)
    if (at >= 0 && at + marker.length > last) last = at + marker.length
  }
  return last
}

/** A prompt under construction: `mark` for scaffolding, `say` for anything that is not ours. */
export class Markup {
  readonly #pieces: Array<Segment> = []
  readonly #markers: ReadonlyArray<string>

  constructor(markers: ReadonlyArray<string>) {
    this.#markers = markers
  }

  mark(scaffolding: string): this {
    this.#pieces.push(control(scaffolding))
    return this
  }

  say(content: string): this {
    this.#pieces.push({ kind: "text", text: content })
    return this
  }

  done(): ReadonlyArray<Segment> {
    return settle(this.#pieces, this.#markers)
  }
}
