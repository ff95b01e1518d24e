/** T70: engines that died and were opened again. */
import { engineTries } from "../../EngineTries.ts"
import type { Findings } from "./Findings.ts"
import type { KnownRecord } from "./RunFacts.ts"

export class Restarts {
  readonly #findings: Findings
  #longest = 0
  #restarts = 0
  /** A talk was handed over: what was told to one context is told to the other as well. */
  #elsewhere = false
  /** The turn that was begun last, and how often turns were begun a second time. */
  #begun = -1
  #again = 0

  constructor(findings: Findings) {
    this.#findings = findings
  }

  readonly see = ({ data, event_type: type }: KnownRecord): void => {
    const { unless } = this.#findings
    if (type === "run_started" || type === "session_state_changed") {
      this.#longest = Math.max(this.#longest, data.committed_len)
    } else if (type === "model_call_started" && data.attempt === 0) {
      if (data.turn === this.#begun) this.#again++
      this.#begun = data.turn
      unless(this.#again <= engineTries, "T70", () => `turn ${data.turn} is start ${this.#again} that is not the first`)
    } else if (type === "engine_restarted") {
      const { restarts, tokens } = data
      const more = restarts > this.#restarts || (this.#elsewhere && restarts === this.#restarts)
      unless(more, "T70", () => `restart ${restarts} after restart ${this.#restarts}`)
      unless(tokens <= this.#longest, "T70", () => `${tokens} tokens came back, the context had ${this.#longest}`)
      this.#restarts = restarts
      this.#elsewhere = false
    } else if (type === "routed") this.#elsewhere = data.by === "chat"
  }
}
