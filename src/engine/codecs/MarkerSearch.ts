/**
 * Finds the first of a family's markers in a text, and how much of a text's end may still become one. Prose is searched for
 * the few characters markers begin with; only there are markers compared.
 */

/** Markers by their first character; shared by all searches for them. */
export interface MarkerTable {
  readonly firsts: ReadonlyArray<string>
  readonly byFirst: ReadonlyMap<string, ReadonlyArray<string>>
  readonly longest: number
}

/** Where two markers fit, the one that comes first in `texts` is meant. */
export const markerTable = (texts: ReadonlyArray<string>): MarkerTable => {
  const firsts = [...new Set(texts.map((text) => text[0]!))]
  return {
    firsts,
    byFirst: new Map(firsts.map((first) => [first, texts.filter((text) => text[0] === first)])),
    longest: Math.max(0, ...texts.map((text) => text.length))
  }
}

/** Length of the longest end of `text`, not before `from`, that is a proper beginning of a marker. */
export const undecided = ({ byFirst, longest }: MarkerTable, text: string, from: number): number => {
  for (let start = Math.max(from, text.length - longest + 1); start < text.length; start++) {
    const markers = byFirst.get(text[start]!)
    if (markers === undefined) continue
    const size = text.length - start
    const tail = text.slice(start)
    if (markers.some((marker) => marker.length > size && marker.startsWith(tail))) return size
  }
  return 0
}

/** One reader's search. It only moves forward, so where a character comes next is looked up once. */
export class MarkerSearch {
  readonly table: MarkerTable
  #text = ""
  #from = 0
  readonly #next: Array<number>
  /** The marker that was found, and where. */
  marker = ""
  at = -1

  constructor(table: MarkerTable) {
    this.table = table
    this.#next = table.firsts.map(() => -1)
  }

  /** Looks for the first marker from `from` on. */
  find(text: string, from: number): boolean {
    const { byFirst, firsts } = this.table
    // Another text may spell the same: then the search begins further to the front again.
    if (text !== this.#text || from < this.#from) this.#next.fill(-1)
    this.#text = text
    this.#from = from
    this.at = -1
    for (let index = 0; index < firsts.length; index++) {
      const first = firsts[index]!
      let at = this.#next[index]!
      if (at < from) at = indexOf(text, first, from)
      for (; at < text.length && (this.at < 0 || at < this.at); at = indexOf(text, first, at + 1)) {
        const marker = markerAt(byFirst.get(first)!, text, at)
        if (marker === undefined) continue
        this.marker = marker
        this.at = at
        break
      }
      this.#next[index] = at
    }
    return this.at >= 0
  }
}

const markerAt = (markers: ReadonlyArray<string>, text: string, at: number): string | undefined => {
  for (const marker of markers) if (text.startsWith(marker, at)) return marker
  return undefined
}

/** As the string's own, with the text's length for nothing. */
const indexOf = (text: string, first: string, from: number): number => {
  const at = text.indexOf(first, from)
  return at < 0 ? text.length : at
}
