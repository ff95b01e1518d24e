/**
 * Events of `ember.agent.trace.v1` under the names that Writ has for the same things, so that one reader serves both. Calls
 * have no ids there: they get some, by turn, tool and order. Nothing is made up beyond that; what a trace does not say stays
 * away. Not for the validator, whose invariants are Writ's.
 */
import type { TraceRecord } from "./TraceReader.ts"
import { sha256 } from "./TraceValues.ts"

export const emberSchema = "ember.agent.trace.v1"

type Data = Readonly<Record<string, unknown>>

/** Only what is there. */
const given = (fields: Data): Data =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

/** A text, or what stands for it. */
const content = (data: Data, name: string): unknown => {
  if (data[name] !== undefined) return data[name]
  const hash = data[`${name}_sha256`]
  return typeof hash === "string" ? given({ bytes: data[`${name}_bytes`], sha256: hash }) : undefined
}

const turnOf = (step: string): number | undefined => {
  const found = /^model-(\d+)$/.exec(step)
  return found === null ? undefined : Number(found[1])
}

const fields = (value: unknown): Data =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Data) : {}

const tools = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map((tool: unknown) => {
        const { function: inner, name } = fields(tool)
        return { name: name ?? fields(inner)["name"], hash: sha256(tool) }
      })
    : undefined

const message = (data: Data): unknown =>
  data["content_omitted"] === true ? given({ bytes: data["bytes"], sha256: data["sha256"] }) : data["content"]

const actions: Readonly<Record<string, string>> = { malformed_tool_call: "malformed", tool_call: "tool_calls" }

const stopReason = (value: unknown): unknown => {
  if (value === "eos") return "eog"
  if (value === "max_tokens") return "length"
  return typeof value === "string" && value.startsWith("stop_string") ? "stop" : (value ?? undefined)
}

/** By event type, the data under Writ's names. */
const renamed: Readonly<Record<string, (data: Data, step: string) => Data>> = {
  run_started: (data) => ({
    limits: given({
      modelTurns: data["max_steps"],
      toolCalls: data["max_tool_calls"],
      wallMillis: data["wall_time_ms"],
      toolMillis: data["tool_timeout_ms"]
    })
  }),
  provenance: (data) => {
    const { model_path: path, model_sha256: hash, ...model } = fields(data["model"])
    const { kv_capacity: contextTokens, ...sampling } = fields(data["config"])
    return given({
      product: given({ ember: data["ember_version"], commit: data["git_commit"] }),
      model: given({ ...model, name: path, fileSha256: hash, contextTokens }),
      codec: data["protocol_id"],
      tools: tools(data["tools"]),
      sampling
    })
  },
  message_committed: (data) => given({ role: data["role"], content: message(data) }),
  model_call_started: (data, step) => given({ turn: data["step_index"] ?? turnOf(step), attempt: 0 }),
  model_call_finished: (data, step) =>
    given({
      turn: turnOf(step),
      attempt: 0,
      stop_reason: stopReason(data["stop_reason"]),
      prefill_tokens: data["input_tokens_prefilled"],
      output_tokens: data["output_tokens_committed"],
      prefill_ms: data["prefill_ms"],
      decode_ms: data["decode_ms"],
      text: content(data, "text")
    }),
  assistant_action_parsed: (data) => {
    const action = String(data["action"])
    const count = data["count"] ?? (action === "tool_call" ? 1 : 0)
    return given({ ...data, action: actions[action] ?? action, count })
  },
  tool_call_validated: (data) => given({ ...data, risk: data["effect"], effect: undefined }),
  tool_call_rejected: (data) => given({ ...data, errors: [{ path: "", reason: data["reason"] }] }),
  tool_execution_finished: (data) => {
    // An excerpt that was cut cannot be compared; its digest can.
    const excerpt = data["truncated"] === true ? undefined : data["payload_excerpt"]
    return given({
      ...data,
      payload: data["payload"] ?? excerpt ?? content(data, "payload"),
      payload_sha256: undefined
    })
  },
  run_completed: (data) =>
    given({ turns: data["steps"], tool_calls: data["tool_calls"], final_text: content(data, "final_text") }),
  run_terminated: (data) => given({ ...data, reason: "limit" })
}

interface OpenCall {
  readonly id: string
  readonly ordinal: number
  readonly tool: unknown
  started: boolean
  finished: boolean
}

/** Calls that were validated and are not over yet: which one an event is about. */
class Calls {
  #turn = 0
  #ordinal = 0
  /** Of the open turn, in order. */
  #open: Array<OpenCall> = []

  readonly place = (record: TraceRecord): Data => {
    const { data, event_type: type, phase, step } = record
    const { tool } = data
    if (type === "model_call_started") this.#turnTo(turnOf(step) ?? this.#turn + 1)
    if (type === "tool_call_validated") return this.#next(tool)
    if (type === "tool_call_rejected") {
      // A call that was denied had been validated; any other one was not.
      const denied = phase === "approve" ? this.#take((call) => call.tool === tool && !call.started) : undefined
      return denied ?? (tool === undefined ? {} : this.#next(tool, true))
    }
    if (type === "tool_execution_started") return this.#mark("started", (call) => call.tool === tool && !call.started)
    if (type === "tool_execution_finished")
      return this.#mark("finished", (call) => call.tool === tool && call.started && !call.finished)
    if (type === "artifact_written") return this.#find((call) => call.started && !call.finished)
    if (type === "tool_result_committed" || type === "tool_result_uncommitted") {
      return this.#take((call) => call.tool === tool && call.finished) ?? {}
    }
    return {}
  }

  #turnTo(turn: number): void {
    this.#turn = turn
    this.#ordinal = 0
    this.#open = []
  }

  #next(tool: unknown, over = false): Data {
    const ordinal = this.#ordinal++
    const id = `call-${this.#turn}-${ordinal}`
    if (!over) this.#open.push({ id, ordinal, tool, started: false, finished: false })
    return { call: id, ordinal }
  }

  #find(wanted: (call: OpenCall) => boolean): Data {
    const found = this.#open.find(wanted)
    return found === undefined ? {} : { call: found.id, ordinal: found.ordinal }
  }

  #mark(what: "started" | "finished", wanted: (call: OpenCall) => boolean): Data {
    const found = this.#open.find(wanted)
    if (found === undefined) return {}
    found[what] = true
    return { call: found.id, ordinal: found.ordinal }
  }

  #take(wanted: (call: OpenCall) => boolean): Data | undefined {
    const at = this.#open.findIndex(wanted)
    const [found] = at < 0 ? [] : this.#open.splice(at, 1)
    return found === undefined ? undefined : { call: found.id, ordinal: found.ordinal }
  }
}

/** The events of an Ember trace under Writ's names. They keep their schema. */
export const fromEmber = (records: ReadonlyArray<TraceRecord>): ReadonlyArray<TraceRecord> => {
  const calls = new Calls()
  return records.map((record) => {
    const place = calls.place(record)
    const rename = Object.hasOwn(renamed, record.event_type) ? renamed[record.event_type] : undefined
    const data = rename === undefined ? record.data : rename(record.data, record.step)
    return { ...record, data: { ...data, ...place } }
  })
}
