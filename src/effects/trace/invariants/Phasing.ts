/** T68 and T69: which phase a turn is in, and whether a run talks or works. */
import type { EventData } from "../../../actors/TraceEvent.ts"
import type { Findings } from "./Findings.ts"
import type { KnownRecord, RunFacts } from "./RunFacts.ts"

type Phases = NonNullable<EventData<"provenance">["phases"]>

export class Phasing {
  readonly #findings: Findings
  readonly #facts: RunFacts
  /** Records from before there were phases do not say them. */
  #phases: Phases | undefined
  /** Whether a turn talks follows from its phase, unless all turns are in one that was asked for; unknown in older records. */
  #forced = true
  #begun = false
  /** The turn that a phase has started for. */
  #entered: number | undefined

  constructor(findings: Findings, facts: RunFacts) {
    this.#findings = findings
    this.#facts = facts
  }

  readonly see = (record: KnownRecord) => {
    switch (record.event_type) {
      case "provenance":
        this.#phases = record.data.phases
        this.#forced = record.data.profile === undefined || record.data.profile.phase !== undefined
        return
      case "phase_started":
        return this.#started(record.step, record.data)
      case "model_call_started":
        this.#begun = true
        return this.#turn(record.data)
      case "message_committed":
      case "run_resumed":
        this.#begun = true
        return
      case "routed":
        return this.#routed(record.step, record.data)
      case "assistant_action_parsed":
        return this.#parsed(record.data)
    }
  }

  #started(step: string, data: EventData<"phase_started">) {
    const { phase, turn, ...settings } = data
    const known = this.#phases?.[phase]
    const names = Object.keys(settings) as Array<keyof typeof settings>
    const same = known !== undefined && names.every((name) => settings[name] === known[name])
    this.#findings.unless(
      step === `model-${turn}` && (same || this.#phases === undefined),
      "T68",
      () => `the phase ${phase} starts with turn ${turn} in step ${step}, not as provenance says it`
    )
    this.#facts.phase = data
    this.#entered = turn
  }

  #turn({ attempt, max_tokens, phase, turn }: EventData<"model_call_started">) {
    if (this.#phases === undefined && phase === undefined) return
    const { limit, phase: now } = this.#facts
    // More than the run's limit is T37's to say.
    const capped = max_tokens === now?.max_tokens || max_tokens > limit("outputTokens")
    const entered = this.#entered === undefined || this.#entered === turn
    this.#entered = undefined
    const talks = this.#facts.route === "chat"
    const routed = this.#forced || (phase === "chat") === talks
    this.#findings.unless(
      routed,
      "T69",
      () => `turn ${turn} is in the phase ${phase} of a run that ${talks ? "talks" : "works"}`
    )
    this.#findings.unless(
      now !== undefined && now.phase === phase && capped && entered,
      "T68",
      () => `turn ${turn} attempt ${attempt} is in the phase ${phase}, and that is not the one that started`
    )
  }

  #routed(step: string, { by, committed_len, duration_ms = 0, reason, route }: EventData<"routed">) {
    const facts = this.#facts
    facts.routedMillis += duration_ms
    const handed = facts.rolledBack === "handed_over"
    const begins = !this.#begun && facts.route === undefined && by !== "chat" && reason !== "handed_over"
    const fits = handed
      ? facts.route === "chat" && route === "task" && by === "chat" && reason === "handed_over"
      : begins && step === "run" && committed_len === facts.length
    this.#findings.unless(fits, "T69", () => `routed to ${route} by ${by} in step ${step}, where that cannot be`)
    facts.route = route
    // The run goes on, in another context.
    if (handed) facts.rolledBack = undefined
  }

  #parsed({ action }: EventData<"assistant_action_parsed">) {
    const talks = this.#facts.route === "chat"
    this.#findings.unless(
      !talks || action === "final_text" || action === "hand_over" || action === "malformed",
      "T69",
      () => `${action} in a talk, which has no tools`
    )
    this.#findings.unless(talks || action !== "hand_over", "T69", () => "a task is handed over, and to nobody")
  }
}
