/** T12 and T13: what enters the context, where, and under which name. */
import type { EventData } from "../../../actors/TraceEvent.ts"
import type { Findings } from "./Findings.ts"
import type { KnownRecord, RunFacts } from "./RunFacts.ts"

/** Events that say what the next span holds. The turns of the model are T18's. */
const names: Readonly<Record<string, (record: KnownRecord) => string | undefined>> = {
  message_committed: ({ data }) => (data as EventData<"message_committed">).role,
  tool_result_committed: () => "tool_result",
  feedback_committed: () => "feedback",
  run_resumed: () => "history",
  context_compacted: () => "history"
}

interface Named {
  readonly role: string
  readonly step: string
}

export class Context {
  readonly #findings: Findings
  readonly #facts: RunFacts
  #named: Named | undefined
  /** What run_resumed says is in the history that follows it. */
  #resumed: EventData<"run_resumed"> | undefined

  constructor(findings: Findings, facts: RunFacts) {
    this.#findings = findings
    this.#facts = facts
  }

  readonly see = (record: KnownRecord) => {
    if (record.event_type === "run_started") this.#facts.length = record.data.committed_len
    // A talk that handed over is left behind: what follows is another context.
    if (record.event_type === "routed") this.#facts.length = record.data.committed_len
    if (record.event_type === "session_state_changed") return this.#span(record.step, record.data)
    if (record.event_type === "run_resumed") this.#resumed = record.data
    const name = names[record.event_type]
    const role = name?.(record)
    const named = this.#named
    if (
      named !== undefined &&
      record.event_type !== "late_outcome" &&
      (role !== named.role || record.step !== named.step)
    ) {
      this.#findings.add("T13", `${named.role} in step ${named.step} was named, but no span followed`)
      this.#named = undefined
    }
    if (role !== undefined) this.#named = { role, step: record.step }
  }

  #history({ kept_state, spans = [] }: EventData<"run_resumed">, start: number, end: number) {
    if (spans.length === 0) {
      if (kept_state === "loaded") this.#findings.add("T12", "a state was loaded, and no span says what of it")
      return
    }
    const joined = spans.every(([from, to], at) => from === (at === 0 ? start : spans[at - 1]![1]) && to >= from)
    if (!joined || spans.at(-1)![1] !== end) {
      this.#findings.add("T12", `the spans of run_resumed do not join from ${start} to ${end}`)
    }
  }

  #span(step: string, { committed_len, role, span: [start, end] }: EventData<"session_state_changed">) {
    const { add } = this.#findings
    const facts = this.#facts
    const named = this.#named
    if (facts.length !== undefined && start !== facts.length)
      add("T12", `a span starts at ${start}, the context ended at ${facts.length}`)
    else if (end < start || committed_len !== end) add("T12", `the span ${start} to ${end} ends at ${committed_len}`)
    facts.length = committed_len
    if (this.#resumed !== undefined) this.#history(this.#resumed, start, end)
    this.#resumed = undefined
    const expected = role.startsWith("assistant_") ? undefined : role
    if (named?.role !== expected || (named !== undefined && named.step !== step)) {
      add("T13", `a span of ${role} in step ${step}, and nothing says what it holds`)
    }
    this.#named = undefined
  }
}
