/**
 * The times of a run as bars: each ends where its own finish event says, never where the next thing starts. Turns, what is
 * read into the context, tools, and waits: for people, and before another try. Collects only; `Timeline` draws.
 */
import type { TraceRecord } from "../TraceReader.ts"
import type { Call } from "./Calls.ts"
import { amount, callOf, content, type Data, turnOf, word } from "./Fields.ts"

export type Lane = "context" | "model" | "tool" | "wait"

/** `open`: the record has no end for it. `rolled`: what was written is gone from the context. */
export type BarState = "good" | "bad" | "rolled" | "open"

export interface Bar {
  readonly lane: Lane
  readonly label: string
  /** Where it is told, on this page. */
  readonly anchor: string | undefined
  /** Milliseconds of the trace's clock. */
  readonly from: number
  to: number
  state: BarState
  /** Times of a turn's attempts, or of a call's tries, where there are several. */
  attempts?: Array<{ from: number; to: number }>
}

/** Events that are written together with the change of the context they announce. */
const announcements = new Set([
  "message_committed",
  "tool_result_committed",
  "feedback_committed",
  "session_state_changed"
])

/** Attempts of one bar that are drawn. */
const mostAttempts = 20

/** Ends a bar, and with it its last attempt. A try that was waited for, and never came, is none. */
const endAt = (bar: Bar, at: number): void => {
  bar.to = at
  const attempt = bar.attempts?.at(-1)
  if (attempt === undefined) return
  if (attempt.from > at) bar.attempts?.pop()
  else attempt.to = at
}

export class Bars {
  readonly #bars: Array<Bar> = []
  readonly #open = new Map<string, Bar>()
  /** There is one turn at a time. */
  #turn: { readonly turn: number; readonly bar: Bar } | undefined
  readonly #planned: Array<Bar> = []
  /** When the last thing happened that is not an announcement. */
  #before: number | undefined
  #first: number | undefined
  #end = 0

  /** Every number in a trace may be anything; a time that is none counts as the last one known. */
  #time(record: TraceRecord): number {
    const at = Number.isFinite(record.t_ms) ? Math.max(record.t_ms, this.#end) : this.#end
    this.#first ??= at
    this.#end = at
    return at
  }

  readonly see = (record: TraceRecord, call: Call | undefined) => {
    const { data, event_type: type, step } = record
    const at = this.#time(record)
    const before = this.#before ?? at
    if (!announcements.has(type) || type === "session_state_changed") this.#before = at
    switch (type) {
      case "session_state_changed":
        if (!word(data["role"]).startsWith("assistant")) this.#read(word(data["role"]), before, at)
        return
      case "model_call_started":
        return this.#turnStarts(turnOf(data, step), at)
      case "model_call_finished":
        return this.#turnEnds(turnOf(data, step), at)
      case "turn_rolled_back":
        return this.#rolledBack(turnOf(data, step), at)
      case "tool_execution_started":
        return this.#start(`tool ${callOf(data, step)}`, "tool", content(data["tool"]), call?.anchor, at)
      case "retry_scheduled":
        return this.#retries(data, step, call, at)
      case "effect_intent":
        return this.#triesAgain(callOf(data, step), at)
      case "tool_execution_finished":
        return this.#finish(`tool ${callOf(data, step)}`, at, data["ok"] === true ? "good" : "bad")
      case "approval_requested":
        return this.#start(
          `wait ${callOf(data, step)}`,
          "wait",
          `approval of ${content(data["tool"])}`,
          call?.anchor,
          at
        )
      case "approval_decided":
        return this.#finish(`wait ${callOf(data, step)}`, at, data["decision"] === "allow" ? "good" : "bad")
    }
  }

  #make(lane: Lane, label: string, anchor: string | undefined, at: number): Bar {
    const short = label.length > 200 ? `${label.slice(0, 200)}…` : label
    const bar: Bar = { lane, label: short, anchor, from: at, to: at, state: "open" }
    this.#bars.push(bar)
    return bar
  }

  #read(role: string, from: number, to: number): void {
    if (to <= from) return
    const bar = this.#make("context", `reads ${role.replaceAll("_", " ")}`, undefined, from)
    bar.to = to
    bar.state = "good"
  }

  #turnStarts(turn: number, at: number): void {
    const bar = this.#turnBar(turn)
    if (bar === undefined) {
      this.#turn = { turn, bar: this.#make("model", `turn ${turn + 1}`, `turn-${turn}`, at) }
      return
    }
    bar.state = "open"
    this.#attempts(bar).push({ from: at, to: at })
  }

  #turnBar(turn: number): Bar | undefined {
    return this.#turn?.turn === turn ? this.#turn.bar : undefined
  }

  /** The attempts of a bar; as long as there is only one, it is the bar. */
  #attempts(bar: Bar): NonNullable<Bar["attempts"]> {
    bar.attempts ??= [{ from: bar.from, to: bar.to }]
    return bar.attempts
  }

  #turnEnds(turn: number, at: number): void {
    const bar = this.#turnBar(turn)
    if (bar === undefined) return
    endAt(bar, at)
    bar.state = "good"
  }

  #rolledBack(turn: number, at: number): void {
    const bar = this.#turnBar(turn)
    if (bar === undefined) return
    // A turn that was finished ended then; the rollback is what became of it.
    if (bar.state === "open") endAt(bar, at)
    bar.state = "rolled"
  }

  /** A try came to nothing: a wait, and then, inside the same call, the next one. */
  #retries(data: Data, step: string, call: Call | undefined, at: number): void {
    const delay = Math.max(0, amount(data["delay_ms"]))
    this.#waits(`wait before try ${amount(data["attempt"]) + 1} of ${content(data["tool"])}`, delay, call, at)
    const bar = this.#open.get(`tool ${callOf(data, step)}`)
    if (bar === undefined || (bar.attempts?.length ?? 0) >= mostAttempts) return
    bar.to = at
    const attempts = this.#attempts(bar)
    attempts.at(-1)!.to = at
    attempts.push({ from: at + delay, to: at + delay })
  }

  /** The next try begins: the record knows it better than the plan did. */
  #triesAgain(id: string, at: number): void {
    const attempt = this.#open.get(`tool ${id}`)?.attempts?.at(-1)
    if (attempt !== undefined && attempt.to === attempt.from) attempt.from = attempt.to = at
  }

  /** A wait whose length is known from the start; the record may end before it does. */
  #waits(label: string, millis: number, call: Call | undefined, at: number): void {
    const bar = this.#make("wait", label, call?.anchor, at)
    bar.to = at + millis
    bar.state = "good"
    this.#planned.push(bar)
  }

  #start(key: string, lane: Lane, label: string, anchor: string | undefined, at: number): void {
    this.#open.set(key, this.#make(lane, label, anchor, at))
  }

  #finish(key: string, at: number, state: BarState): void {
    const bar = this.#open.get(key)
    if (bar === undefined || bar.state !== "open") return
    endAt(bar, at)
    bar.state = state
    this.#open.delete(key)
  }

  /** All bars in the order of their starts; what has no end goes on to the last event. */
  readonly end = (): { readonly bars: ReadonlyArray<Bar>; readonly from: number; readonly to: number } => {
    for (const bar of this.#planned) bar.to = Math.min(bar.to, this.#end)
    for (const bar of this.#bars) {
      if (bar.state === "open") endAt(bar, this.#end)
    }
    return { bars: this.#bars, from: amount(this.#first), to: this.#end }
  }
}
