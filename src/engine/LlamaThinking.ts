/**
 * A budget of its own for reasoning: counts the tokens of the turn's block and, when they are used up, closes it in the model's
 * place, once. The answer that follows has the rest of the turn.
 */
import type { ThinkingBudget } from "./Generation.ts"
import type { Detokenize } from "./LlamaText.ts"
import type { Tokenizer } from "./LlamaTokenizer.ts"

export class ThinkClock {
  readonly #budget: ThinkingBudget
  readonly #tokenizer: Tokenizer
  readonly #detokenize: Detokenize
  #before: ReadonlyArray<number>
  #state: "start" | "inside" | "over"
  #text = ""
  #count = 0
  /** Tokens of reasoning at the forced close; absent when there was none. */
  closed: number | undefined

  constructor(
    budget: ThinkingBudget,
    parts: { readonly tokenizer: Tokenizer; readonly detokenize: Detokenize },
    before: ReadonlyArray<number>
  ) {
    this.#budget = budget
    this.#tokenizer = parts.tokenizer
    this.#detokenize = parts.detokenize
    this.#before = before
    this.#state = budget.opened ? "inside" : "start"
  }

  /** Takes a generated token; returns what follows it when the reasoning ends here. */
  take(token: number): ReadonlyArray<number> | undefined {
    if (this.#state === "over") return undefined
    this.#text += this.#detokenize([token], this.#before)
    this.#before = [token]
    const { close, maxTokens, open } = this.#budget
    if (this.#state === "start") {
      const text = this.#text.trimStart()
      if (text.startsWith(open)) this.#state = "inside"
      else if (!open.startsWith(text)) this.#state = "over"
    }
    if (this.#state !== "inside") return undefined
    this.#count += 1
    if (this.#text.includes(close)) {
      this.#state = "over"
      return undefined
    }
    this.#text = this.#text.slice(-(open.length + close.length))
    if (this.#count < maxTokens) return undefined
    this.#state = "over"
    this.closed = this.#count
    return this.#tokenizer.encode(`\n${close}\n\n`, true, false)
  }
}
