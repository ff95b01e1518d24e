/** Follows Markdown code fences through text as it arrives: is the next character inside a code block? */

/** Enough of a line to tell a fence by. */
const headChars = 64

export class CodeFence {
  /** The marker run of the fence that is open: three or more backticks or tildes. */
  #open: string | undefined
  /** The beginning of the current line. */
  #line = ""

  get inside(): boolean {
    return this.#open !== undefined || opening(this.#line) !== undefined
  }

  take(text: string): void {
    let from = 0
    while (from < text.length) {
      const newline = text.indexOf("\n", from)
      const end = newline < 0 ? text.length : newline
      const room = headChars - this.#line.length
      if (room > 0) this.#line += text.slice(from, Math.min(end, from + room))
      if (newline < 0) return
      if (this.#open === undefined) this.#open = opening(this.#line)
      else if (closes(this.#line, this.#open)) this.#open = undefined
      this.#line = ""
      from = newline + 1
    }
  }
}

const opening = (line: string): string | undefined => {
  const found = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(line)
  // A backtick later in the line makes it inline code.
  return found === null || (found[1]![0] === "`" && found[2]!.includes("`")) ? undefined : found[1]
}

const closes = (line: string, open: string): boolean => {
  const run = /^ {0,3}(`{3,}|~{3,})\s*$/.exec(line)?.[1]
  return run !== undefined && run[0] === open[0] && run.length >= open.length
}
