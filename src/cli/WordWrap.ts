/**
 * Text that streams to a terminal, wrapped at words, each word as soon as it is whole. A word that is wider than a line is
 * left to the terminal, so that an address can still be copied; so are lines of a fenced block of code. Paragraphs that
 * begin with a right-to-left letter are announced as such to terminals that lay text out in both directions: a wrapped line
 * may begin with a word of the other direction, and must not turn because of it.
 */
import { columnsOf, type Direction, directionOf, isIdeographic, isMark } from "./Columns.ts"
import { readable } from "./Readable.ts"

export interface WordWrapOptions {
  readonly write: (text: string) => void
  /** Columns of a line, asked anew for every word; `Infinity` wraps nothing. */
  readonly columns: () => number
  /** Tell the terminal the direction of paragraphs (ECMA-48 SCP). */
  readonly directions: boolean
}

const selectPath: Readonly<Record<Direction | "default", string>> = {
  default: "\u001b[0 k",
  ltr: "\u001b[1 k",
  rtl: "\u001b[2 k"
}

/** Closing punctuation of scripts without spaces, which begins no line. */
const staysBehind =
  /^[\u3001\u3002\uff0c\uff0e\uff01\uff1f\uff1a\uff1b\uff09\u300d\u300f\u3011\u300b\u3009\u3015\u30fc]/

const bullet = /^(?:[-*+•‣–]|\d{1,3}[.)])$/

/** How far an item of a list is indented at most, as a share of the line. */
const deepest = 1 / 3

export class WordWrap {
  readonly #options: WordWrapOptions
  /** Not written yet: a word that may go on, and the spaces before it. */
  #word = ""
  #spaces = ""
  /** The last character of the word that is no mark on another. */
  #base = ""
  /** A half of a character, until the other half is there. */
  #half = ""
  /** Where the cursor is. */
  #column = 0
  /** The words of this line of the text, as far as they decide what it is. */
  #begun = 0
  /** Columns that further lines of this paragraph are indented by. */
  #hanging = 0
  #fenced = false
  #paragraph: Direction | undefined
  #told: Direction = "ltr"

  constructor(options: WordWrapOptions) {
    this.#options = options
  }

  readonly push = (text: string): void => {
    const whole = this.#half + text
    const high = /[\ud800-\udbff]$/.test(whole)
    this.#half = high ? whole.slice(-1) : ""
    for (const character of high ? whole.slice(0, -1) : whole) this.#take(character)
  }

  /** Writes what was held back and ends the line, if there is one. */
  readonly end = (): void => {
    this.#word += this.#half
    this.#half = ""
    this.#flush()
    if (this.#column > 0) this.#options.write("\n")
    if (this.#told !== "ltr") this.#options.write(selectPath.default)
    this.#told = "ltr"
    this.#newLine()
    this.#fenced = false
  }

  /** Somebody else has ended the line: what was held back is not written any more. */
  readonly cut = (): void => {
    this.#half = ""
    this.#word = ""
    this.#base = ""
    this.#column = 0
    this.end()
  }

  #take(character: string): void {
    if (character === "\n") {
      if (this.#word.endsWith("\r")) this.#word = this.#word.slice(0, -1)
      this.#flush()
      this.#options.write("\n")
      this.#newLine()
    } else if (character === " " || character === "\t") {
      this.#flush()
      this.#spaces += character === "\t" && !this.#fenced ? "    " : character
    } else {
      if (this.#mayBreakBefore(character)) this.#flush()
      this.#word += character
      if (!isMark(character)) this.#base = character
    }
  }

  #mayBreakBefore(character: string): boolean {
    if (this.#word === "" || isMark(character) || staysBehind.test(character)) return false
    return isIdeographic(character) || isIdeographic(this.#base)
  }

  #newLine(): void {
    this.#column = 0
    this.#begun = 0
    this.#hanging = 0
    this.#spaces = ""
    this.#paragraph = undefined
  }

  #flush(): void {
    if (this.#word === "") return
    const [word, spaces] = [readable(this.#word), this.#spaces]
    this.#word = ""
    this.#base = ""
    this.#spaces = ""
    if (this.#begun === 0 && spaces.trim() === "" && word.startsWith("```")) this.#fenced = !this.#fenced
    this.#direct(word)
    this.#place(spaces, word)
    this.#begun += 1
  }

  /** The first letter of a paragraph says how all of it reads. */
  #direct(word: string): void {
    if (this.#paragraph !== undefined) return
    this.#paragraph = directionOf(word)
    if (!this.#options.directions || this.#paragraph === undefined || this.#paragraph === this.#told) return
    this.#options.write(selectPath[this.#paragraph])
    this.#told = this.#paragraph
  }

  #place(spaces: string, word: string): void {
    const { write } = this.#options
    const width = this.#options.columns()
    const columns = columnsOf(word)
    const wraps = !this.#fenced && this.#column > this.#hanging && this.#column + spaces.length + columns > width
    if (wraps) {
      write(`\n${" ".repeat(this.#hanging)}${word}`)
      this.#column = this.#hanging + columns
    } else {
      write(`${spaces}${word}`)
      this.#column += spaces.length + columns
    }
    // What did not fit was wrapped by the terminal.
    if (this.#column > width) this.#column = this.#column % width || width
    this.#hang(spaces, word, width)
  }

  /** Further lines stand below the text of the first: behind its indentation, and behind the mark of an item. */
  #hang(spaces: string, word: string, width: number): void {
    if (this.#begun > 0 || this.#fenced) return
    const hanging = spaces.length + (bullet.test(word) ? word.length + 1 : 0)
    this.#hanging = hanging <= width * deepest ? hanging : 0
  }
}

/** A text of ours, wrapped as a whole; without the last line end. */
export const wrapped = (text: string, columns: number): string => {
  let out = ""
  const wrap = new WordWrap({
    write: (more) => {
      out += more
    },
    columns: () => columns,
    directions: false
  })
  wrap.push(text)
  wrap.end()
  return out.replace(/\n$/, "")
}
