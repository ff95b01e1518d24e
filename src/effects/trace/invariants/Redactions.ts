/** T64: what redaction rules replaced, as the line says it and as it stands there. */
import { marked } from "../../../actors/Redaction.ts"
import { at, redactedIn } from "../Concealed.ts"
import type { TraceRecord } from "../TraceReader.ts"
import type { Findings } from "./Findings.ts"
import type { RunFacts } from "./RunFacts.ts"

export class Redactions {
  readonly #findings: Findings
  readonly #facts: RunFacts

  constructor(findings: Findings, facts: RunFacts) {
    this.#findings = findings
    this.#facts = facts
  }

  readonly see = (record: TraceRecord): void => {
    const { add } = this.#findings
    const fields = redactedIn(record)
    if (fields === undefined || fields.length === 0) {
      add("T64", "it does not say what was redacted")
      return
    }
    if (new Set(fields.map((field) => field.at)).size < fields.length) add("T64", "a place is named twice")
    for (const field of fields) {
      const problem = this.#problem(at(record.data, field.at), field.count)
      if (problem !== undefined) add("T64", `${field.at}: ${problem}`)
    }
  }

  /** What stands there may have held such marks before: there are at least as many as were made. */
  #problem(value: unknown, count: number): string | undefined {
    if (value === undefined) return "there is no such field"
    const rules = this.#facts.started?.redact ?? []
    const names = [...JSON.stringify(value).matchAll(marked)].map(([, name]) => name!)
    const made = names.filter((name) => rules.includes(name)).length
    if (count === 0 || made < count)
      return `${count} replacements are said, and ${made} marks of the run's rules are there`
    return undefined
  }
}
