/**
 * What a recorded run had come to when it stopped: the context it had built, the turn whose calls were not all answered, and
 * what each of those calls is known to have come to. Folded from the run's trace; a run that was resumed before is several
 * traces in order. Reads records, opens nothing.
 */
import * as Result from "effect/Result"
import type { AssistantTurn, RenderOptions } from "../engine/codecs/Codec.ts"
import type { Answer } from "../tools/ToolCall.ts"
import type { Spent } from "./Limits.ts"
import { redactedReason } from "./trace/Concealed.ts"
import type { TraceRecord } from "./trace/TraceReader.ts"

export type PastEntry =
  | { readonly kind: "system"; readonly content: string }
  /** `reply`: to a question that was said. */
  | { readonly kind: "user"; readonly content: string; readonly reply?: true }
  | {
      readonly kind: "assistant"
      readonly role: string
      /** As it was generated. */
      readonly raw: string
      readonly turn: number
      /** Its parts, where nobody knows how it was generated: rendered as the model would have written it, and `raw` is not used. */
      readonly spoken?: AssistantTurn
      /** How its opening was rendered, where that is known. */
      readonly options?: RenderOptions
    }
  | {
      readonly kind: "tool"
      readonly callId: string
      readonly name: string
      readonly content: string
      /** The model's own id of the call. */
      readonly id?: string
    }
  | { readonly kind: "feedback"; readonly code: string; readonly content: string }
  /** Stands for exchanges that a compaction removed. */
  | { readonly kind: "marker"; readonly removed: number; readonly content: string }

export interface Past {
  /** The run that effects are keyed under: the first of the chain. */
  readonly rootRunId: string
  /** Parts of the logical run so far, those included that died before their first line. */
  readonly parts: number
  /** The run that is continued, and how many of its events were read. */
  readonly fromRunId: string
  readonly fromSeq: number
  readonly task: string
  readonly system: string
  readonly codec: string
  readonly toolsHash: string
  /** Redaction rules that were in force, by name. */
  readonly redact: ReadonlyArray<string>
  readonly entries: ReadonlyArray<PastEntry>
  /** The last kept turn, if it still waits for answers. */
  readonly openTurn: { readonly turn: number } | undefined
  /** What calls of the open turn came to, where that is certain without the ledger. */
  readonly answers: ReadonlyMap<string, Answer>
  readonly nextTurn: number
  /** Executions, in all parts. */
  readonly toolCalls: number
  /** What the parts have used, for a run that goes on with their budgets. */
  readonly spent?: Spent
  /** The last turn is, or holds, a question that was said: its calls were dropped, and the answer is a message. */
  readonly questioned?: boolean
  readonly completed: boolean
  /** All that comes before the next turn is in `entries`: no task is put before the model besides, and an answer at the end is one of before. */
  readonly conversation?: true
  /** The task comes after `entries`, and is put before the model as any task is. */
  readonly asks?: true
  /** Answers that come after `entries`, to the calls they end with; they are put before the model on the record. */
  readonly told?: ReadonlyArray<ToldAnswer>
}

/** An answer that somebody else than this runtime gave. */
export interface ToldAnswer {
  readonly callId: string
  readonly name: string
  readonly content: string
  /** The model's own id of the call. */
  readonly id?: string
}

interface Draft {
  rootRunId: string
  parts: number
  fromRunId: string
  fromSeq: number
  task: string
  system: string
  codec: string
  toolsHash: string
  redact: Array<string>
  entries: Array<PastEntry>
  openTurn: { turn: number } | undefined
  answers: Map<string, Answer>
  nextTurn: number
  spent: { toolCalls: number; repairs: number; wallMillis: number }
  questioned: boolean
  completed: boolean
  raw: string
  /** The run talks: nothing of that is in the context it goes on with. */
  chatting: boolean
  /** Calls of the turn that was kept last, and how many of them were refused. */
  turnCalls: { count: number; mistakes: number }
  /** Messages announced by events whose span has not been seen: a trace may end between the two. */
  pending: Array<PastEntry>
}

/** Failures that say nothing about what would have happened: such a call is performed again, or the ledger knows it. */
const unsettled = new Set(["cancelled", "not_executed", "outcome_unknown"])

const turnOf = (record: TraceRecord): number => Number(record.step.slice("model-".length))

const text = (value: unknown): string => {
  if (typeof value !== "string") throw new Hidden()
  return value
}

/** A content field that is a digest: the trace was written without content. */
class Hidden extends Error {}

const answerOf = ({ data }: TraceRecord): Answer | undefined => {
  if (data["ok"] === true) return { ok: true, result: data["payload"] as never }
  if (unsettled.has(String(data["failure_kind"])) || data["effect"] === "unknown") return undefined
  return JSON.parse(text(data["payload"])) as Answer
}

const onStateChanged = (draft: Draft, record: TraceRecord): void => {
  const role = String(record.data["role"])
  draft.entries.push(...draft.pending)
  draft.pending = []
  if (role === "tool_result" || role === "feedback") {
    draft.openTurn = undefined
    draft.answers.clear()
    const { count, mistakes } = draft.turnCalls
    if (role === "feedback" || (count > 0 && mistakes === count)) draft.spent.repairs++
  }
  if (!role.startsWith("assistant_")) return
  const turn = turnOf(record)
  draft.entries.push({ kind: "assistant", role, raw: draft.raw, turn })
  draft.nextTurn = turn + 1
  draft.questioned ||= role === "assistant_question"
  const waits = role === "assistant_tool_call" || role === "assistant_malformed"
  draft.openTurn = waits ? { turn } : undefined
}

const handlers: Readonly<Record<string, (draft: Draft, record: TraceRecord) => void>> = {
  run_started: (draft, { data }) => {
    draft.task = text(data["task"])
    if (Array.isArray(data["redact"])) draft.redact.push(...data["redact"].map(String))
  },
  provenance: (draft, { data }) => {
    draft.system = text(data["system"])
    draft.codec = String(data["codec"])
    draft.toolsHash = String(data["tools_hash"])
  },
  routed: (draft, { data, step }) => {
    // The model was asked before the record began.
    if (typeof data["duration_ms"] === "number") draft.spent.wallMillis += data["duration_ms"]
    draft.chatting = data["route"] === "chat"
    draft.entries = []
    if (step.startsWith("model-")) draft.nextTurn = Number(step.slice("model-".length)) + 1
  },
  model_call_started: (draft, { data }) => {
    draft.nextTurn = Math.max(draft.nextTurn, draft.chatting ? Number(data["turn"]) + 1 : 0)
  },
  assistant_action_parsed: (draft, { data }) => {
    draft.questioned = data["asks"] === true
    draft.turnCalls = { count: Number(data["count"]), mistakes: 0 }
  },
  message_committed: (draft, { data }) => {
    const content = text(data["content"])
    if (data["role"] === "tool_result") {
      draft.pending.push({ kind: "tool", callId: "", name: text(data["tool"]), content })
    } else if (data["role"] === "feedback") draft.pending.push({ kind: "feedback", code: "", content })
    if (data["role"] === "system") draft.pending.push({ kind: "system", content })
    if (data["role"] !== "user") return
    draft.pending.push({ kind: "user", content, ...(draft.questioned ? { reply: true } : {}) })
    draft.questioned = false
  },
  model_call_finished: (draft, { data }) => {
    draft.raw = text(data["text"])
  },
  session_state_changed: onStateChanged,
  tool_call_rejected: (draft, { data }) => {
    if (data["kind"] !== "dry_run") draft.turnCalls.mistakes++
    const errors = data["errors"] as Extract<Answer, { ok: false }>["errors"]
    const hint = data["hint"] === undefined ? {} : { retry_hint: text(data["hint"]) }
    draft.answers.set(String(data["call"]), { ok: false, kind: data["kind"] as never, errors, ...hint })
  },
  tool_execution_started: (draft) => {
    draft.spent.toolCalls++
    draft.spent.repairs = 0
  },
  tool_execution_finished: (draft, record) => {
    const answer = answerOf(record)
    if (answer !== undefined) draft.answers.set(String(record.data["call"]), answer)
  },
  tool_result_committed: (draft, { data }) => {
    const name = text(data["tool"])
    draft.pending.push({ kind: "tool", callId: String(data["call"]), name, content: text(data["answer"]) })
  },
  feedback_committed: (draft, { data }) => {
    draft.pending.push({ kind: "feedback", code: String(data["code"]), content: text(data["content"]) })
  },
  run_completed: (draft) => {
    draft.completed = true
  }
}

const empty = (parts: number): Draft => ({
  rootRunId: "",
  parts,
  fromRunId: "",
  fromSeq: 0,
  task: "",
  system: "",
  codec: "",
  toolsHash: "",
  redact: [],
  entries: [],
  openTurn: undefined,
  answers: new Map(),
  nextTurn: 0,
  spent: { toolCalls: 0, repairs: 0, wallMillis: 0 },
  questioned: false,
  completed: false,
  raw: "",
  chatting: false,
  turnCalls: { count: 0, mistakes: 0 },
  pending: []
})

/**
 * Folds the traces of one logical run, oldest first.
 * @returns the reason in words when they cannot be continued from
 */
export const fold = (traces: ReadonlyArray<ReadonlyArray<TraceRecord>>): Result.Result<Past, string> => {
  const draft = empty(traces.length)
  for (const [at, records] of traces.entries()) {
    const first = records[0]
    // A part that died before its first line has done nothing; it only took its name.
    if (first === undefined && at > 0) continue
    if (first?.event_type !== "run_started") return Result.fail("the trace does not begin with run_started")
    if (first.data["content"] !== true) {
      return Result.fail("the trace holds no content; only a run recorded with --trace-content can be resumed")
    }
    if (at === 0 && first.data["committed_len"] !== 0) {
      return Result.fail("the run continued a session whose beginning is not in this trace")
    }
    if (at === 0 && records.some(({ event_type }) => event_type === "run_resumed")) {
      return Result.fail(
        "the run filled a slot of a conversation file and is continued from there: run the file again (writ run FILE)"
      )
    }
    const redacted = redactedReason(records)
    if (redacted !== undefined) return Result.fail(redacted)
    draft.rootRunId ||= first.run_id
    draft.fromRunId = first.run_id
    draft.fromSeq = records.length
    draft.spent.wallMillis += records.at(-1)?.t_ms ?? 0
    draft.pending = []
    try {
      for (const record of records) handlers[record.event_type]?.(draft, record)
    } catch (error) {
      if (error instanceof Hidden) return Result.fail("the trace holds no content")
      throw error
    }
  }
  if (draft.chatting) {
    draft.entries = []
    draft.openTurn = undefined
  }
  if (draft.codec === "") return Result.fail("the trace ends before the run had begun; run the task again")
  if (draft.completed) return Result.fail("the run completed; there is nothing to resume")
  return Result.succeed({ ...draft, toolCalls: draft.spent.toolCalls })
}
