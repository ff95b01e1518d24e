/** Counts the tokens of a turn for somebody who looks on: says them often enough, and no oftener. Measures nothing else. */
import { nowMillis, type RunContext } from "./RunContext.ts"

/** Milliseconds between two `Generated` of a turn. */
const pauseMillis = 200

export class Meter {
  readonly #run: RunContext
  readonly #turn: number
  #tokens = 0
  #first: number | undefined
  #told = 0

  constructor(run: RunContext, turn: number) {
    this.#run = run
    this.#turn = turn
  }

  readonly push = (tokens: number): void => {
    const now = nowMillis(this.#run.clock)
    this.#first ??= now
    this.#tokens += tokens
    const millis = now - this.#first
    if (millis - this.#told < pauseMillis) return
    this.#told = millis
    this.#run.emit({ _tag: "Generated", turn: this.#turn, tokens: this.#tokens, millis, ended: false })
  }
}
