/** T10 and T11: what comes first, what comes last. Learns from the first events what the run is. */
import { terminalTypes } from "../../../actors/TraceEvent.ts"
import type { Findings } from "./Findings.ts"
import type { KnownRecord, RunFacts } from "./RunFacts.ts"
import { knownTool, runGatesOf } from "./RunGates.ts"

export class Frame {
  readonly #findings: Findings
  readonly #facts: RunFacts
  /** Something came after the terminal event: nothing of it can be judged. */
  over = false

  constructor(findings: Findings, facts: RunFacts) {
    this.#findings = findings
    this.#facts = facts
  }

  /** @param place how many events came before */
  readonly see = (record: KnownRecord, place: number): void => {
    const { add } = this.#findings
    const facts = this.#facts
    const { event_type: type, seq } = record
    if (facts.terminal !== undefined) {
      if (!this.over) add("T11", `${type} comes after ${facts.terminal}`)
      this.over = true
      return
    }
    const expected = place === 0 ? "run_started" : place === 1 ? "provenance" : undefined
    const opening = type === "run_started" || type === "provenance"
    if ((expected !== undefined && type !== expected) || (expected === undefined && opening)) {
      add("T10", `${type} is event ${seq}`)
    }
    if (type === "run_resumed") {
      const begun = facts.modelCalls > 0 || facts.length !== facts.started?.committed_len
      if (begun || facts.resumed !== undefined) add("T10", "the run had begun before it was resumed")
      facts.resumed = record.data
      facts.repairs = facts.spent("repairs")
    }
    if (type === "run_started") facts.started ??= record.data
    if (place === 0) facts.beganAt = record.t_ms
    if (type === "provenance") {
      facts.gates ??= runGatesOf(record.data)
      for (const tool of record.data.tools) facts.tools.set(tool.name, knownTool(tool))
    }
    if (terminalTypes.has(type)) facts.terminal = type
  }
}
