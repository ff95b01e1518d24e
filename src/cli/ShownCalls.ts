/** Which calls are on the screen: for whoever asks about one, and for lines that name a call only where it is not right above. */
import * as Effect from "effect/Effect"

export class ShownCalls {
  readonly #shown = new Set<string>()
  /** The call whose tool and arguments were the last thing printed. */
  #last: string | undefined

  /** A call's tool and arguments were printed just now. */
  add(callId: string): void {
    this.#last = callId
    this.#shown.add(callId)
  }

  /** Is the call right above the line that is printed next? Above the one after that there is none. */
  isAbove(callId: string): boolean {
    const above = this.#last === callId
    this.#last = undefined
    return above
  }

  /** What comes next is another run, whose calls have the same names. */
  forget(): void {
    this.#shown.clear()
  }

  /**
   * Returns once the call is on the screen, so that a question about it comes after it. Events run behind the run, and some
   * calls have none (a resumed run does not propose its open ones anew): it gives way often enough, and no longer.
   */
  readonly caughtUp = (callId: string, patience = 200): Effect.Effect<void> =>
    Effect.suspend(() =>
      this.#shown.has(callId) || patience === 0
        ? Effect.void
        : Effect.andThen(Effect.yieldNow, this.caughtUp(callId, patience - 1))
    )
}
