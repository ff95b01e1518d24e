/** T65 to T67: what may leave the context, and what has to come back. Sees each event before the context's length is moved on. */
import type { EventData } from "../../../actors/TraceEvent.ts"
import type { Findings } from "./Findings.ts"
import type { KnownRecord, RunFacts } from "./RunFacts.ts"

type Compacted = EventData<"context_compacted">

export class Compactions {
  readonly #findings: Findings
  readonly #facts: RunFacts
  /** Does the run compact at all, and how much can its model hold? Unknown in traces that do not say so. */
  #allowed: boolean | undefined
  #capacity: number | undefined
  /** Where system and tools end, once a span of this trace has told. */
  #prefix: number | undefined
  /** Where the last message of the user begins, while its place is known. */
  #user: number | undefined
  #removed: number | undefined
  /** What was said to be back, until its span has come. */
  #coming: Compacted | undefined
  #unfinished = false

  constructor(findings: Findings, facts: RunFacts) {
    this.#findings = findings
    this.#facts = facts
  }

  readonly see = (record: KnownRecord) => {
    switch (record.event_type) {
      case "provenance": {
        const capacity = record.data.model["contextTokens"]
        this.#allowed = record.data.context === undefined ? undefined : record.data.context.on_full === "compact"
        this.#capacity = typeof capacity === "number" ? capacity : undefined
        return
      }
      case "session_state_changed":
        return this.#span(record.data)
      case "context_compacted":
        return this.#compacted(record.data)
      case "model_call_started":
        this.#findings.unless(!this.#unfinished, "T67", () => "a turn starts, and not all that was kept is back")
    }
  }

  #span({ role, span: [start, end] }: EventData<"session_state_changed">) {
    if (role === "system") this.#prefix = end
    if (role === "user") this.#user = start
    const coming = this.#coming
    this.#coming = undefined
    if (coming === undefined || role !== "history") return
    const joined = coming.kept.every(([from, to], at) => {
      const before = coming.kept[at - 1]
      return to >= from && from === (before === undefined ? start : before[1])
    })
    const last = coming.kept.at(-1)?.[1] ?? start
    this.#findings.unless(
      joined && last === end,
      "T67",
      () => `what came back does not join to the span ${start} to ${end}`
    )
  }

  #compacted(data: Compacted) {
    const { add, unless } = this.#findings
    const facts = this.#facts
    const { before, dropped, entries, exchanges, kept, left, needed, prefix, removed } = data
    unless(this.#allowed !== false, "T65", () => "the context is compacted in a run that does not do that")
    unless(
      this.#capacity === undefined || before + needed > this.#capacity,
      "T65",
      () => `there was room: ${before} tokens and ${needed} more fit ${this.#capacity}`
    )
    if (before !== facts.length) add("T65", `the context held ${facts.length} tokens, not ${before}`)
    unless(
      prefix === dropped[0] && (this.#prefix === undefined || prefix === this.#prefix),
      "T66",
      () => `system and tools end at ${this.#prefix ?? prefix}, and what was removed begins at ${dropped[0]}`
    )
    unless(
      dropped[1] > dropped[0] && dropped[1] <= (this.#user ?? before),
      "T66",
      () =>
        `${dropped[0]} to ${dropped[1]} was removed, of ${before} tokens with the last task at ${this.#user ?? before}`
    )
    unless(
      exchanges >= 1 && entries >= exchanges && removed >= exchanges + (this.#removed ?? 0),
      "T66",
      () => `${entries} messages in ${exchanges} exchanges, ${removed} in all after ${this.#removed ?? 0}`
    )
    unless(!this.#unfinished, "T67", () => "the context is compacted again, and not all that was kept is back")
    if (kept.length === 0 && left === 0) add("T67", "nothing came back, not even a marker")
    this.#removed = removed
    this.#coming = data
    this.#unfinished = left > 0
    // Evaluated again, messages can take other numbers of tokens: where the task is now is known no longer.
    this.#user = undefined
    facts.length = prefix
  }
}
