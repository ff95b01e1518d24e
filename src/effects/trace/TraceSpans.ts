/**
 * A recorded run as OpenTelemetry spans in the terms of the GenAI semantic conventions: the run is `invoke_agent`, each
 * attempt of a turn a `chat`, each execution an `execute_tool`. Spans and their ids follow from the record alone, so exporting
 * twice gives the same spans. Builds the OTLP/HTTP JSON body; sends nothing. Content only where the record has it.
 */
import { createHash } from "node:crypto"
import { entriesToAttributes, type KeyValue } from "effect/observability/OtlpResource"
import type { TraceRecord } from "./TraceReader.ts"
import { eventOf, fateOf, type TraceCall, type TraceRun, type TraceTurn } from "./TraceRun.ts"
import { isLeftOut } from "./TraceValues.ts"

export interface SpanEvent {
  readonly name: string
  readonly timeUnixNano: string
  readonly attributes: ReadonlyArray<KeyValue>
}

/** One span as OTLP's JSON has it. `kind` 1 is internal; `status.code` 1 is ok, 2 an error, 0 nothing said. */
export interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: 1
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: ReadonlyArray<KeyValue>
  readonly events: ReadonlyArray<SpanEvent>
  readonly status: { readonly code: 0 | 1 | 2; readonly message?: string }
}

export interface ExportBody {
  readonly resourceSpans: ReadonlyArray<{
    readonly resource: { readonly attributes: ReadonlyArray<KeyValue> }
    readonly scopeSpans: ReadonlyArray<{
      readonly scope: { readonly name: string; readonly version: string }
      readonly spans: ReadonlyArray<Span>
    }>
  }>
}

export interface SpanOptions {
  /** The moment the record began, in milliseconds since 1970. */
  readonly epochMillis: number
  /** Version of Writ that exports. */
  readonly version: string
}

type Attributes = Readonly<Record<string, unknown>>

/** Ids are digests of what they name: 32 and 16 hexadecimal digits. */
const idOf = (length: 16 | 32, ...parts: ReadonlyArray<string | number>): string =>
  createHash("sha256").update(parts.join("\u0000")).digest("hex").slice(0, length)

/** What is there and is no stand-in for content. */
const attributes = (values: Attributes): ReadonlyArray<KeyValue> =>
  entriesToAttributes(
    Object.entries(values).filter(([, value]) => value !== undefined && value !== null && !isLeftOut(value))
  )

/** Structured content goes into one attribute as JSON. */
const json = (value: unknown): string | undefined =>
  value === undefined || isLeftOut(value) ? undefined : typeof value === "string" ? value : JSON.stringify(value)

const data = (record: TraceRecord | undefined): Attributes => record?.data ?? {}

const providerOf = (model: Attributes): string =>
  model["engine"] === "llama" || model["engine"] === undefined ? "llama.cpp" : String(model["engine"])

const modelOf = (run: TraceRun): Attributes => {
  const { model } = data(run.provenance)
  return typeof model === "object" && model !== null ? (model as Attributes) : {}
}

class Spans {
  readonly #run: TraceRun
  readonly #epoch: number
  readonly #traceId: string
  readonly #root: string
  readonly #last: TraceRecord | undefined

  constructor(run: TraceRun, epochMillis: number) {
    this.#run = run
    this.#epoch = epochMillis
    // The parts of a chain of resumed runs are one trace.
    this.#traceId = idOf(32, "trace", String(data(run.resumed)["root_run"] ?? run.runId))
    this.#root = idOf(16, "run", run.runId)
    this.#last = run.records.at(-1)
  }

  /** Nanoseconds since 1970 as decimal digits: more than a number can hold. */
  #nanos(record: TraceRecord | undefined): string {
    return String(BigInt(Math.round((this.#epoch + (record?.t_ms ?? 0)) * 1000)) * 1000n)
  }

  #span(
    id: string,
    parent: string | undefined,
    name: string,
    times: readonly [TraceRecord | undefined, TraceRecord | undefined],
    values: Attributes,
    error: string | undefined,
    events: ReadonlyArray<SpanEvent> = []
  ): Span {
    return {
      traceId: this.#traceId,
      spanId: id,
      ...(parent === undefined ? {} : { parentSpanId: parent }),
      name,
      kind: 1,
      startTimeUnixNano: this.#nanos(times[0]),
      endTimeUnixNano: this.#nanos(times[1] ?? this.#last),
      attributes: attributes({ ...values, "error.type": error }),
      events,
      status: error === undefined ? { code: 0 } : { code: 2 }
    }
  }

  /** A message, if the run was recorded with content. */
  #said(role: string, text: unknown, finish?: string): string | undefined {
    return this.#run.content ? messages(role, text, finish) : undefined
  }

  #model(): Attributes {
    const model = modelOf(this.#run)
    const { name } = model
    return { "gen_ai.provider.name": providerOf(model), "gen_ai.request.model": name }
  }

  /** The run itself. */
  run(): Span {
    const { codec, policy, tools_hash } = data(this.#run.provenance)
    const { from_run } = data(this.#run.resumed)
    const terminal = this.#run.terminal
    const { final_text, output_tokens } = data(terminal)
    const values = {
      "gen_ai.operation.name": "invoke_agent",
      ...this.#model(),
      "gen_ai.agent.name": "writ",
      "gen_ai.agent.id": this.#run.runId,
      "gen_ai.conversation.id": String(data(this.#run.resumed)["root_run"] ?? this.#run.runId),
      "gen_ai.usage.output_tokens": output_tokens ?? sum(this.#run, "output_tokens"),
      "gen_ai.input.messages": this.#said("user", data(this.#run.started)["task"]),
      "gen_ai.output.messages": this.#said("assistant", final_text, "stop"),
      "writ.codec": codec,
      "writ.policy": policy,
      "writ.tools_hash": tools_hash,
      "writ.outcome": terminal?.event_type ?? "unfinished",
      "writ.resumed_from": from_run
    }
    const times = [this.#run.records[0], terminal] as const
    return this.#span(this.#root, undefined, "invoke_agent writ", times, values, errorOf(this.#run), this.#events())
  }

  /** What is worth a mark on the run: calls that never ran, decisions, late outcomes. */
  #events(): ReadonlyArray<SpanEvent> {
    const marked = new Set([
      "tool_call_rejected",
      "approval_decided",
      "retry_scheduled",
      "effect_probed",
      "effect_escalated",
      "late_outcome",
      "call_skipped",
      "turn_rolled_back"
    ])
    return this.#run.records
      .filter(({ event_type: type }) => marked.has(type))
      .map((record) => {
        const {
          attempt,
          by,
          call,
          class: failure,
          decision,
          delay_ms,
          found,
          kind,
          ok,
          reason,
          stage,
          tool
        } = record.data
        return {
          name: `writ.${record.event_type}`,
          timeUnixNano: this.#nanos(record),
          attributes: attributes({
            "gen_ai.tool.call.id": call,
            "gen_ai.tool.name": tool,
            "writ.kind": kind,
            "writ.class": failure,
            "writ.stage": stage,
            "writ.attempt": attempt,
            "writ.delay_ms": delay_ms,
            "writ.found": found,
            "writ.decision": decision,
            "writ.by": by,
            "writ.ok": ok,
            // A reason that Writ gives is a code; one in words is content and is not here.
            "writ.reason": record.event_type === "tool_call_rejected" ? undefined : reason
          })
        }
      })
  }

  /** The attempts of a turn, those before a restart of the engine too. One that was rolled back ends with an error. */
  chats(turn: TraceTurn): ReadonlyArray<Span> {
    const died = turn.died.flatMap((tried, at) => this.#tried({ ...turn, ...tried, parsed: undefined }, at))
    return [...died, ...this.#tried(turn, turn.died.length)]
  }

  #tried({ finished, parsed, rolledBack, started, turn }: TraceTurn, tried: number): ReadonlyArray<Span> {
    const sampling = data(this.#run.provenance)["sampling"] as Attributes | undefined
    const { name } = modelOf(this.#run)
    return started.map((begin, at) => {
      const end = finished.find((record) => record.data["attempt"] === begin.data["attempt"])
      const { output_tokens, prefill_ms, prefill_tokens, stop_reason, text } = data(end)
      const last = at === started.length - 1
      const error = last && rolledBack !== undefined ? String(rolledBack.data["reason"] ?? "rolled_back") : undefined
      const values = {
        "gen_ai.operation.name": "chat",
        ...this.#model(),
        "gen_ai.conversation.id": this.#run.runId,
        "gen_ai.request.seed": begin.data["seed"] ?? sampling?.["seed"],
        "gen_ai.request.max_tokens": begin.data["max_tokens"],
        "gen_ai.request.temperature": sampling?.["temperature"],
        "gen_ai.request.top_k": sampling?.["topK"],
        "gen_ai.request.top_p": sampling?.["topP"],
        "gen_ai.response.finish_reasons": end === undefined ? undefined : [finishOf(stop_reason, parsed)],
        "gen_ai.usage.input_tokens": inputTokens(begin, end),
        "gen_ai.usage.output_tokens": output_tokens,
        "gen_ai.output.messages": this.#said("assistant", text, finishOf(stop_reason, parsed)),
        "writ.turn": turn,
        "writ.attempt": begin.data["attempt"],
        "writ.prefill_tokens": prefill_tokens,
        "writ.prefill_ms": prefill_ms,
        "writ.constrained": begin.data["constrained"],
        "writ.action": last ? parsed?.data["action"] : undefined
      }
      const attempt = String(begin.data["attempt"])
      const id = idOf(16, "chat", this.#run.runId, turn, tried === 0 ? attempt : `${attempt}.${tried}`)
      return this.#span(id, this.#root, named("chat", name), [begin, end ?? rolledBack], values, error)
    })
  }

  /** The execution of a call, if it came to one. */
  tool(call: TraceCall): ReadonlyArray<Span> {
    const started = eventOf(call, "tool_execution_started")
    if (started === undefined) return []
    const finished = eventOf(call, "tool_execution_finished")
    const { class: failure, effect, failure_kind, ok, payload, payload_bytes, stage } = data(finished)
    const { evidence, status } = data(eventOf(call, "effect_settled"))
    const validated = eventOf(call, "tool_call_validated")
    const error = finished === undefined ? "unfinished" : ok === true ? undefined : String(failure_kind ?? "unknown")
    const values = {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": call.tool,
      "gen_ai.tool.type": "function",
      "gen_ai.tool.call.id": call.id,
      "gen_ai.tool.call.arguments": this.#run.content ? json(validated?.data["arguments"]) : undefined,
      "gen_ai.tool.call.result": this.#run.content ? json(payload) : undefined,
      "writ.turn": call.turn,
      "writ.risk": validated?.data["risk"],
      "writ.fate": fateOf(call, this.#run),
      "writ.effect": effect,
      "writ.class": failure,
      "writ.stage": stage,
      "writ.attempts": call.events.filter(({ event_type: type }) => type === "effect_intent").length || undefined,
      "writ.status": status,
      "writ.evidence": (evidence as Attributes | undefined)?.["source"],
      "writ.result_bytes": payload_bytes,
      "writ.artifacts": call.events
        .filter(({ event_type: type }) => type === "artifact_written")
        .map((record) => String(record.data["sha256"]))
    }
    const id = idOf(16, "tool", this.#run.runId, call.id)
    return [this.#span(id, this.#root, named("execute_tool", call.tool), [started, finished], values, error)]
  }
}

const named = (operation: string, what: unknown): string =>
  typeof what === "string" ? `${operation} ${what}` : operation

const sum = (run: TraceRun, field: string): number =>
  run.records.reduce(
    (total, { data: fields }) => total + (typeof fields[field] === "number" ? (fields[field] as number) : 0),
    0
  )

/** Everything the model read: what was in the context, and what was evaluated to open the turn. */
const inputTokens = (begin: TraceRecord, end: TraceRecord | undefined): number | undefined => {
  const [held, opened] = [begin.data["committed_len"], end?.data["prefill_tokens"]]
  if (typeof held !== "number") return typeof opened === "number" ? opened : undefined
  return held + (typeof opened === "number" ? opened : 0)
}

/** The conventions' words for why a turn ended. */
const finishOf = (reason: unknown, parsed: TraceRecord | undefined): string => {
  if (reason === "length") return "length"
  return parsed?.data["action"] === "tool_calls" ? "tool_calls" : "stop"
}

/** Messages in the form of the conventions; nothing where the record has no content. */
const messages = (role: string, text: unknown, finish?: string): string | undefined =>
  typeof text === "string"
    ? JSON.stringify([
        { role, parts: [{ type: "text", content: text }], ...(finish === undefined ? {} : { finish_reason: finish }) }
      ])
    : undefined

/** A run that asks or waits has not failed. */
const errorOf = ({ terminal }: TraceRun): string | undefined => {
  const { class: kind, limit_hit, reason } = data(terminal)
  if (terminal === undefined) return "unfinished"
  if (terminal.event_type === "run_failed") return String(kind ?? "failed")
  if (terminal.event_type === "run_cancelled") return "cancelled"
  return terminal.event_type === "run_terminated" ? String(limit_hit ?? reason ?? "terminated") : undefined
}

/** The spans of a run: its own first, then turns and executions. */
export const spansOf = (run: TraceRun, { epochMillis }: Pick<SpanOptions, "epochMillis">): ReadonlyArray<Span> => {
  if (run.records.length === 0) return []
  const spans = new Spans(run, epochMillis)
  return [
    spans.run(),
    ...run.turns.flatMap((turn) => spans.chats(turn)),
    ...run.calls.flatMap((call) => spans.tool(call))
  ]
}

/** What is posted to `/v1/traces`. */
export const exportBody = (run: TraceRun, options: SpanOptions): ExportBody => ({
  resourceSpans: [
    {
      resource: { attributes: attributes({ "service.name": "writ", "service.version": options.version }) },
      scopeSpans: [{ scope: { name: "effect-writ", version: options.version }, spans: spansOf(run, options) }]
    }
  ]
})
