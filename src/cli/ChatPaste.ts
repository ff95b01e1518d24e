/**
 * Between a terminal and the line editor: a pasted block (terminals mark one that is asked to) becomes one piece of the line
 * that is being typed. A single line is typed as it is; several lines, or something with control characters in it, stand
 * there as a short name, and what was pasted takes its place when the message is sent.
 */
import { Transform } from "node:stream"
import { count } from "./Printable.ts"

const begin = "\u001b[200~"
const finish = "\u001b[201~"

/** Asks the terminal to mark what is pasted, and not to any more. */
export const askForMarks = "\u001b[?2004h"
export const noMoreMarks = "\u001b[?2004l"

/** A longer line would make every further key slow. */
const longest = 1000

/** How much of a mark, from its beginning, `text` ends with. */
const overhang = (text: string, mark: string): number => {
  for (let length = Math.min(mark.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(mark.slice(0, length))) return length
  }
  return 0
}

/** An escape that comes alone is a key of its own. */
const isKey = (text: string): boolean => text === "\u001b" || text === "\u001b["

/** What the line editor reads. Raw mode is the terminal's own. */
export class ChatPaste extends Transform {
  readonly isTTY = true
  readonly #pasted = new Map<string, string>()
  readonly #raw: (on: boolean) => unknown
  /** Not known yet whether it begins or ends a paste. */
  #held = ""
  #paste: string | undefined

  constructor(raw: (on: boolean) => unknown) {
    super({ decodeStrings: false, encoding: "utf8" })
    this.#raw = raw
  }

  setRawMode(on: boolean): this {
    this.#raw(on)
    return this
  }

  override _transform(chunk: Buffer | string, _encoding: BufferEncoding, done: () => void): void {
    let rest = this.#held + String(chunk)
    this.#held = ""
    while (rest !== "") rest = this.#paste === undefined ? this.#typed(rest) : this.#within(this.#paste, rest)
    done()
  }

  /** A message with what was pasted into it. */
  readonly expanded = (line: string): string =>
    line.replaceAll(/\[paste \d+: \d+ [a-z]+\]/g, (name) => this.#pasted.get(name) ?? name)

  #typed(text: string): string {
    const at = text.indexOf(begin)
    if (at >= 0) {
      this.#type(text.slice(0, at))
      this.#paste = ""
      return text.slice(at + begin.length)
    }
    const held = isKey(text) ? 0 : overhang(text, begin)
    this.#held = text.slice(text.length - held)
    this.#type(text.slice(0, text.length - held))
    return ""
  }

  #within(before: string, text: string): string {
    const at = text.indexOf(finish)
    if (at < 0) {
      const held = overhang(text, finish)
      this.#held = text.slice(text.length - held)
      this.#paste = before + text.slice(0, text.length - held)
      return ""
    }
    this.#paste = undefined
    this.#type(this.#nameOf((before + text.slice(0, at)).replaceAll(/\r\n?/g, "\n")))
    return text.slice(at + finish.length)
  }

  /** What stands in the line for this paste. The line end behind the last line is not part of it. */
  #nameOf(pasted: string): string {
    const text = pasted.replace(/\n+$/, "")
    if (text.length <= longest && !/[\u0000-\u001f\u007f-\u009f]/.test(text)) return text
    const lines = text.split("\n").length
    const size = lines === 1 ? count(text.length, "character") : count(lines, "line")
    const name = `[paste ${this.#pasted.size + 1}: ${size}]`
    this.#pasted.set(name, text)
    return name
  }

  #type(text: string): void {
    if (text !== "") this.push(text, "utf8")
  }
}
