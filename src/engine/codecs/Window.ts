/** The part of a turn's text that is not decided yet, and where it lies in the turn. Readers move `at` forward only. */
import type { EndReason } from "../Generation.ts"

export class Window {
  text = ""
  at = 0
  /** Offset in the turn of `text[0]`. */
  base = 0
  /** Set once no more text will come: then nothing may be left undecided. */
  ending: EndReason | undefined

  /** Adds text; what has been decided is dropped. */
  push(chunk: string): void {
    this.base += this.at
    this.text = this.at === this.text.length ? chunk : this.text.slice(this.at) + chunk
    this.at = 0
  }

  /** Offset in the turn of the next character. */
  get position(): number {
    return this.base + this.at
  }

  get rest(): string {
    return this.text.slice(this.at)
  }

  /** Moves over white space; true when a character is waiting behind it. */
  skipSpace(): boolean {
    while (this.at < this.text.length && isSpace(this.text.charCodeAt(this.at))) this.at += 1
    return this.at < this.text.length
  }

  /**
   * Is `token` next? `"yes"` moves over it; `"maybe"` means what is there is a beginning of it and more text may come.
   */
  expect(token: string): "yes" | "maybe" | "no" {
    if (this.text.startsWith(token, this.at)) {
      this.at += token.length
      return "yes"
    }
    const left = this.text.length - this.at
    return this.ending === undefined && left < token.length && token.startsWith(this.text.slice(this.at))
      ? "maybe"
      : "no"
  }

  /** Has the turn ended, and is what is left of it a beginning of `token`? */
  endsWithin(token: string): boolean {
    const left = this.text.length - this.at
    return this.ending !== undefined && left < token.length && token.startsWith(this.text.slice(this.at))
  }
}

export const isSpace = (unit: number): boolean =>
  unit === 0x20 ||
  unit === 0x0a ||
  unit === 0x0d ||
  unit === 0x09 ||
  (unit > 0x7f && /\s/.test(String.fromCharCode(unit)))

/** Length of the longest end of `text` that is a proper beginning of one of `tokens`. */
export const heldBack = (text: string, tokens: ReadonlyArray<string>): number => {
  let held = 0
  for (const token of tokens) {
    for (let size = Math.min(token.length - 1, text.length); size > held; size--) {
      if (text.endsWith(token.slice(0, size))) {
        held = size
        break
      }
    }
  }
  return held
}
