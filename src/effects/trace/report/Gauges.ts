/** How much of each limit a run used. Limits are what its first event says; use is counted from the events. */
import type { TraceRecord } from "../TraceReader.ts"
import { amount, content, type Data, duration, isData, isLeftOut } from "./Fields.ts"
import { html, type Markup, number, type Part } from "./Markup.ts"

type Limits = Readonly<Record<string, number | null | undefined>>

interface Gauge {
  readonly name: string
  readonly used: number
  readonly limit: number | null | undefined
  readonly show: (value: number) => string
  /** What it counts, where its name does not say. */
  readonly unit?: string
}

const bytes = (value: unknown): number =>
  isLeftOut(value) ? value.bytes : value === undefined ? 0 : Buffer.byteLength(content(value))

/** Ember's names for the same limits. */
const emberNames: ReadonlyArray<readonly [theirs: string, ours: string]> = [
  ["max_steps", "modelTurns"],
  ["max_tool_calls", "toolCalls"],
  ["wall_time_ms", "wallMillis"],
  ["tool_timeout_ms", "toolMillis"]
]

const limitsOf = (data: Data): Limits => {
  const named = isData(data["limits"])
    ? Object.entries(data["limits"])
    : emberNames.map(([theirs, ours]) => [ours, data[theirs]] as const)
  return Object.fromEntries(
    named.filter((entry): entry is [string, number | null] => entry[1] === null || Number.isFinite(entry[1]))
  )
}

export class Gauges {
  #limits: Limits | undefined
  #first: number | undefined
  #last = 0
  #turns = 0
  #calls = 0
  #longestCall = 0
  #mostTokens = 0
  #turnTokens = 0
  #longestAnswer = 0
  #repairs = 0
  #mostRepairs = 0
  #rejectedTurn: string | undefined

  readonly see = ({ data, event_type: type, step, t_ms }: TraceRecord) => {
    this.#first ??= amount(t_ms)
    this.#last = Math.max(this.#last, amount(t_ms))
    switch (type) {
      case "run_started":
        this.#limits ??= limitsOf(data)
        return
      case "model_call_started":
        if (amount(data["attempt"]) > 0) return
        this.#turns += 1
        this.#turnTokens = 0
        return
      case "model_call_finished":
        this.#turnTokens = amount(data["output_tokens"] ?? data["output_tokens_committed"])
        this.#mostTokens = Math.max(this.#mostTokens, this.#turnTokens)
        return
      case "tool_execution_started":
        this.#calls += 1
        this.#repairs = 0
        return
      case "tool_execution_finished":
        this.#longestCall = Math.max(this.#longestCall, amount(data["duration_ms"]))
        return
      case "tool_result_committed":
        this.#longestAnswer = Math.max(this.#longestAnswer, bytes(data["answer"]))
        return
      case "tool_call_rejected":
      case "feedback_committed":
        // Several refusals of one turn are one repair.
        if (this.#rejectedTurn === step) return
        this.#rejectedTurn = step
        this.#repairs += 1
        this.#mostRepairs = Math.max(this.#mostRepairs, this.#repairs)
    }
  }

  get #gauges(): ReadonlyArray<Gauge> {
    const limits = this.#limits ?? {}
    return [
      { name: "Model turns", used: this.#turns, limit: limits["modelTurns"], show: number },
      { name: "Tool calls", used: this.#calls, limit: limits["toolCalls"], show: number },
      { name: "Wall time", used: this.#last - amount(this.#first), limit: limits["wallMillis"], show: duration },
      { name: "Longest call", used: this.#longestCall, limit: limits["toolMillis"], show: duration },
      { name: "Longest turn", used: this.#mostTokens, limit: limits["outputTokens"], show: number, unit: "tokens" },
      { name: "Longest answer", used: this.#longestAnswer, limit: limits["resultBytes"], show: number, unit: "bytes" },
      { name: "Repairs in a row", used: this.#mostRepairs, limit: limits["repairs"], show: number }
    ]
  }

  readonly view = (): Markup => {
    if (this.#limits === undefined) return html`<p class="quiet">This trace does not say what its limits are.</p>`
    return html`<ul class="gauges">${this.#gauges.map(gauge)}</ul>`
  }
}

const gauge = ({ limit, name, show, unit, used }: Gauge): Part => {
  if (limit === undefined) return undefined
  const of = unit === undefined ? "" : ` ${unit}`
  if (limit === null) return html`<li><span>${name}</span><span class="used">${show(used)}${of}, no limit</span></li>`
  const part = limit > 0 ? Math.min(1, used / limit) : used > 0 ? 1 : 0
  const tone = part >= 1 ? "full" : part >= 0.8 ? "near" : "fine"
  return html`<li><span>${name}</span><span class="used">${show(used)} of ${show(limit)}${of}</span><svg class="gauge" width="100%" height="8" aria-hidden="true"><rect class="track" width="100%" height="8" rx="4"/><rect class="${tone}" width="${Math.round(part * 10_000) / 100}%" height="8" rx="4"/></svg></li>`
}
