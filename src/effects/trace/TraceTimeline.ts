/**
 * A trace in words: one row per event a person cares about, and what the run came to. Knows both schemas' names for the
 * same thing; what it does not know it shows by its type. Reads content only to show it, and without content says so.
 */
import { replacements } from "./Concealed.ts"
import { emberSchema } from "./EmberTrace.ts"
import type { TraceRecord } from "./TraceReader.ts"
import { isHidden, join, millis, notRecorded, num, show, type Tone, type Words } from "./TraceShown.ts"
import { around } from "./TraceTimelineAround.ts"

export { show, type Tone } from "./TraceShown.ts"

export interface Row {
  /** Seconds since the run began. */
  readonly seconds: number
  readonly label: string
  readonly detail: string
  readonly tone: Tone
}

/** How a trace ends. `unfinished`: no terminal event, so the process died, was killed, or is still at it. */
export type Status =
  | "completed"
  | "needs input"
  | "awaiting approval"
  | "cancelled"
  | "limit"
  | "context exhausted"
  | "loop detected"
  | "escalated"
  | "failed"
  | "unfinished"

export interface Summary {
  readonly schema: string | undefined
  readonly runIds: ReadonlyArray<string>
  readonly status: Status
  /** What belongs to the status: where it was cancelled, which limit, the error. */
  readonly statusDetail: string
  readonly model: string | undefined
  readonly codec: string | undefined
  readonly content: boolean | undefined
  readonly events: number
  readonly turns: number
  readonly toolCalls: number
  readonly rejected: number
  readonly artifacts: number
  readonly outputTokens: number
  /** Replacements that redaction rules made in the record. */
  readonly redactions: number
  readonly modelMillis: number
  readonly toolMillis: number
  readonly seconds: number
}

type Data = TraceRecord["data"]

/** A system text that nobody wrote. */
const isEmpty = (value: unknown): boolean => value === "" || (isHidden(value) && value.bytes === 0)

const problems = (data: Data): string => {
  const { errors } = data
  if (!Array.isArray(errors)) return show(data["reason"])
  return errors.map((error: Data) => join(show(error["path"]), show(error["reason"])).replace(" · ", ": ")).join("; ")
}

const finished = (data: Data): Words => {
  const result = data["payload"] ?? data["payload_excerpt"]
  const kind = show(data["failure_kind"])
  return data["ok"] === true
    ? ["ok", join(show(data["tool"]), millis(data["duration_ms"]), show(result)), "good"]
    : ["failed", join(show(data["tool"]), kind, millis(data["duration_ms"]), show(result)), "bad"]
}

const turn = (record: TraceRecord): string => {
  const named = record.data["turn"] ?? record.data["step_index"] ?? /^model-(\d+)$/.exec(record.step)?.[1]
  return named === undefined ? "model" : `turn ${Number(named) + 1}`
}

const spoke = (record: TraceRecord): Words => {
  const { data } = record
  const tokens = num(data["output_tokens"] ?? data["output_tokens_committed"])
  const stop = show(data["stop_reason"])
  const time = millis(num(data["prefill_ms"]) + num(data["decode_ms"]))
  return [`${turn(record)} done`, join(`${tokens} tokens`, time, stop === "length" ? "cut at the token limit" : "")]
}

const parsed = (data: Data): Words | undefined => {
  if (data["action"] === "malformed" || data["action"] === "malformed_tool_call") {
    return ["MALFORMED", join(show(data["code"]), show(data["reason"])), "bad"]
  }
  if (data["asks"] === true) return ["asks", join(`${show(data["count"])} calls dropped`, show(data["text"]))]
  // One call needs no announcement: its own row follows.
  if (data["action"] !== "tool_calls" || (num(data["count"]) < 2 && data["text"] === undefined)) return undefined
  return ["calls", join(show(data["count"]), show(data["text"]))]
}

const afterWords = (after: unknown): string =>
  ({ approval: "the approval", calls: "other calls", queue: "waiting in line", backoff: "a wait" })[show(after)] ??
  show(after)

const tries = (attempts: unknown): string =>
  Array.isArray(attempts) && attempts.length !== 1 ? `${attempts.length} tries` : "one try"

const stageOf = (data: Data): string => {
  const [kind, stage] = [show(data["class"]), show(data["stage"])]
  return kind === "" || stage === "" ? "" : `${kind}, by ${stage}`
}

const judgedBy = ({ evidence }: Data): string => {
  const { describes, source } = Object(evidence) as Data
  return source === undefined ? "" : `success is judged by ${show(source)}: ${show(describes)}`
}

/** What is illegal, or stands out; legal calls have a row of their own. */
const checked = (data: Data): Words | undefined => {
  const { blocked_by: blocked, cause, follows_refusal_of: refusal, resembles } = data
  const notes = [
    ...(refusal === undefined ? [] : [`follows the refusal at ${show(refusal)}`]),
    ...(resembles === undefined ? [] : [`resembles the proposal at ${show(resembles)}`])
  ]
  if (cause === "superseded_by_ledger")
    return ["known key", join(show(data["tool"]), "the ledger has this attempt", ...notes)]
  const failed = Array.isArray(blocked) && blocked.length > 0 ? `blocked by ${blocked.map(show).join(", ")}` : ""
  if (failed === "" && cause === undefined) {
    return notes.length === 0 ? undefined : ["notice", join(show(data["tool"]), ...notes)]
  }
  return ["not legal", join(show(data["tool"]), show(cause), failed, ...notes), "bad"]
}

const scored = (data: Data): Words => {
  const candidates = Array.isArray(data["candidates"]) ? (data["candidates"] as ReadonlyArray<Data>) : []
  const { call, chosen } = data
  const worth = candidates.map(({ id, score }) => `${show(id)} ${score === null ? "forbidden" : show(score)}`)
  const lost = call !== undefined && chosen !== call
  return [
    lost ? "NOT CHOSEN" : "weighed",
    join(`${show(chosen) || "nothing"} is best`, worth.join(", ")),
    lost ? "bad" : "plain"
  ]
}

const settled = (data: Data): Words => {
  const { source, seen } = Object(data["evidence"]) as Data
  const evidence = source === undefined ? "" : `by ${show(source)}${seen === undefined ? "" : `: ${show(seen)}`}`
  const status = show(data["status"] ?? data["outcome"])
  const before = data["replayed"] === true ? "known from before" : ""
  const detail = join(show(data["tool"]), status, evidence, before)
  return data["outcome"] === "unknown" ? ["settled", detail, "bad"] : ["settled", detail]
}

/** Words for each event; `undefined` leaves it out. */
const words: Readonly<Record<string, (record: TraceRecord) => Words | undefined>> = {
  ...around,
  run_started: ({ data }) => ["run start", show(data["task"])],
  run_resumed: ({ data }) => [
    "resumed",
    join(
      `from ${show(data["from_run"])}`,
      data["kept_state"] === undefined ? "" : `kept state ${show(data["kept_state"])}`
    )
  ],
  provenance: () => undefined,
  message_committed: ({ data, schema }) => {
    // The task is in the first event, but not in Ember's.
    if (schema === emberSchema) return [show(data["role"]), show(data["content"]) || notRecorded(data["bytes"])]
    return data["role"] === "user" || isEmpty(data["content"])
      ? undefined
      : [show(data["role"]), show(data["content"]), "quiet"]
  },
  session_state_changed: () => undefined,
  model_call_started: (record) => [`${turn(record)} start`, "", "quiet"],
  generation_token: () => undefined,
  candidate_sampled: (record) => [
    "sampled",
    join(`${turn(record)}, ${show(record.data["id"])}`, show(record.data["action"]), show(record.data["text"])),
    "quiet"
  ],
  model_call_finished: spoke,
  turn_rolled_back: ({ data }) => ["rolled back", show(data["reason"]), "bad"],
  assistant_action_parsed: ({ data }) => parsed(data),
  legality_checked: ({ data }) => checked(data),
  precondition_checked: ({ data }) => {
    const again = join(show(data["tool"]), `precondition looked at again after ${afterWords(data["after"])}`)
    return data["pre"] === "fail" ? ["NOT READY", again, "bad"] : ["still ready", again, "quiet"]
  },
  proposal_scored: ({ data }) => scored(data),
  tool_call_validated: ({ data }) => ["call", join(show(data["tool"]), show(data["arguments"]))],
  tool_call_rejected: ({ data }) => [
    "REJECTED",
    join(show(data["tool"]), `[${show(data["kind"])}]`, stageOf(data), problems(data), show(data["hint"])),
    "bad"
  ],
  approval_requested: ({ data }) => ["ask", join(`may ${show(data["tool"])} run?`, judgedBy(data))],
  approval_decided: ({ data }) => [
    "decided",
    join(`${show(data["decision"])} by ${show(data["by"])}`, data["expired"] === true ? "too late to count" : "")
  ],
  effect_intent: ({ data }) => [
    num(data["attempt"]) > 1 ? "try again" : "intent",
    join(
      show(data["tool"]),
      show(data["mode"]),
      num(data["attempt"]) > 1 ? `try ${show(data["attempt"])}` : "",
      data["compensates"] === undefined ? "" : `undoes ${show(data["compensates"])}`
    )
  ],
  effect_accepted: ({ data }) => [
    "accepted",
    join(show(data["tool"]), `done is not seen yet; looked for up to ${millis(data["settle_within_ms"])}`)
  ],
  effect_probed: ({ data }) => [
    "looked",
    join(show(data["tool"]), `its effect is ${show(data["found"]) || "unclear"}`)
  ],
  retry_scheduled: ({ data }) => [
    "retry",
    join(
      show(data["tool"]),
      `try ${num(data["attempt"]) + 1} of ${show(data["of"])} in ${millis(data["delay_ms"])}`,
      show(data["class"])
    )
  ],
  effect_settled: ({ data }) => settled(data),
  effect_escalated: ({ data }) => [
    "ESCALATED",
    join(show(data["tool"]), `nobody here knows its outcome, after ${tries(data["attempts"])}`),
    "bad"
  ],
  tool_execution_started: ({ data }) => ["execute", show(data["tool"]), "quiet"],
  tool_execution_finished: ({ data }) => finished(data),
  artifact_written: ({ data }) => [
    "artifact",
    join(
      show(data["name"] ?? data["artifact_id"]),
      `${show(data["size_bytes"])} bytes`,
      show(data["sha256"]).slice(0, 12)
    ),
    "good"
  ],
  late_outcome: ({ data }) => [
    "late",
    join(show(data["tool"]), data["ok"] === true ? "succeeded after its deadline" : show(data["failure_kind"])),
    "bad"
  ],
  tool_result_committed: ({ data }) =>
    data["truncated"] === true ? ["shortened", `${show(data["tool"])}: the model saw head and tail only`] : undefined,
  tool_result_uncommitted: ({ data }) => [
    "UNCOMMITTED",
    join(show(data["tool"]), `effect ${show(data["effect"]) || "unknown"}`, show(data["reason"])),
    "bad"
  ],
  call_skipped: ({ data }) => ["skipped", join(show(data["tool"]), show(data["reason"])), "bad"],
  feedback_committed: ({ data }) => ["feedback", join(show(data["code"]), show(data["content"]))],
  feedback_uncommitted: ({ data }) => ["feedback not given", show(data["code"]), "bad"],
  run_completed: ({ data }) => [
    "final answer",
    data["final_text"] === undefined ? notRecorded(undefined) : show(data["final_text"]),
    "good"
  ],
  run_needs_input: ({ data }) => ["ASKS", show(data["question"])],
  run_awaiting_approval: ({ data }) => ["AWAITS APPROVAL", show(data["call"])],
  run_cancelled: ({ data }) => ["CANCELLED", `at ${show(data["at"])}`, "bad"],
  run_terminated: ({ data }) => [
    "STOPPED",
    join(show(data["reason"]), show(data["limit_hit"]), show(data["detail"]), show(data["partial_text"])),
    "bad"
  ],
  run_failed: ({ data }) => ["RUN FAILED", join(show(data["class"]), show(data["error"])), "bad"]
}

/** The row of an event, or `undefined` for bookkeeping. Events of unknown types are shown by their type. */
export const rowOf = (record: TraceRecord): Row | undefined => {
  const describe = Object.hasOwn(words, record.event_type) ? words[record.event_type] : undefined
  const found: Words | undefined =
    describe === undefined ? [record.event_type, show(record.data), "quiet"] : describe(record)
  if (found === undefined) return undefined
  const [label, detail, tone = "plain"] = found
  return { seconds: record.t_ms / 1000, label, detail, tone }
}

const statuses: Readonly<Record<string, Status>> = {
  run_completed: "completed",
  run_needs_input: "needs input",
  run_awaiting_approval: "awaiting approval",
  run_cancelled: "cancelled",
  run_failed: "failed"
}

const statusOf = ({ data, event_type }: TraceRecord): Status => {
  if (event_type !== "run_terminated") return statuses[event_type] ?? "unfinished"
  const reason = data["reason"]
  if (reason === "context_exhausted") return "context exhausted"
  if (reason === "loop_detected") return "loop detected"
  return reason === "escalated" ? "escalated" : "limit"
}

const isTerminal = (type: string): boolean => type === "run_terminated" || Object.hasOwn(statuses, type)

/** Counts what a run came to while its events go by. */
export class Totals {
  #schema: string | undefined
  #runIds = new Set<string>()
  #status: Status = "unfinished"
  #detail = ""
  #model: string | undefined
  #codec: string | undefined
  #content: boolean | undefined
  readonly #counts = {
    events: 0,
    turns: 0,
    toolCalls: 0,
    rejected: 0,
    artifacts: 0,
    outputTokens: 0,
    redactions: 0,
    modelMillis: 0,
    toolMillis: 0
  }
  #seconds = 0

  readonly add = (record: TraceRecord): void => {
    const { data, event_type: type } = record
    const counts = this.#counts
    this.#schema ??= record.schema
    this.#runIds.add(record.run_id)
    this.#seconds = Math.max(this.#seconds, record.t_ms / 1000)
    counts.events += 1
    if (type === "run_started") this.#content ??= typeof data["content"] === "boolean" ? data["content"] : undefined
    if (type === "provenance") this.#provenance(data)
    if (type === "model_call_started" && data["attempt"] !== 1) counts.turns += 1
    if (type === "model_call_finished") {
      counts.outputTokens += num(data["output_tokens"] ?? data["output_tokens_committed"])
      counts.modelMillis += num(data["prefill_ms"]) + num(data["decode_ms"])
    }
    if (type === "tool_execution_finished") {
      counts.toolCalls += 1
      counts.toolMillis += num(data["duration_ms"])
    }
    if (type === "tool_call_rejected" || data["action"] === "malformed") counts.rejected += 1
    if (type === "artifact_written") counts.artifacts += 1
    if (record.redacted !== undefined) counts.redactions += replacements(record)
    if (isTerminal(type)) {
      this.#status = statusOf(record)
      this.#detail = show(data["at"] ?? data["limit_hit"] ?? data["detail"] ?? data["error"] ?? data["question"])
      // The run's own counts also cover prefill outside of turns.
      counts.modelMillis = num(data["model_ms"]) || counts.modelMillis
    }
  }

  #provenance(data: Data): void {
    const model = data["model"]
    if (typeof model === "object" && model !== null) {
      const { model_path, name } = model as Data
      this.#model ??= show(name ?? model_path) || undefined
    }
    this.#codec ??= show(data["codec"] ?? data["protocol_id"]) || undefined
  }

  get summary(): Summary {
    return {
      schema: this.#schema,
      runIds: [...this.#runIds],
      status: this.#status,
      statusDetail: this.#detail,
      model: this.#model,
      codec: this.#codec,
      content: this.#content,
      ...this.#counts,
      seconds: this.#seconds
    }
  }
}
