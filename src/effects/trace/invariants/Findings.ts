/** Collects what is wrong with a trace, with its place. Keeps the first ones and counts the rest. */
import type { InvariantId } from "./Invariants.ts"

export interface Violation {
  readonly invariant: InvariantId
  /** Of the event it was noticed at; neither for what the trace as a whole lacks. */
  readonly seq?: number
  /** Counted from 1. */
  readonly line?: number
  readonly message: string
}

const mostKept = 100

export class Findings {
  readonly kept: Array<Violation> = []
  count = 0
  /** Where the reading is. */
  line: number | undefined
  seq: number | undefined

  readonly add = (invariant: InvariantId, message: string): void => {
    this.count += 1
    if (this.kept.length >= mostKept) return
    this.kept.push({
      invariant,
      ...(this.seq === undefined ? {} : { seq: this.seq }),
      ...(this.line === undefined ? {} : { line: this.line }),
      message
    })
  }

  readonly unless = (holds: boolean, invariant: InvariantId, message: () => string): void => {
    if (!holds) this.add(invariant, message())
  }
}
