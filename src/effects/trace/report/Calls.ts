/**
 * What became of each call of a run: checks, decision, execution, answer. Collects while events go by; `CallView` shows it.
 * Calls are found by their id, and in a schema without ids by the order in which things have to happen.
 */
import type { TraceRecord } from "../TraceReader.ts"
import { amount, content, type Data, duration, isData, word } from "./Fields.ts"
import { html, json, type Markup, type Room } from "./Markup.ts"

/** Calls that are shown one by one. */
const most = 5_000

export interface Execution {
  readonly ok: boolean
  readonly millis: number
  readonly failure: string
  /** Class and stage of a failure, where they are on the record. */
  readonly raised: string
  /** What a failed call left outside. */
  readonly effect: string
  readonly replayed: boolean
}

export interface Call {
  /** Of the page: counted, never taken from the trace. */
  readonly anchor: string
  readonly id: string
  readonly tool: string
  checks?: {
    readonly schema: string
    readonly scopes: string
    readonly pre: string
    readonly cause: string
    /** The tests that stopped it. */
    readonly blockedBy: string
    /** What came before it: a refusal it follows, a proposal it resembles. */
    readonly notes: ReadonlyArray<string>
  }
  /** Text that never became a call. */
  malformed?: true
  /** The last second look at the precondition. */
  recheck?: { readonly pre: string; readonly after: string }
  /** The choice, and every candidate's score. */
  choice?: { readonly lost: boolean; readonly chosen: string; readonly scores: ReadonlyArray<string> }
  risk?: string
  arguments?: Markup
  effective?: Markup
  rejected?: { readonly kind: string; readonly raised: string; readonly reasons: ReadonlyArray<Markup> }
  asked?: boolean
  /** By what success was to be judged, as it was said when somebody was asked. */
  judgedBy?: Markup
  decision?: { readonly what: string; readonly by: string; readonly expired: boolean }
  ledger?: { mode: string; outcome: string; replayed: boolean; status: string; evidence?: Markup }
  /** Tries with waits, looks and acceptances between them, in order. */
  tries?: Array<string>
  escalated?: ReadonlyArray<string>
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

const tried = (call: Call, what: string): void => {
  call.tries ??= []
  if (call.tries.length < 100) call.tries.push(what)
}

/** What each event says about its call. */
const notes: Readonly<Record<string, (call: Call, data: Data, room: Room) => void>> = {
  legality_checked: (call, data, room) => {
    const [schema, scopes, pre] = [word(data["schema"]), word(data["scopes"]), word(data["pre"])]
    const { blocked_by: blocked, follows_refusal_of: refusal, resembles } = data
    if (data["cause"] === "malformed") call.malformed = true
    call.checks = {
      schema,
      scopes,
      pre,
      cause: room.clip(word(data["cause"]), 500).text,
      blockedBy: Array.isArray(blocked) ? room.clip(blocked.slice(0, 3).map(word).join(", "), 100).text : "",
      notes: [
        ...(typeof refusal === "number" ? [`goes for what was refused at event ${refusal}`] : []),
        ...(typeof resembles === "number" ? [`the same was proposed before, at event ${resembles}`] : [])
      ]
    }
  },
  precondition_checked: (call, data) => {
    call.recheck = { pre: word(data["pre"]), after: word(data["after"]) }
  },
  proposal_scored: (call, data, room) => {
    const { candidates, chosen } = data
    const listed = Array.isArray(candidates) ? candidates.slice(0, 20).filter(isData) : []
    const score = (one: Data) => (one["score"] === null ? "forbidden" : word(one["score"]))
    call.choice = {
      lost: chosen !== data["call"],
      chosen: room.clip(word(chosen) || "nothing", 200).text,
      scores: listed.map((one) => room.clip(`${word(one["id"])} ${score(one)}`, 200).text)
    }
  },
  tool_call_validated: (call, data, room) => {
    call.risk = word(data["risk"] ?? data["effect"])
    call.arguments = room.box(content(data["arguments"], 2), shownText)
    if (data["effective"] !== undefined) call.effective = room.box(content(data["effective"], 2), shownText)
  },
  tool_call_rejected: (call, data, room) => {
    const raised = [data["class"], data["stage"]].map(word).filter((part) => part !== "")
    const reasons = errorsOf(data, room)
    const hint = data["hint"] === undefined ? [] : [html`hint: ${room.line(content(data["hint"]), 2_000)}`]
    call.rejected = { kind: word(data["kind"]), raised: raised.join(", raised by "), reasons: [...reasons, ...hint] }
  },
  approval_requested: (call, data, room) => {
    call.asked = true
    const evidence = data["evidence"]
    if (!isData(evidence)) return
    call.judgedBy = html`${word(evidence["source"])}: ${room.line(content(evidence["describes"]), 500)}`
  },
  approval_decided: (call, data) => {
    call.decision = { what: word(data["decision"]), by: word(data["by"]), expired: data["expired"] === true }
  },
  effect_intent: (call, data) => {
    call.ledger = { mode: word(data["mode"]), outcome: "", replayed: false, status: "" }
    if (amount(data["attempt"]) > 1) tried(call, `try ${amount(data["attempt"])}`)
  },
  effect_accepted: (call, data) =>
    tried(call, `accepted, looked for up to ${duration(amount(data["settle_within_ms"]))}`),
  effect_probed: (call, data, room) => tried(call, `looked: ${room.clip(word(data["found"]), 50).text}`),
  retry_scheduled: (call, data, room) => {
    const left = `after try ${amount(data["attempt"])} of ${amount(data["of"])}`
    tried(call, `waits ${duration(amount(data["delay_ms"]))} ${left} (${room.clip(word(data["class"]), 50).text})`)
  },
  effect_settled: (call, data, room) => {
    const outcome = word(data["outcome"])
    const { evidence } = data
    call.ledger = {
      mode: call.ledger?.mode ?? "",
      outcome,
      replayed: data["replayed"] === true,
      status: word(data["status"])
    }
    if (!isData(evidence)) return
    const seen = evidence["seen"] === undefined ? undefined : html`: ${room.line(content(evidence["seen"]), 2_000)}`
    call.ledger.evidence = html`${word(evidence["source"])}${seen}`
  },
  effect_escalated: (call, data, room) => {
    const attempts = Array.isArray(data["attempts"]) ? data["attempts"].slice(0, 100).filter(isData) : []
    call.escalated = attempts.map(
      ({ at_ms, effect, kind }) =>
        room.clip(`after ${duration(amount(at_ms))}: ${word(kind) || "no outcome"}, effect ${word(effect)}`, 200).text
    )
  },
  tool_execution_started: (call) => {
    call.started = true
  },
  tool_execution_finished: (call, data, room) => {
    call.execution = {
      ok: data["ok"] === true,
      millis: amount(data["duration_ms"]),
      failure: word(data["failure_kind"]),
      raised: [data["class"], data["stage"]]
        .map(word)
        .filter((part) => part !== "")
        .join(", "),
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
  readonly #prefix: string
  #count = 0
  #closed = false

  /** `prefix`: of the places of its calls on the page. */
  constructor(room: Room, prefix = "call") {
    this.#room = room
    this.#prefix = prefix
  }

  /** From now on no call is new. */
  readonly close = (): void => {
    this.#closed = true
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
    const known = this.#byId.get(id)
    if (known !== undefined || this.#closed || this.#byId.has(id)) return known
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
    if (this.#closed) return undefined
    this.#count += 1
    if (this.#count > most) return undefined
    const tool = this.#room.clip(content(data["tool"]), 300).text
    return { anchor: `${this.#prefix}-${this.#count}`, id: this.#room.clip(id, 200).text, tool, artifacts: [] }
  }
}
