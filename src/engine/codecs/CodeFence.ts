/**
 * Follows code blocks through text as it arrives: is the next character inside one? A fence at the start of a line is read
 * as Markdown reads it. Three or more backticks elsewhere open a block as well, unless the same line closes them (inline
 * code): what is written between them is shown, not meant.
 */

/** Enough of a line to tell a fence by. */
const headChars = 64

/** Runs of more backticks than this are not told apart. */
const longestRun = 16

interface Open {
  /** Three or more backticks or tildes. */
  readonly run: string
  /** Opened in the middle of a line: then a run of the same length closes it wherever it stands. */
  readonly inLine: boolean
}

export class CodeFence {
  #open: Open | undefined
  /** The beginning of the current line. */
  #line = ""
  /** Backticks at the end of what has been seen. */
  #run = 0
  /** Lengths of the line's runs that nothing has closed yet: each at most once, since the second closes the first. */
  #runs: Array<number> = []

  get inside(): boolean {
    if (this.#open === undefined) return unclosed(this.#runsNow()) !== undefined || tildes(this.#line) !== undefined
    return !(this.#open.inLine && this.#closesInLine(this.#run))
  }

  take(text: string): void {
    let from = 0
    let tick = text.indexOf("`")
    while (from < text.length) {
      const newline = text.indexOf("\n", from)
      const end = newline < 0 ? text.length : newline
      const room = headChars - this.#line.length
      if (room > 0) this.#line += text.slice(from, Math.min(end, from + room))
      if (this.#run > 0 || (tick >= 0 && tick < end)) this.#ticks(text, from, tick, end)
      if (newline < 0) return
      this.#endLine()
      from = newline + 1
      if (tick >= 0 && tick < from) tick = text.indexOf("`", from)
    }
  }

  /** Counts the runs of backticks of a part of a line; `tick` is the first that may be in it. */
  #ticks(text: string, from: number, tick: number, end: number): void {
    if (this.#run > 0 && text.charCodeAt(from) !== 0x60) this.#endRun()
    for (let at = tick; at >= 0 && at < end; at = text.indexOf("`", at)) {
      const start = at
      while (at < end && text.charCodeAt(at) === 0x60) at += 1
      this.#run += at - start
      if (at < end) this.#endRun()
    }
  }

  #endRun(): void {
    if (this.#open === undefined) this.#close(Math.min(this.#run, longestRun))
    else if (this.#open.inLine && this.#closesInLine(this.#run)) this.#open = undefined
    this.#run = 0
  }

  /** Another run of the same length makes inline code of all that stands between the two. */
  #close(run: number): void {
    const at = this.#runs.indexOf(run)
    if (at < 0) this.#runs.push(run)
    else this.#runs.length = at
  }

  /** The unclosed runs, with the one at the end of what has been seen. */
  #runsNow(): ReadonlyArray<number> {
    if (this.#run === 0) return this.#runs
    const run = Math.min(this.#run, longestRun)
    const at = this.#runs.indexOf(run)
    return at < 0 ? [...this.#runs, run] : this.#runs.slice(0, at)
  }

  #closesInLine(run: number): boolean {
    return Math.min(run, longestRun) === Math.min(this.#open!.run.length, longestRun)
  }

  #endLine(): void {
    const open = this.#open
    const closed = open !== undefined && closes(this.#line, open.run)
    if (this.#run > 0) this.#endRun()
    if (closed) this.#open = undefined
    else if (open === undefined) this.#open = opened(this.#line, this.#runs)
    this.#line = ""
    if (this.#runs.length > 0) this.#runs = []
  }
}

const unclosed = (runs: ReadonlyArray<number>): number | undefined => runs.find((run) => run >= 3)

const tildes = (line: string): string | undefined => /^ {0,3}(~{3,})/.exec(line)?.[1]

/** What a line with these unclosed runs leaves open. */
const opened = (line: string, runs: ReadonlyArray<number>): Open | undefined => {
  const run = unclosed(runs)
  // Behind the fence of a block there is no other backtick in its line.
  const fence = tildes(line) ?? (run === undefined ? undefined : /^ {0,3}(`{3,})[^`]*$/.exec(line)?.[1])
  if (fence !== undefined) return { run: fence, inLine: false }
  return run === undefined ? undefined : { run: "`".repeat(run), inLine: true }
}

const closes = (line: string, open: string): boolean => {
  const run = /^ {0,3}(`{3,}|~{3,})\s*$/.exec(line)?.[1]
  return run !== undefined && run[0] === open[0] && run.length >= open.length
}
