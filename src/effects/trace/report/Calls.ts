/**
 * What became of each call of a run: checks, decision, execution, answer. Collects while events go by; `CallView` shows it.
 * Calls are found by their id, and in a schema without ids by the order in which things have to happen.
 */
import type { TraceRecord } from "../TraceReader.ts"
import { amount, content, type Data, isData, word } from "./Fields.ts"
import { html, json, type Markup, type Room } from "./Markup.ts"

/** Calls that are shown one by one. */
const most = 5_000

export interface Execution {
  readonly ok: boolean
  readonly millis: number
  readonly failure: string
  /** What a failed call left outside. */
  readonly effect: string
  readonly replayed: boolean
}

export interface Call {
  /** Of the page: counted, never taken from the trace. */
  readonly anchor: string
  readonly id: string
  readonly tool: string
  checks?: { readonly schema: string; readonly scopes: string; readonly pre: string; readonly cause: string }
  risk?: string
  arguments?: Markup
  effective?: Markup
  rejected?: { readonly kind: string; readonly reasons: ReadonlyArray<Markup> }
  asked?: boolean
  decision?: { readonly what: string; readonly by: string }
  ledger?: { mode: string; outcome: string; replayed: boolean }
  started?: boolean
  execution?: Execution
  artifacts: Array<Markup>
  answer?: { readonly what: "committed" | "uncommitted" | "skipped"; readonly reason: string; readonly cut: boolean }
  answerText?: Markup
  late?: string
}

const shownText = 20_000

const errorsOf = (data: Data, room: Room): ReadonlyArray<Markup> => {
  const { errors } = data
  if (!Array.isArray(errors)) return data["reason"] === undefined ? [] : [room.line(content(data["reason"]), 2_000)]
  return errors.slice(0, 50).map((error) => {
    if (!isData(error)) return room.line(json(error), 2_000)
    const path = content(error["path"])
    const reason = room.line(content(error["reason"]), 2_000)
    return path === "" ? reason : html`<code>${room.line(path, 500)}</code> ${reason}`
  })
}

/** What each event says about its call. */
const notes: Readonly<Record<string, (call: Call, data: Data, room: Room) => void>> = {
  legality_checked: (call, data, room) => {
    const [schema, scopes, pre] = [word(data["schema"]), word(data["scopes"]), word(data["pre"])]
    call.checks = { schema, scopes, pre, cause: room.clip(word(data["cause"]), 500).text }
  },
  tool_call_validated: (call, data, room) => {
    call.risk = word(data["risk"] ?? data["effect"])
    call.arguments = room.box(content(data["arguments"], 2), shownText)
    if (data["effective"] !== undefined) call.effective = room.box(content(data["effective"], 2), shownText)
  },
  tool_call_rejected: (call, data, room) => {
    call.rejected = { kind: word(data["kind"]), reasons: errorsOf(data, room) }
  },
  approval_requested: (call) => {
    call.asked = true
  },
  approval_decided: (call, data) => {
    call.decision = { what: word(data["decision"]), by: word(data["by"]) }
  },
  effect_intent: (call, data) => {
    call.ledger = { mode: word(data["mode"]), outcome: "", replayed: false }
  },
  effect_settled: (call, data) => {
    const outcome = word(data["outcome"])
    call.ledger = { mode: call.ledger?.mode ?? "", outcome, replayed: data["replayed"] === true }
  },
  tool_execution_started: (call) => {
    call.started = true
  },
  tool_execution_finished: (call, data, room) => {
    call.execution = {
      ok: data["ok"] === true,
      millis: amount(data["duration_ms"]),
      failure: word(data["failure_kind"]),
      effect: word(data["effect"]),
      replayed: data["replayed"] === true
    }
    // What the model was told comes later, and says the same: until then this is all there is.
    const result = data["payload"] ?? data["payload_excerpt"]
    if (result !== undefined) call.answerText = room.box(content(result, 2), shownText)
  },
  artifact_written: (call, data, room) => {
    if (call.artifacts.length < 50) call.artifacts.push(room.line(content(data["name"] ?? data["artifact_id"]), 300))
  },
  late_outcome: (call, data) => {
    call.late = data["ok"] === true ? "succeeded after it was given up" : word(data["failure_kind"])
  },
  tool_result_committed: (call, data, room) => {
    call.answer = { what: "committed", reason: "", cut: data["truncated"] === true }
    if (data["answer"] !== undefined) call.answerText = room.box(content(data["answer"], 2), shownText)
  },
  tool_result_uncommitted: (call, data, room) => {
    call.answer = { what: "uncommitted", reason: word(data["reason"]), cut: false }
    if (data["answer"] !== undefined) call.answerText = room.box(content(data["answer"], 2), shownText)
  },
  call_skipped: (call, data) => {
    call.answer = { what: "skipped", reason: word(data["reason"]), cut: false }
  }
}

export class Calls {
  readonly #room: Room
  /** Undefined: there is such a call, and it is not shown. */
  readonly #byId = new Map<string, Call | undefined>()
  /** Only for schemas without ids: validated and waiting, by step, and the one that ran last. */
  readonly #waiting: Array<Call> = []
  #last: Call | undefined
  #count = 0

  constructor(room: Room) {
    this.#room = room
  }

  /** Calls that are not shown, because there are too many. */
  get more(): number {
    return Math.max(0, this.#count - most)
  }

  /** Takes what an event says of a call. The call, and whether it is the first that is heard of it. */
  readonly see = (record: TraceRecord): { readonly call: Call; readonly isNew: boolean } | undefined => {
    const { data, event_type: type } = record
    const note = Object.hasOwn(notes, type) ? notes[type] : undefined
    if (note === undefined) return undefined
    const before = this.#count
    const call = typeof data["call"] === "string" ? this.#named(data["call"], data) : this.#unnamed(record)
    if (call === undefined) return undefined
    note(call, data, this.#room)
    return { call, isNew: this.#count > before }
  }

  #named(id: string, data: Data): Call | undefined {
    if (this.#byId.has(id)) return this.#byId.get(id)
    const call = this.#make(id, data)
    this.#byId.set(id, call)
    return call
  }

  #unnamed({ data, event_type: type, step }: TraceRecord): Call | undefined {
    if (type === "tool_call_validated" || type === "tool_call_rejected") {
      const call = this.#make("", data)
      if (call !== undefined && type === "tool_call_validated") this.#waiting.push(call)
      return call
    }
    if (type === "tool_execution_started") {
      const at = this.#waiting.findIndex(({ tool }) => tool === content(data["tool"]))
      const call = at < 0 ? this.#make("", data) : this.#waiting.splice(at, 1)[0]
      if (call !== undefined) this.#byId.set(step, call)
      this.#last = call
      return call
    }
    return this.#byId.get(step) ?? this.#last
  }

  #make(id: string, data: Data): Call | undefined {
    this.#count += 1
    if (this.#count > most) return undefined
    const tool = this.#room.clip(content(data["tool"]), 300).text
    return { anchor: `call-${this.#count}`, id: this.#room.clip(id, 200).text, tool, artifacts: [] }
  }
}
