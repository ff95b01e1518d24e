/**
 * A budget of its own for reasoning, over text: counts the tokens of the turn's reasoning and says what to write in the
 * model's place when they are used up. The answer that follows has the rest of the turn. Knows no token ids and no family.
 */
import type { ThinkingBudget } from "./Generation.ts"

/**
 * `start`: reasoning may begin here. `inside`: it has. `over`: no more of it in this turn, or none that counts. `spent`: it
 * was closed in the model's place, and may begin once more only to be closed for good.
 */
type State = "start" | "inside" | "over" | "spent"

export class ThinkClock {
  readonly #budget: ThinkingBudget
  #state: State
  /** What may still become a tag. */
  #text = ""
  #count = 0
  /** Tokens of reasoning at the forced close; absent when there was none. */
  closed: number | undefined

  constructor(budget: ThinkingBudget) {
    this.#budget = budget
    this.#state = budget.opened ? "inside" : "start"
  }

  /** Takes the text of a generated token; returns what is to be written behind it when the reasoning ends here. */
  take(text: string): string | undefined {
    if (this.#state === "over") return undefined
    this.#text += text
    if (this.#state !== "inside") this.#begin()
    if (this.#state !== "inside") return undefined
    const { close, maxTokens } = this.#budget
    if (this.closed !== undefined) {
      this.#state = "over"
      return this.#budget.again
    }
    this.#count += 1
    const end = this.#text.indexOf(close)
    if (end >= 0) {
      // Another block may follow at once, and has what is left of the budget.
      this.#state = "start"
      this.#text = this.#text.slice(end + close.length)
      this.#begin()
      return undefined
    }
    this.#text = this.#text.slice(-close.length)
    if (this.#count < maxTokens) return undefined
    this.closed = this.#count
    this.#state = this.#budget.again === undefined ? "over" : "spent"
    this.#text = ""
    return this.#budget.closing ?? `\n${close}\n\n`
  }

  /** Does a block begin in the text that is held? */
  #begin(): void {
    const { anywhere, open } = this.#budget
    if (anywhere === true) {
      const at = this.#text.indexOf(open)
      if (at >= 0) this.#state = "inside"
      this.#text = at >= 0 ? this.#text.slice(at + open.length) : this.#text.slice(1 - open.length)
      return
    }
    const text = this.#text.trimStart()
    if (text.startsWith(open)) this.#state = "inside"
    else if (!open.startsWith(text)) this.#state = "over"
  }
}
