/** T71: a run inside a run, as either record tells of it. */
import type { EventData } from "../../../actors/TraceEvent.ts"
import type { Findings } from "./Findings.ts"
import type { KnownRecord, RunFacts } from "./RunFacts.ts"

export class ChildRuns {
  readonly #findings: Findings
  readonly #facts: RunFacts
  readonly #named = new Set<string>()
  /** Tools whose calls are runs. Older records do not say so. */
  #runs: ReadonlySet<string> = new Set()
  /** Calls that need not name a run any more: one is named, or there was another try, and any of them can be what succeeded. */
  readonly #told = new Set<string>()
  #own = ""
  #depth = 0

  constructor(findings: Findings, facts: RunFacts) {
    this.#findings = findings
    this.#facts = facts
  }

  readonly see = (record: KnownRecord) => {
    if (record.event_type === "run_started") {
      const { parent } = record.data
      this.#own = record.run_id
      this.#depth = parent?.depth ?? 0
      const fits = parent === undefined || (parent.run !== record.run_id && parent.depth >= 1)
      this.#findings.unless(fits, "T71", () => "the run lies in itself, or in none")
    }
    switch (record.event_type) {
      case "provenance":
        this.#runs = new Set(record.data.tools.flatMap(({ name, run }) => (run === true ? [name] : [])))
        return
      case "child_run_started":
        return this.#started(record.step, record.data)
      case "retry_scheduled":
      case "effect_probed":
        this.#told.add(record.data.call)
        return
      case "tool_execution_finished":
        return this.#finished(record.data)
    }
  }

  #finished({ call, ok, tool }: EventData<"tool_execution_finished">) {
    const owed = ok && this.#runs.has(tool) && !this.#told.has(call)
    this.#findings.unless(!owed, "T71", () => `${call} of ${tool} succeeded, and the run that it is was never named`)
  }

  #started(step: string, { call: id, depth, run, tool }: EventData<"child_run_started">) {
    const call = this.#facts.call(id)
    const running = call?.execution === "running" && call.step === step && call.tool === tool
    this.#findings.unless(running, "T71", () => `${run} belongs to ${id} of ${tool}, which is not being executed`)
    const fresh = run !== this.#own && !this.#named.has(run) && depth === this.#depth + 1
    this.#findings.unless(fresh, "T71", () => `${run} at depth ${depth} is named before, or lies elsewhere`)
    this.#named.add(run)
    this.#told.add(id)
  }
}
