/** T71: a run inside a run, as either record tells of it. */
import type { EventData } from "../../../actors/TraceEvent.ts"
import type { Findings } from "./Findings.ts"
import type { KnownRecord, RunFacts } from "./RunFacts.ts"

export class ChildRuns {
  readonly #findings: Findings
  readonly #facts: RunFacts
  readonly #named = new Set<string>()
  #own = ""
  #depth = 0

  constructor(findings: Findings, facts: RunFacts) {
    this.#findings = findings
    this.#facts = facts
  }

  readonly see = (record: KnownRecord): void => {
    if (record.event_type === "run_started") {
      const { parent } = record.data
      this.#own = record.run_id
      this.#depth = parent?.depth ?? 0
      const fits = parent === undefined || (parent.run !== record.run_id && parent.depth >= 1)
      this.#findings.unless(fits, "T71", () => "the run lies in itself, or in none")
    }
    if (record.event_type === "child_run_started") this.#started(record.step, record.data)
  }

  #started(step: string, { call: id, depth, run, tool }: EventData<"child_run_started">) {
    const call = this.#facts.call(id)
    const running = call?.execution === "running" && call.step === step && call.tool === tool
    this.#findings.unless(running, "T71", () => `${run} belongs to ${id} of ${tool}, which is not being executed`)
    const fresh = run !== this.#own && !this.#named.has(run) && depth === this.#depth + 1
    this.#findings.unless(fresh, "T71", () => `${run} at depth ${depth} is named before, or lies elsewhere`)
    this.#named.add(run)
  }
}
