/**
 * An answer as sentences of words: lists, headings, quotations and code are told apart, blocks of code are left out. English
 * punctuation, any alphabet. Linear: every piece has a longest length, and a sentence that does not end is cut.
 */

export interface Word {
  /** Without the marks around it. */
  readonly text: string
  readonly lower: string
  readonly at: number
  readonly end: number
  /** Punctuation, or a sign like a tick. */
  readonly mark: boolean
  /** Between quotation marks, or in a line that quotes. */
  quoted: boolean
  /** Between backticks. */
  code: boolean
}

export interface Sentence {
  readonly words: ReadonlyArray<Word>
  readonly question: boolean
  /** An item of a list. */
  readonly listed: boolean
  /** In a list under words like "what I did:". */
  readonly deeds: boolean
  /** The line before it is over: it may be a heading, a cell, a label. */
  readonly first: boolean
}

/** Words of a block before it is cut. */
const longest = 600

const piece =
  /(?:[\p{L}\p{M}\p{N}_.'’/\\@#%&=~+$€£¥−-]|(?<=\p{N}),(?=\p{N})|(?<=\p{N})[\u00a0\u202f](?=\p{N}{3}(?!\p{N}))|(?<=\p{N}):(?=\p{N})|:(?=[/\\])|\?(?=\w)){1,400}|\S/gu

const marker = /^[ \t]{0,24}(?:(?:[-*+•–]|\d{1,3}[.)])[ \t]+)(?:\[[ xX]\][ \t]+)?/
const heading = /^ {0,3}#{1,6}[ \t]+/
const quoting = /^ {0,3}(?:>[ \t]?)+/
const fence = /^ {0,12}(```|~~~)/

const leads = new Set(["'", "’", "=", "&", "@", "_", "%"])
const trails = new Set([".", "'", "’", "-", "−", "/", "=", "&", "~", "+", "#", "@", "\\", "_"])
const abbreviations = new Set(
  "e.g i.e eg ie etc vs approx no fig mr mrs ms dr prof inc ltd co st dept est ca cf al jan feb mar apr jun jul aug sep sept oct nov dec".split(
    " "
  )
)
const ends = new Set([".", "!", "?", "…"])
const deed = new Set(["did", "done", "performed", "completed", "taken", "executed", "happened"])

/** Where a piece begins after what only stands before a word. */
const begin = (raw: string): number => {
  let at = 0
  for (; at < raw.length; at++) {
    const [one, next] = [raw[at]!, raw[at + 1] ?? ""]
    const kept =
      one === "." || one === "~"
        ? /[/.\d]/.test(next)
        : one === "-" || one === "−" || one === "+"
          ? /[\d.$€£¥]/.test(next)
          : !leads.has(one)
    if (kept) return at
  }
  return at
}

const stop = (raw: string, from: number): number => {
  let at = raw.length
  while (at > from && trails.has(raw[at - 1]!)) at -= 1
  return at
}

const wordOf = (text: string, at: number, mark: boolean): Word => ({
  text,
  lower: mark ? text : text.toLowerCase().replaceAll("’", "'"),
  at,
  end: at + text.length,
  mark,
  quoted: false,
  code: false
})

/** One piece: the word, and the marks that belong to the sentence. */
const wordsOf = (raw: string, at: number): ReadonlyArray<Word> => {
  const from = begin(raw)
  const to = stop(raw, from)
  if (from >= to) {
    const dot = raw.includes(".") && raw.length < 4 ? [wordOf(".", at + raw.indexOf("."), true)] : []
    // "21.57 %.": the sign belongs to the number before it.
    if (raw.startsWith("%")) return [wordOf("%", at, true), ...dot]
    return dot.length > 0 && raw.length < 3 ? dot : [wordOf(raw.slice(0, 3), at, true)]
  }
  const core = raw.slice(from, to)
  if (!/[\p{L}\p{N}]/u.test(core)) return [wordOf(core.slice(0, 3), at + from, true)]
  const found: Array<Word> = []
  if (/^['’]/.test(raw)) found.push(wordOf("'", at, true))
  found.push(wordOf(core, at + from, false))
  const tail = raw.slice(to, to + 4)
  if (/^\.?['’]/.test(tail)) found.push(wordOf("’", at + to, true))
  // One dot may belong to the word; more of them, or a dot after another word, end a sentence.
  const short = abbreviations.has(core.toLowerCase()) || (core.length === 1 && /\p{Lu}/u.test(core) && core !== "I")
  if (tail.includes(".") && !short) found.push(wordOf(".", at + to, true))
  return found
}

const openers = ['"', "“", "„", "«", "'", "`"]
const closers = ['"', "”", "“", "»", "’", "`"]

/** Marks what stands between two quotation marks or backticks. One that is never closed marks nothing. */
const markQuotes = (words: ReadonlyArray<Word>): void => {
  /** Where each kind is open. */
  const open = openers.map(() => -1)
  for (let at = 0; at < words.length; at++) {
    const { mark, text } = words[at]!
    if (!mark) continue
    const kind = closers.findIndex((closer, one) => closer === text && open[one]! >= 0)
    if (kind < 0) {
      const opened = openers.indexOf(text)
      if (opened >= 0) open[opened] = at
      continue
    }
    for (let inside = open[kind]! + 1; inside < at; inside++) {
      if (text === "`") words[inside]!.code = true
      else words[inside]!.quoted = true
    }
    open[kind] = -1
  }
}

interface Block {
  words: Array<Word>
  listed: boolean
  deeds: boolean
}

function* cut({ deeds, listed, words }: Block): Iterable<Sentence> {
  markQuotes(words)
  const shown = words.filter(({ mark, text }) => !(mark && (text === "`" || text === "*")))
  let from = 0
  for (let at = 0; at < shown.length; at++) {
    const { mark, quoted, text } = shown[at]!
    const over = mark && !quoted && ends.has(text)
    if (!over && at < shown.length - 1) continue
    const sentence = shown.slice(from, at + 1)
    if (sentence.some((word) => !word.mark))
      yield { words: sentence, question: text === "?", listed, deeds, first: from === 0 }
    from = at + 1
  }
}

/** The lines of a text with their places. */
function* linesOf(text: string): Iterable<readonly [line: string, at: number]> {
  for (let at = 0; at <= text.length; ) {
    const end = text.indexOf("\n", at)
    const to = end < 0 ? text.length : end
    yield [text.slice(at, to), at]
    at = to + 1
  }
}

/** Takes lines, gives blocks: a paragraph, an item of a list, a heading, a row of a table. */
class Blocks {
  #block: Block = { words: [], listed: false, deeds: false }
  #deeds = false
  #code: string | undefined

  readonly flush = (): Block => {
    const block = this.#block
    const last = block.words.at(-1)
    if (last?.text === ":" && !block.listed) this.#deeds = block.words.some(({ lower }) => deed.has(lower))
    else if (!block.listed && block.words.length > 0) this.#deeds = false
    this.#block = { words: [], listed: false, deeds: false }
    return block
  };

  *line(line: string, at: number): Iterable<Block> {
    const fenced = fence.exec(line)?.[1]
    if (fenced !== undefined && (this.#code === undefined || this.#code === fenced)) {
      this.#code = this.#code === undefined ? fenced : undefined
      yield this.flush()
      return
    }
    if (this.#code !== undefined) return
    const head = line.slice(0, 40)
    const start = marker.exec(head)?.[0] ?? heading.exec(head)?.[0] ?? quoting.exec(head)?.[0] ?? ""
    const alone = start !== "" || head.trim() === "" || /^[ \t]*\|/.test(head) || quoting.test(head)
    if (alone) yield this.flush()
    const listed = marker.test(head)
    if (listed) {
      this.#block.listed = true
      this.#block.deeds = this.#deeds
    }
    yield* this.#words(line, start.length, at, quoting.test(head))
    if (heading.test(head) || /^[ \t]*\|/.test(head)) yield this.flush()
  }

  *#words(line: string, from: number, at: number, quoted: boolean): Iterable<Block> {
    piece.lastIndex = 0
    for (const found of line.slice(from).matchAll(piece)) {
      const words = wordsOf(found[0], at + from + found.index)
      if (quoted) for (const word of words) word.quoted = true
      this.#block.words.push(...words)
      if (this.#block.words.length < longest) continue
      const { deeds, listed } = this.#block
      yield this.flush()
      this.#block.listed = listed
      this.#block.deeds = deeds
    }
  }
}

/** The sentences of an answer, in order. Never fails. */
export function* sentencesOf(text: string): Iterable<Sentence> {
  const blocks = new Blocks()
  for (const [line, at] of linesOf(text)) for (const block of blocks.line(line, at)) yield* cut(block)
  yield* cut(blocks.flush())
}

/** A sentence as it stands in the answer, on one line, up to `most` characters. */
export const quoteOf = (text: string, { words }: Sentence, most = 160): string => {
  const [from, to] = [words[0]!.at, words.at(-1)!.end]
  const whole = text.slice(from, Math.min(to, from + most + 1)).replace(/\s+/g, " ")
  return whole.length > most || to > from + most + 1
    ? `${whole.slice(0, most).replace(/[\ud800-\udbff]$/, "")}…`
    : whole
}
