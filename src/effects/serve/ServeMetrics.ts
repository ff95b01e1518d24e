/**
 * What the server has done, counted since its start and told in the text format of Prometheus. Every label has a fixed set of
 * values: nothing a client sends becomes one.
 */
import type { AgentEvent } from "../AgentEvent.ts"
import type { Answered } from "./Answering.ts"

export type Route = "chat" | "models" | "health" | "metrics" | "other"
export type Refusal = "unauthorized" | "forbidden" | "rate" | "concurrency" | "overloaded" | "draining" | "invalid"

/** Seconds, for requests that take from a moment to minutes. */
const bounds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]

class Histogram {
  readonly #counts = bounds.map(() => 0)
  #count = 0
  #sum = 0

  readonly take = (seconds: number): void => {
    this.#count += 1
    this.#sum += seconds
    const at = bounds.findIndex((bound) => seconds <= bound)
    if (at >= 0) this.#counts[at]! += 1
  }

  readonly lines = (name: string): ReadonlyArray<string> => {
    let below = 0
    const buckets = bounds.map((bound, at) => {
      below += this.#counts[at]!
      return `${name}_bucket{le="${bound}"} ${below}`
    })
    return [
      ...buckets,
      `${name}_bucket{le="+Inf"} ${this.#count}`,
      `${name}_sum ${this.#sum}`,
      `${name}_count ${this.#count}`
    ]
  }
}

/** Counts by the values of their labels. */
class Counter {
  readonly #values = new Map<string, number>()

  readonly add = (labels: Readonly<Record<string, string | number>>, by = 1): void => {
    const key = Object.entries(labels)
      .map(([name, value]) => `${name}="${value}"`)
      .join(",")
    this.#values.set(key, (this.#values.get(key) ?? 0) + by)
  }

  readonly lines = (name: string): ReadonlyArray<string> =>
    [...this.#values]
      .sort()
      .map(([labels, value]) => (labels === "" ? `${name} ${value}` : `${name}{${labels}} ${value}`))
}

/** How things stand at the moment. */
export interface Standing {
  readonly inFlight: number
  readonly waiting: number
  readonly draining: boolean
}

const stopName = (tag: string): string => tag.replaceAll(/(?<!^)[A-Z]/g, (letter) => `_${letter}`).toLowerCase()

export class ServeMetrics {
  readonly #requests = new Counter()
  readonly #refused = new Counter()
  readonly #runs = new Counter()
  readonly #calls = new Counter()
  readonly #tokens = new Counter()
  readonly #turns = new Counter()
  readonly #seconds = new Histogram()
  readonly #firstSeconds = new Histogram()

  readonly request = (route: Route, code: number): void => this.#requests.add({ route, code })

  readonly refusal = (reason: Refusal): void => this.#refused.add({ reason })

  /** How long a chat request took, refused ones left out. */
  readonly took = (seconds: number): void => this.#seconds.take(seconds)

  /** How long it took until the first text of a stream was sent. */
  readonly tookToFirst = (seconds: number): void => this.#firstSeconds.take(seconds)

  /** What a run does while it goes on. */
  readonly see = (event: AgentEvent): void => {
    if (event._tag === "CallFinished") this.#calls.add({ outcome: event.answer.ok ? "succeeded" : "failed" })
    else if (event._tag === "CallRejected") this.#calls.add({ outcome: "refused" })
    else if (event._tag === "Malformed") this.#calls.add({ outcome: "malformed" })
  }

  readonly ended = ({ cachedTokens, calls, outcome, rolledBack }: Answered): void => {
    const { skipped, stop, turns, usage } = outcome
    this.#runs.add({ stop: calls.length > 0 ? "handed_over" : stopName(stop._tag) })
    if (calls.length > 0) this.#calls.add({ outcome: "handed_over" }, calls.length)
    if (skipped > calls.length) this.#calls.add({ outcome: "skipped" }, skipped - calls.length)
    this.#tokens.add({ kind: "prefilled" }, usage.prefillTokens)
    this.#tokens.add({ kind: "generated" }, usage.outputTokens)
    this.#tokens.add({ kind: "reused" }, Math.max(0, cachedTokens))
    this.#turns.add({ end: "kept" }, Math.max(0, turns - rolledBack))
    this.#turns.add({ end: "rolled_back" }, rolledBack)
  }

  /** Whoever asked has gone away. */
  readonly gone = (): void => this.#runs.add({ stop: "cancelled" })

  readonly text = ({ draining, inFlight, waiting }: Standing): string => {
    const families: ReadonlyArray<readonly [name: string, type: string, help: string, lines: ReadonlyArray<string>]> = [
      [
        "writ_http_requests_total",
        "counter",
        "Requests answered, by route and status.",
        this.#requests.lines("writ_http_requests_total")
      ],
      [
        "writ_refused_total",
        "counter",
        "Requests that were refused, by reason.",
        this.#refused.lines("writ_refused_total")
      ],
      [
        "writ_requests_in_flight",
        "gauge",
        "Chat requests that have a session.",
        [`writ_requests_in_flight ${inFlight}`]
      ],
      [
        "writ_requests_waiting",
        "gauge",
        "Chat requests that wait for a session.",
        [`writ_requests_waiting ${waiting}`]
      ],
      ["writ_draining", "gauge", "1 once the server takes no new requests.", [`writ_draining ${draining ? 1 : 0}`]],
      ["writ_runs_total", "counter", "Runs, by how they stopped.", this.#runs.lines("writ_runs_total")],
      [
        "writ_turns_total",
        "counter",
        "Turns of the model, by what became of them.",
        this.#turns.lines("writ_turns_total")
      ],
      ["writ_calls_total", "counter", "Calls of tools, by what became of them.", this.#calls.lines("writ_calls_total")],
      [
        "writ_tokens_total",
        "counter",
        "Tokens evaluated, generated, and reused from a session.",
        this.#tokens.lines("writ_tokens_total")
      ],
      ["writ_request_seconds", "histogram", "Time of chat requests.", this.#seconds.lines("writ_request_seconds")],
      [
        "writ_first_text_seconds",
        "histogram",
        "Time until the first text of a stream.",
        this.#firstSeconds.lines("writ_first_text_seconds")
      ]
    ]
    return families
      .flatMap(([name, type, help, lines]) => [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines, ""])
      .filter((line) => line !== "")
      .join("\n")
      .concat("\n")
  }
}
