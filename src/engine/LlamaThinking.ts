/** The budget of reasoning over a model's tokens: their text goes to the clock, what it writes comes back as tokens. */
import type { ThinkingBudget } from "./Generation.ts"
import type { Detokenize } from "./LlamaText.ts"
import type { Tokenizer } from "./LlamaTokenizer.ts"
import { ThinkClock } from "./ThinkClock.ts"

export class TokenClock {
  readonly #clock: ThinkClock
  readonly #tokenizer: Tokenizer
  readonly #detokenize: Detokenize
  #before: ReadonlyArray<number>

  constructor(
    budget: ThinkingBudget,
    parts: { readonly tokenizer: Tokenizer; readonly detokenize: Detokenize },
    before: ReadonlyArray<number>
  ) {
    this.#clock = new ThinkClock(budget)
    this.#tokenizer = parts.tokenizer
    this.#detokenize = parts.detokenize
    this.#before = before
  }

  /** Tokens of reasoning at the forced close; absent when there was none. */
  get closed(): number | undefined {
    return this.#clock.closed
  }

  /** Takes a generated token; returns what follows it when the reasoning ends here. */
  take(token: number): ReadonlyArray<number> | undefined {
    const close = this.#clock.take(this.#detokenize([token], this.#before))
    this.#before = [token]
    return close === undefined ? undefined : this.#tokenizer.encode(close, true, false)
  }
}
