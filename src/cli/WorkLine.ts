/**
 * The line that says what a run is at and for how long: one kind of work at a time, and where there is no other, the tools
 * that run. Says nothing else, and nothing over text that is still being written.
 */
import { duration } from "./Printable.ts"
import type { Screen } from "./Screen.ts"

export interface WorkLineOptions {
  /** Text is open: the cursor is inside a line of it. */
  readonly inText: () => boolean
  /** Nothing is said of work. */
  readonly quiet?: boolean
}

export class WorkLine {
  readonly #screen: Screen
  readonly #inText: () => boolean
  readonly #quiet: boolean
  /** What is going on, since when, and in which words. */
  #work: { readonly kind: string; readonly text: string; readonly since: number } | undefined
  /** Tools that run, by call. */
  readonly #running = new Map<string, string>()

  constructor(screen: Screen, { inText, quiet = false }: WorkLineOptions) {
    this.#screen = screen
    this.#inText = inText
    this.#quiet = quiet
  }

  /** Shows again where things stand, with the time that has passed. Somebody calls it now and then. */
  readonly tick = (): void => {
    if (this.#work === undefined || this.#inText() || this.#quiet) return
    const { since, text } = this.#work
    const seconds = Math.floor((this.#screen.now() - since) / 1000)
    this.#screen.progress(seconds < 1 ? `${text} …` : `${text} … ${duration(1000 * seconds)}`)
  }

  /** Work goes on, or begins. Its time runs as long as it is of the same kind, whatever the words. */
  doing(kind: string, text: string): void {
    const since = this.#work?.kind === kind ? this.#work.since : this.#screen.now()
    this.#work = { kind, text, since }
    this.tick()
  }

  /** Something was said, or is over: what is left is the tools that still run. */
  rest(): void {
    const tools = [...this.#running.values()]
    if (tools.length > 0) {
      this.doing("tools", `${tools.join(", ")} ${tools.length === 1 ? "is" : "are"} running`)
      return
    }
    this.#work = undefined
    if (!this.#inText()) this.#screen.progress("")
  }

  /** @param tool its name, as it may be shown */
  started(callId: string, tool: string): void {
    this.#running.set(callId, tool)
    this.rest()
  }

  /** Is seen with the next `rest`. */
  finished(callId: string): void {
    this.#running.delete(callId)
  }

  /** The run is over, and with it all its tools. Is seen with the next `rest`. */
  over(): void {
    this.#running.clear()
  }
}
