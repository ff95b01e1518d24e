/**
 * Runs while their traces are read: calls in order, turns, limits. The parts of a resumed run are one run, under the name of
 * its first part. Feed traces in the order in which they began; a trace may be of any length, only calls are kept.
 */
import { terminalTypes } from "../../actors/TraceEvent.ts"
import { emberSchema, fromEmber } from "./EmberTrace.ts"
import { CallLog } from "./TraceMetricsCall.ts"
import type { TraceRecord } from "./TraceReader.ts"

type Data = TraceRecord["data"]

/** One run with all its parts that were read. */
export class RunLog {
  readonly root: string
  /** Its parts by id. */
  readonly parts = new Set<string>()
  /** Calls and malformed turns, in order. */
  readonly calls: Array<CallLog> = []
  readonly limits: Array<Data> = []
  /** Risk by tool, as provenance says. */
  readonly risks = new Map<unknown, unknown>()
  turns = 0
  rolledBack = 0
  resumed = false
  /** Parts whose end is on record. */
  readonly ended = new Set<string>()
  /** Its format knows of intents and settlements. */
  ledger = true
  /** Written since settlements say whether the promise was kept. */
  judged = false
  readonly #byId = new Map<string, CallLog>()
  readonly #malformed = new Map<string, CallLog>()
  /** Turns of which a call was looked at. */
  readonly #checked = new Set<string>()

  constructor(root: string) {
    this.root = root
  }

  /** A turn that was not understood, as a call of its own; `undefined` if its call was named already. */
  readonly malformed = (step: string): CallLog | undefined => {
    if (this.#malformed.has(step) || this.#checked.has(step)) return undefined
    const call = new CallLog()
    call.malformed()
    this.calls.push(call)
    this.#malformed.set(step, call)
    return call
  }

  /** The call an event is about. In a malformed turn the first one named is that turn. */
  readonly call = (id: string | undefined, step: string, checks: boolean): CallLog => {
    const known = id === undefined ? undefined : this.#byId.get(id)
    if (checks) this.#checked.add(step)
    if (known !== undefined) return known
    const open = checks ? this.#malformed.get(step) : undefined
    if (open !== undefined && !open.named) {
      Object.assign(open, { id, named: true })
      if (id !== undefined) this.#byId.set(id, open)
      return open
    }
    const made = new CallLog()
    made.id = id
    this.calls.push(made)
    if (id !== undefined) this.#byId.set(id, made)
    return made
  }
}

interface Part {
  readonly id: string
  run: RunLog
  /** Digests of keys are the ledger's own, not keyed by the trace. */
  content: boolean
}

/** Events that say a call was proposed and looked at. */
const checking: ReadonlySet<string> = new Set(["legality_checked", "tool_call_validated", "tool_call_rejected"])

/** Fields and events that came with the status of settlements. */
const judging = (type: string, data: Data): boolean =>
  data["status"] !== undefined ||
  data["blocked_by"] !== undefined ||
  (type === "effect_intent" && data["attempt"] !== undefined) ||
  (data["class"] !== undefined && (type === "tool_call_rejected" || type === "tool_execution_finished")) ||
  type === "effect_accepted" ||
  type === "effect_probed" ||
  type === "retry_scheduled" ||
  type === "effect_escalated"

/** Events without which an Ember trace means the same here; they are most of it. */
const passed: ReadonlySet<string> = new Set(["generation_token", "message_committed", "session_state_changed"])

/** A trace that is being read. */
export interface Feed {
  /** @param epochMillis when it was written, in milliseconds since 1970 */
  readonly see: (record: TraceRecord, epochMillis?: number) => void
  /** Call it when the trace ends. */
  readonly end: () => void
}

/** All runs that were read. */
export class RunsLog {
  readonly runs = new Map<string, RunLog>()
  /** Every attempt, in the order it was read. */
  readonly attempts: Array<CallLog> = []

  readonly feed = (file: string): Feed => {
    const parts = new Map<string, Part>()
    const ember: Array<TraceRecord> = []
    let start: number | undefined
    return {
      see: (record, epochMillis) => {
        start ??= epochMillis === undefined ? undefined : epochMillis - record.t_ms
        if (record.schema !== emberSchema) this.#see(record, file, start, parts)
        else if (!passed.has(record.event_type)) ember.push(record)
      },
      end: () => {
        for (const record of fromEmber(ember)) this.#see(record, file, start, parts)
      }
    }
  }

  #run(root: string): RunLog {
    const known = this.runs.get(root)
    if (known !== undefined) return known
    const made = new RunLog(root)
    this.runs.set(root, made)
    return made
  }

  #part(record: TraceRecord, parts: Map<string, Part>): Part {
    const known = parts.get(record.run_id)
    if (known !== undefined) return known
    const made: Part = { id: record.run_id, run: this.#run(record.run_id), content: false }
    made.run.parts.add(record.run_id)
    if (record.schema === emberSchema) made.run.ledger = false
    parts.set(record.run_id, made)
    return made
  }

  /** What was said of the part before it said whose part it is goes with it. */
  #resume(part: Part, root: unknown): void {
    if (typeof root !== "string" || root === "" || root === part.run.root) return
    const own = part.run
    part.run = this.#run(root)
    part.run.parts.add(part.id)
    part.run.limits.push(...own.limits)
    for (const [tool, risk] of own.risks) part.run.risks.set(tool, risk)
    if (own.calls.length === 0 && own.parts.size === 1) this.runs.delete(own.root)
  }

  #see(record: TraceRecord, file: string, start: number | undefined, parts: Map<string, Part>): void {
    const part = this.#part(record, parts)
    const { data, event_type: type } = record
    if (type === "run_resumed") {
      this.#resume(part, data["root_run"])
      part.run.resumed = true
    }
    const { run } = part
    if (judging(type, data)) run.judged = true
    if (terminalTypes.has(type)) run.ended.add(part.id)
    else if (type === "run_started") {
      part.content = data["content"] === true
      if (isFields(data["limits"])) run.limits.push(data["limits"])
    } else if (type === "provenance") risksOf(data["tools"], run.risks)
    else if (type === "model_call_started" && data["attempt"] !== 1) run.turns += 1
    else if (type === "turn_rolled_back") run.rolledBack += 1
    this.#callEvent(record, part, { file, runId: part.id, seq: record.seq, at: atOf(start, record) })
  }

  #callEvent(record: TraceRecord, part: Part, place: NonNullable<CallLog["place"]>): void {
    const { data, event_type: type } = record
    const step = `${part.id} ${record.step}`
    if (type === "assistant_action_parsed" && data["action"] === "malformed") {
      const call = part.run.malformed(step)
      if (call !== undefined) this.#attempt(call, place)
      return
    }
    const checks = checking.has(type)
    const id = typeof data["call"] === "string" ? data["call"] : undefined
    if ((id === undefined && !checks) || terminalTypes.has(type)) return
    const call = part.run.call(id, step, checks)
    if (checks) this.#attempt(call, place)
    if (typeof data["tool"] === "string") call.risk ??= part.run.risks.get(data["tool"])
    call.see(record, part.content ? "" : `${place.file} ${part.id} `)
  }

  #attempt(call: CallLog, place: NonNullable<CallLog["place"]>): void {
    if (call.attempt !== undefined) return
    call.attempt = this.attempts.length
    call.place = place
    this.attempts.push(call)
  }
}

const isFields = (value: unknown): value is Data => typeof value === "object" && value !== null && !Array.isArray(value)

const risksOf = (tools: unknown, into: Map<unknown, unknown>): void => {
  for (const tool of Array.isArray(tools) ? tools : []) if (isFields(tool)) into.set(tool["name"], tool["risk"])
}

const atOf = (start: number | undefined, { t_ms }: TraceRecord): number | undefined =>
  start !== undefined && Number.isFinite(start + t_ms) ? start + t_ms : undefined
