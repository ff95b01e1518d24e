/** T63: turns that were only sampled, so that there is something to choose among. */
import type { EventData } from "../../../actors/TraceEvent.ts"
import type { Findings } from "./Findings.ts"
import type { KnownRecord, RunFacts } from "./RunFacts.ts"

export class Samples {
  readonly #findings: Findings
  readonly #facts: RunFacts
  /** Of the turn that is about to start. */
  #samples: Array<{ readonly id: string; readonly seed: number }> = []
  #chosen: string | undefined

  constructor(findings: Findings, facts: RunFacts) {
    this.#findings = findings
    this.#facts = facts
  }

  readonly see = (record: KnownRecord) => {
    switch (record.event_type) {
      case "candidate_sampled":
        return this.#sampled(record.step, record.data)
      case "proposal_scored":
        return record.data.call === undefined ? this.#scored(record.step, record.data) : undefined
      case "model_call_started":
        return record.data.attempt === 0 ? this.#started(record.data) : undefined
      // The turn that they were sampled for begins anew.
      case "engine_restarted":
        this.#samples = []
        this.#chosen = undefined
    }
  }

  #sampled(step: string, { id, seed, turn }: EventData<"candidate_sampled">) {
    const { gates, nextTurn, turn: writing } = this.#facts
    const fits =
      writing === undefined &&
      turn === nextTurn &&
      step === `model-${turn}` &&
      id === `sample-${this.#samples.length}` &&
      this.#chosen === undefined &&
      this.#samples.every((one) => one.seed !== seed) &&
      this.#samples.length < (gates?.candidates ?? Number.POSITIVE_INFINITY)
    this.#findings.unless(fits, "T63", () => `${id} of turn ${turn} is sampled in step ${step}, where none is due`)
    this.#samples.push({ id, seed })
  }

  #scored(step: string, { candidates, chosen }: EventData<"proposal_scored">) {
    const ids = candidates.filter(({ kind }) => kind === "proposal" || kind === "answer").map(({ id }) => id)
    const fits =
      ids.join() === this.#samples.map(({ id }) => id).join() &&
      ids.length > 0 &&
      step === `model-${this.#facts.nextTurn}` &&
      this.#chosen === undefined
    this.#findings.unless(
      fits,
      "T63",
      () => `a choice among ${ids.join(", ") || "nothing"}, which is not what was sampled`
    )
    this.#chosen = chosen ?? ""
  }

  /** Where none of them is the best, it is the first that meets its gates; so it is where nothing could be chosen. */
  #started({ seed, turn }: EventData<"model_call_started">) {
    const { gates } = this.#facts
    const samples = this.#samples
    const due = gates === undefined || gates.candidates === 1 ? 0 : gates.candidates
    const best = samples.find(({ id }) => id === this.#chosen) ?? samples[0]
    const fits = (gates === undefined || samples.length === due) && (best === undefined || best.seed === seed)
    this.#findings.unless(fits, "T63", () => `turn ${turn} starts, and it is not the best of ${samples.length} samples`)
    this.#samples = []
    this.#chosen = undefined
  }
}
