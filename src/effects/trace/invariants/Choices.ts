/** T51 to T54 and T61: what a call was worth, and whether somebody was asked who had to be. */
import type { EventData } from "../../../actors/TraceEvent.ts"
import { type Candidate, choose } from "../../Governor.ts"
import { riskWeightOf } from "../../Profile.ts"
import type { Findings } from "./Findings.ts"
import type { KnownRecord, RunFacts } from "./RunFacts.ts"
import { gating } from "./RunGates.ts"

type Scored = EventData<"proposal_scored">

/** `null` stands for what no number of JSON is. */
const amount = (price: number | null): number => price ?? Number.POSITIVE_INFINITY

const finite = (score: number): number | null => (Number.isFinite(score) ? score : null)

const isWeighed = (weights: Scored["weights"], of: Scored["weights"], riskWeight: number): boolean =>
  weights.cost === of.cost && weights.risk === of.risk * riskWeight

export class Choices {
  readonly #findings: Findings
  readonly #facts: RunFacts

  constructor(findings: Findings, facts: RunFacts) {
    this.#findings = findings
    this.#facts = facts
  }

  readonly see = (record: KnownRecord) => {
    switch (record.event_type) {
      case "proposal_scored":
        return this.#scored(record.data)
      case "tool_call_validated":
        return this.#goesOn(record.data.call)
      case "tool_call_rejected":
        return this.#rejected(record.data)
      case "approval_requested":
        this.#goesOn(record.data.call)
        this.#dry(record.data.call, record.data.tool)
        return this.#asked(record.data)
      case "tool_execution_started":
        this.#dry(record.data.call, record.data.tool)
        return this.#allowed(record.data)
    }
  }

  #scored(data: Scored) {
    const { call: id, candidates, chosen, weights } = data
    const found = choose(
      candidates.map((one, order): Candidate => ({ ...one, order, cost: amount(one.cost), risk: amount(one.risk) })),
      weights
    )
    const same =
      found.scored.every((one, at) => finite(one.score) === candidates[at]!.score) &&
      (found.chosen?.id ?? null) === chosen
    this.#findings.unless(
      same,
      "T51",
      () => `the scores of ${id ?? "a choice"} do not make ${chosen ?? "nothing"} the best`
    )
    const { gates, open, tools } = this.#facts
    if (id === undefined) {
      const { profile } = gates ?? {}
      const run =
        gates === undefined || profile === undefined || isWeighed(weights, gates.weights, riskWeightOf(profile))
      return this.#findings.unless(run, "T51", () => "samples are weighed otherwise than the run weighs")
    }
    const call = this.#facts.call(id)
    const tool = tools.get(String(call?.checks?.tool))
    const gated = gating(gates, tool)
    const weighted = gates === undefined || gated === undefined || isWeighed(weights, gates.weights, gated.riskWeight)
    this.#findings.unless(weighted, "T51", () => `${id} is weighed otherwise than the run weighs`)
    const due =
      call?.legality === "passed" &&
      call.scored === undefined &&
      !call.validated &&
      call.rejected === undefined &&
      open?.approvals.has(id) !== true
    const proposed = candidates.some((one) => one.id === id && one.kind === "proposal" && one.legal)
    this.#findings.unless(due && proposed, "T52", () => `${id} is scored, which is not a legal call to be decided`)
    if (call !== undefined) call.scored = data
  }

  #goesOn(id: string) {
    const scored = this.#facts.call(id)?.scored
    this.#findings.unless(
      scored === undefined || scored.chosen === id,
      "T52",
      () => `${id} goes on, and was not chosen`
    )
  }

  #rejected({ call: id, kind }: EventData<"tool_call_rejected">) {
    const { gates } = this.#facts
    const scored = this.#facts.call(id)?.scored
    const lost = scored !== undefined && scored.chosen !== id
    this.#findings.unless(
      lost === (kind === "not_chosen"),
      "T52",
      () => `${id} is rejected as ${kind} against the choice`
    )
    if (kind === "dry_run" && gates !== undefined && !gates.dryRun)
      this.#findings.add("T61", `${id} is not executed because of a dry run, which this is not`)
  }

  #dry(id: string, tool: string) {
    const { gates, tools } = this.#facts
    if (gates?.dryRun === true && tools.get(tool)?.risk !== "read")
      this.#findings.add("T61", `${id} goes on in a dry run, and ${tool} does more than read`)
  }

  #asked({ call: id, cost, evidence, hazard, reversible, tool }: EventData<"approval_requested">) {
    const { gates, tools } = this.#facts
    const { terms } = tools.get(tool) ?? {}
    if (gates === undefined || terms === undefined) return
    const priced = this.#facts.call(id)?.scored?.candidates.find((one) => one.id === id)
    const fits =
      evidence?.source === terms.evidence.source &&
      reversible === terms.reversible &&
      (priced === undefined || (priced.cost === cost && priced.risk === hazard))
    this.#findings.unless(fits, "T54", () => `${id} is asked about in other terms than its tool has`)
  }

  #allowed({ call: id, tool }: EventData<"tool_execution_started">) {
    const { gates, open, tools } = this.#facts
    const call = this.#facts.call(id)
    const known = tools.get(tool)
    if (call === undefined || gates === undefined || known?.risk === "read" || call.legality !== "passed") return
    const must = gating(gates, known)?.approve === true || call.checks?.follows_refusal_of !== undefined
    const asked = open?.approvals.has(id) === true
    // What was asked and not allowed is T24's.
    this.#findings.unless(!must || asked, "T53", () => `${id} is executed, and nobody was asked`)
  }
}
