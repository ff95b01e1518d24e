/**
 * Where a person types: one line editor for the whole conversation, silent while something else has the screen. What is
 * typed meanwhile is kept for the next message, but answers no question that was asked after it. Messages may have several
 * lines. The history of lines is in memory and goes with the program: what is said to a model is content.
 */
import { writeSync } from "node:fs"
import { createInterface, type Interface } from "node:readline"
import { Writable } from "node:stream"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Ask } from "./Approvers.ts"
import { askForMarks, ChatPaste, noMoreMarks } from "./ChatPaste.ts"
import { goesOn } from "./ChatWords.ts"
import type { Screen } from "./Screen.ts"

export interface ChatInput {
  /** The next message; `undefined` when there will be none: Ctrl-D, or Ctrl-C twice where nothing was typed. */
  readonly message: Effect.Effect<string | undefined>
  /** One line in answer to a question. */
  readonly ask: Ask
}

export interface ChatInputOptions {
  readonly screen: Screen
  readonly prompt: string
  /** Words to complete, each whole. */
  readonly words: ReadonlyArray<string>
  /**
   * Ctrl-C while no message is asked for.
   * @param leave nobody would be surprised if the program ended
   * @returns whether there was something to stop
   */
  readonly interrupt: (leave: boolean) => boolean
}

/** Who waits for a line. */
interface Waiting {
  readonly kind: "message" | "question"
  readonly done: (line: string | undefined) => void
}

/** The terminal, as far as the editor may be seen on it. */
class Shown extends Writable {
  readonly isTTY = true
  silent = true

  constructor() {
    super({ decodeStrings: false })
    process.stdout.on("resize", this.#resized)
  }

  get columns(): number {
    return process.stdout.columns
  }

  override _write(text: string, _encoding: BufferEncoding, done: () => void): void {
    if (!this.silent) process.stdout.write(text)
    done()
  }

  override _destroy(_error: Error | null, done: () => void): void {
    process.stdout.off("resize", this.#resized)
    done()
  }

  readonly #resized = (): void => void this.emit("resize")
}

const further = "… "

/** Lines that a person may still go back to. */
const historySize = 500

class Editor {
  readonly #options: ChatInputOptions
  readonly #shown = new Shown()
  readonly #paste = new ChatPaste((on) => this.#setRawMode(on))
  readonly #lines: Interface
  /** Whole lines that were typed while nobody waited for one. */
  #ahead: Array<string> = []
  /** Lines of a message that goes on. */
  #begun: Array<string> = []
  /** A line that a question interrupted. */
  #aside = ""
  #waiting: Waiting | undefined
  /** A message was asked for: the program is at work for somebody who talks with it. */
  #talking = false
  /** The last Ctrl-C stopped nothing, and it was said that the next one leaves. */
  #leaving = false
  #closed = false
  /** There is no terminal any more. */
  #gone = false

  constructor(options: ChatInputOptions) {
    this.#options = options
    process.stdin.setEncoding("utf8").pipe(this.#paste)
    process.stdin.on("error", this.#lost)
    this.#lines = createInterface({
      input: this.#paste,
      output: this.#shown,
      terminal: true,
      historySize,
      removeHistoryDuplicates: true,
      completer: (line: string) => [options.words.filter((word) => line !== "" && word.startsWith(line)), line]
    })
    this.#lines.on("line", this.#entered)
    this.#lines.on("SIGINT", this.#interrupted)
    this.#lines.on("SIGTSTP", this.#stopped)
    this.#lines.on("close", this.#ended)
    // Answers to questions are no messages.
    this.#lines.on("history", (history) => {
      if (this.#waiting?.kind === "question") history.shift()
    })
    process.on("exit", this.#leave)
    process.on("SIGCONT", this.#continued)
    process.stdout.write(askForMarks)
  }

  readonly message = (done: (line: string | undefined) => void): void => {
    const typed = this.#takeTyped()
    this.#talking = true
    this.#leaving = false
    this.#waiting = { kind: "message", done }
    this.#begun = []
    if (this.#closed) this.#finish(undefined)
    else if (!this.#addedAhead()) this.#show(this.#promptNow())
    this.#type(typed)
  }

  readonly question = (text: string, done: (line: string | undefined) => void): void => {
    this.#aside = this.#takeTyped()
    this.#ahead = []
    this.#waiting = { kind: "question", done }
    const at = text.lastIndexOf("\n") + 1
    this.#options.screen.write(text.slice(0, at))
    if (this.#closed) this.#finish(undefined)
    else this.#show(text.slice(at))
  }

  /** Nobody waits any more. */
  readonly give = (): void => {
    const waiting = this.#waiting
    if (waiting === undefined) return
    this.#waiting = undefined
    if (!this.#shown.silent) process.stdout.write("\n")
    this.#rest()
  }

  readonly close = (): void => {
    this.#waiting = undefined
    process.off("exit", this.#leave)
    process.off("SIGCONT", this.#continued)
    this.#lines.close()
    process.stdin.unpipe(this.#paste)
    process.stdin.pause()
    this.#shown.destroy()
    process.stdout.write(noMoreMarks)
  }

  /** The process ends at once: the terminal is left as it was found. */
  readonly #leave = (): void => {
    try {
      writeSync(1, `${noMoreMarks}\u001b[0 k`)
    } catch {
      // Nobody is there to see it.
    }
  }

  /** What a terminal that is gone says to everything. */
  readonly #lost = (): void => {
    if (this.#gone) return
    this.#gone = true
    this.#lines.close()
  }

  #setRawMode(on: boolean): void {
    if (!this.#gone) process.stdin.setRawMode(on)
  }

  /** Ctrl-Z: the shell gets the terminal as it was found. */
  readonly #stopped = (): void => {
    process.stdout.write(noMoreMarks)
    this.#setRawMode(false)
    process.kill(process.pid, "SIGTSTP")
  }

  /** The shell has changed the terminal meanwhile, whoever stopped this process. */
  readonly #continued = (): void => {
    if (this.#closed) return
    this.#setRawMode(false)
    this.#setRawMode(true)
    process.stdout.write(askForMarks)
    this.#lines.prompt(true)
  }

  readonly #entered = (line: string): void => {
    if (this.#waiting === undefined) this.#ahead.push(line)
    else if (this.#waiting.kind === "question") this.#finish(line)
    else if (!this.#added(line)) this.#show(this.#promptNow())
  }

  #promptNow(): string {
    return this.#begun.length === 0 ? this.#options.prompt : further
  }

  /** Takes the lines that are there already, up to the end of a message; true if there was one. */
  #addedAhead(): boolean {
    for (let line = this.#ahead.shift(); line !== undefined; line = this.#ahead.shift()) {
      process.stdout.write(`${this.#promptNow()}${line}\n`)
      if (this.#added(line)) return true
    }
    return false
  }

  /** A line of a message; true if it was the last one. */
  #added(line: string): boolean {
    const more = goesOn(line)
    this.#begun.push(this.#paste.expanded(more ? line.slice(0, -1) : line))
    if (more) return false
    const message = this.#begun.join("\n")
    this.#begun = []
    if (message.trim() === "") return false
    this.#finish(message)
    return true
  }

  readonly #interrupted = (): void => {
    if (this.#waiting?.kind !== "message") {
      this.#ahead = []
      this.#takeTyped()
      this.#aside = ""
      if (this.#options.interrupt(!this.#talking || this.#leaving)) return
      this.#leaving = true
      this.#options.screen.line(this.#onceMore())
      return
    }
    const empty = this.#lines.line === "" && this.#begun.length === 0
    if (empty && this.#leaving) {
      process.stdout.write("\n")
      this.#finish(undefined)
      return
    }
    this.#leaving = empty
    this.#lines.write(null, { ctrl: true, name: "e" })
    process.stdout.write(empty ? `\n${this.#onceMore()}\n` : "^C\n")
    this.#shown.silent = true
    this.#takeTyped()
    this.#begun = []
    this.#show(this.#options.prompt)
  }

  #onceMore(): string {
    return this.#options.screen.paint.dim("  Ctrl-C once more leaves")
  }

  readonly #ended = (): void => {
    this.#closed = true
    if (this.#waiting === undefined) return
    process.stdout.write("\n")
    this.#finish(undefined)
  }

  #finish(line: string | undefined): void {
    const done = this.#waiting?.done
    this.#rest()
    this.#waiting = undefined
    done?.(line)
  }

  /** Somebody else has the screen. */
  #rest(): void {
    this.#shown.silent = true
    const aside = this.#aside
    this.#aside = ""
    this.#type(aside)
  }

  #show(prompt: string): void {
    this.#shown.silent = false
    this.#lines.setPrompt(prompt)
    this.#lines.prompt()
  }

  #type(text: string): void {
    if (!this.#closed && text !== "") this.#lines.write(text)
  }

  /** What stands in the editor, which is empty then. */
  #takeTyped(): string {
    if (this.#closed) return ""
    const { line } = this.#lines
    const { silent } = this.#shown
    this.#shown.silent = true
    // The editor goes back as many rows as prompt and line took when it shows the next: none of them is its own any more.
    this.#lines.setPrompt("")
    this.#lines.write(null, { ctrl: true, name: "e" })
    this.#lines.write(null, { ctrl: true, name: "u" })
    this.#shown.silent = silent
    return line
  }
}

/** Takes the terminal until the scope closes. */
export const open = (options: ChatInputOptions): Effect.Effect<ChatInput, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => new Editor(options)),
      (editor) => Effect.sync(editor.close)
    ),
    (editor): ChatInput => {
      const waiting = (wait: (done: (line: string | undefined) => void) => void) =>
        Effect.callback<string | undefined>((resume) => {
          wait((line) => resume(Effect.succeed(line)))
          return Effect.sync(editor.give)
        })
      const { screen } = options
      return {
        message: Effect.suspend(() => {
          screen.progress("")
          return waiting(editor.message)
        }),
        ask: (question) =>
          Effect.suspend(() => {
            screen.hold(true)
            return waiting((done) => editor.question(question, done))
          }).pipe(Effect.ensuring(Effect.sync(() => screen.hold(false))))
      }
    }
  )
