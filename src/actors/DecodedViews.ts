/**
 * A text as it is and with the escapes of JSON undone, level by level, so that what is searched for is found however often it
 * was quoted. Each view knows where its characters come from. Undoes nothing else: no percent signs, no entities, no base64.
 */

/** A reading of a text. */
export interface View {
  readonly text: string
  /** The place in the original text where what stands at `index` here begins. */
  readonly originalAt: (index: number) => number
}

/** A JSON text in a JSON text in a result that is shown as JSON: more does not happen by itself. */
const deepest = 4

const escape = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/g

const letters: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" }

const meaning = (written: string): string => {
  const kind = written[1]!
  if (kind === "u") return String.fromCharCode(Number.parseInt(written.slice(2), 16))
  return letters[kind] ?? kind
}

/** One level undone; `undefined` where there is none. */
const undone = ({ originalAt, text }: View): View | undefined => {
  const pieces: Array<string> = []
  /** Where a run of characters begins here, and in the text before. */
  const starts: Array<number> = [0]
  const sources: Array<number> = [0]
  let length = 0
  let from = 0
  for (const { 0: written, index } of text.matchAll(escape)) {
    pieces.push(text.slice(from, index), meaning(written))
    length += index - from + 1
    from = index + written.length
    // The character itself begins where its escape does; the run behind it where that ends.
    starts.push(length - 1, length)
    sources.push(index, from)
  }
  if (from === 0) return undefined
  pieces.push(text.slice(from))
  const sourceOf = (index: number): number => {
    let low = 0
    let high = starts.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (starts[middle]! <= index) low = middle
      else high = middle - 1
    }
    return sources[low]! + index - starts[low]!
  }
  return { text: pieces.join(""), originalAt: (index) => originalAt(sourceOf(index)) }
}

/** The text, and every level of it that has escapes. */
export const decodedViews = (text: string): ReadonlyArray<View> => {
  const views: Array<View> = [{ text, originalAt: (index) => index }]
  for (let level = 0; level < deepest; level++) {
    const last = views[level]!
    const next = last.text.includes("\\") ? undone(last) : undefined
    if (next === undefined) return views
    views.push(next)
  }
  return views
}
