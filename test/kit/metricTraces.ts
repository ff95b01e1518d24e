/** Traces written by hand, call by call, for what is counted in them. Every event is checked against the vocabulary. */
import * as Schema from "effect/Schema"
import { type EventData, type EventType, schemaId, vocabulary } from "../../src/actors/TraceEvent.ts"
import { chain, type EditableLine } from "./corrupt.ts"

type Status = NonNullable<EventData<"effect_settled">["status"]>
type Claim = "none" | "present" | "unknown"

export interface WrittenEffect {
  readonly key?: string
  readonly mode?: string
  /** What the execution said; `undefined`: it has no end on record. */
  readonly ok?: boolean | undefined
  readonly effect?: Claim
  readonly class?: EventData<"tool_call_rejected">["class"]
  readonly stage?: EventData<"tool_execution_finished">["stage"]
  /** `undefined`: no settlement at all. */
  readonly status?: Status | undefined
  /** Settled as an old trace has it, by outcome only. */
  readonly outcome?: "succeeded" | "failed" | "unknown"
  readonly compensates?: string
  readonly accepted?: boolean
  /** Tries before this one that were left without an answer. */
  readonly lost?: number
}

export interface WrittenOptions {
  readonly content?: boolean
  /** Milliseconds since 1970. */
  readonly began?: number
  readonly limits?: EventData<"run_started">["limits"]
}

const limits = { modelTurns: 8, toolCalls: 16, wallMillis: 60_000, outputTokens: 512, thinkTokens: null }
const digest = (text: string): string => Buffer.from(text).toString("hex").padEnd(64, "0").slice(0, 64)
const hidden = { bytes: 1, hmac: "0".repeat(64) }

/** A run that is being written. Each call is a turn of its own. */
export class Written {
  readonly #runId: string
  readonly #began: number
  readonly #content: boolean
  readonly #lines: Array<EditableLine> = []
  #turn = 0
  #executions = 0

  constructor(runId: string, { began = 1_000, content = true, limits: given = limits }: WrittenOptions = {}) {
    this.#runId = runId
    this.#began = began
    this.#content = content
    const about = { calls: "sequential", render: "verbatim", content, committed_len: 0 } as const
    this.event("run_started", "run", { task: content ? "t" : hidden, limits: given, ...about })
  }

  readonly event = <T extends EventType>(type: T, step: string, data: EventData<T>): this => {
    Schema.decodeUnknownSync(vocabulary[type] as Schema.Codec<unknown>, { onExcessProperty: "error" })(data)
    const seq = this.#lines.length
    const at = { t_ms: seq, ts_epoch_ms: this.#began + seq }
    const about = { schema: schemaId, run_id: this.#runId, seq, event_type: type }
    this.#lines.push({ ...about, ...at, step, phase: null, data: data as Record<string, unknown>, prev: "" })
    return this
  }

  /** The call of the turn that was begun last. */
  get call(): string {
    return `call-${this.#turn - 1}-0`
  }

  get #step(): string {
    return `model-${this.#turn - 1}`
  }

  readonly turn = (): this => {
    const turn = this.#turn++
    return this.event("model_call_started", `model-${turn}`, {
      turn,
      attempt: 0,
      seed: turn,
      max_tokens: 9,
      committed_len: 0
    })
  }

  readonly checked = (tool: string, found: Partial<EventData<"legality_checked">> = {}): this => {
    const all = { schema: "pass", scopes: "pass", pre: "pass" } as const
    return this.event("legality_checked", this.#step, { call: this.call, ordinal: 0, tool, ...all, ...found })
  }

  readonly #admitted = (tool: string, risk: string): this =>
    this.turn()
      .checked(tool)
      .event("tool_call_validated", this.#step, { call: this.call, tool, risk, arguments: hidden })

  readonly rejected = (
    found: Partial<EventData<"legality_checked">>,
    kind: string,
    data: Partial<EventData<"tool_call_rejected">> = {}
  ): this =>
    this.turn()
      .checked("tool", found)
      .event("tool_call_rejected", this.#step, {
        call: this.call,
        ordinal: 0,
        tool: "tool",
        kind,
        errors: [],
        ...data
      })

  /** A turn that was not understood, with the attempt's own record or, as it used to be, without. */
  readonly malformed = (checked = true): this => {
    this.turn().event("assistant_action_parsed", this.#step, { action: "malformed", count: 0, code: "json" })
    const not = "not_evaluated"
    return checked ? this.checked("tool", { schema: not, scopes: not, pre: not, cause: "malformed" }) : this
  }

  readonly started = (tool: string): this =>
    this.event("tool_execution_started", `tool-${this.#executions++}`, {
      call: this.call,
      tool,
      call_seq: this.#executions,
      deadline_ms: 1
    })

  readonly finished = (tool: string, ok: boolean, data: Partial<EventData<"tool_execution_finished">> = {}): this =>
    this.event("tool_execution_finished", `tool-${this.#executions - 1}`, {
      call: this.call,
      tool,
      call_seq: this.#executions,
      ok,
      duration_ms: 1,
      failure_kind: ok ? null : "execution_failed",
      effect: ok ? null : "none",
      payload: hidden,
      payload_bytes: 1,
      artifact_ids: [],
      ...data
    })

  readonly read = (ok = true): this => this.#admitted("look", "read").started("look").finished("look", ok)

  readonly effect = (told: WrittenEffect = {}): this => {
    this.#admitted("act", "external")
    const settled = "status" in told || told.outcome !== undefined
    const { lost = 0, mode = "external", ok = true } = told
    const intent = { call: this.call, tool: "act", key: digest(told.key ?? `${this.#runId}${this.call}`), mode }
    const compensates = told.compensates === undefined ? {} : { compensates: told.compensates }
    // Without a status the trace is as it was before there were any, and before tries were numbered.
    const numbered = (attempt: number) => (told.outcome === undefined ? { attempt } : {})
    this.event("effect_intent", this.#step, { ...intent, ...numbered(1), ...compensates }).started("act")
    for (let attempt = 1; attempt <= lost; attempt++) {
      const about = { call: this.call, tool: "act", attempt, of: 4, delay_ms: 1, class: "timeout" } as const
      this.event("retry_scheduled", this.#step, about)
      this.event("effect_intent", this.#step, { ...intent, ...numbered(attempt + 1), ...compensates })
    }
    if (told.accepted === true) {
      this.event("effect_accepted", this.#step, { call: this.call, tool: "act", settle_within_ms: 1 })
    }
    const failure = {
      effect: told.effect ?? "unknown",
      ...(told.class === undefined ? {} : { class: told.class }),
      ...(told.stage === undefined ? {} : { stage: told.stage })
    }
    const hasEnd = !("ok" in told) || told.ok !== undefined
    if (hasEnd) this.finished("act", ok, ok ? {} : failure)
    const outcome = told.outcome ?? (ok ? "succeeded" : "unknown")
    const status = told.status ?? (settled ? undefined : ok ? "settled_ok" : undefined)
    if (status === undefined && told.outcome === undefined) return this
    const key = { call: this.call, tool: "act", key: intent.key, outcome, replayed: false }
    return this.event("effect_settled", this.#step, { ...key, ...(status === undefined ? {} : { status }) })
  }

  readonly end = (): this =>
    this.event("run_completed", "finalize", {
      turns: this.#turn,
      tool_calls: this.#executions,
      rejected_calls: 0,
      skipped_calls: 0,
      artifacts: 0,
      output_tokens: 0,
      model_ms: 0,
      tool_ms: 0,
      total_ms: 0,
      events: this.#lines.length,
      final_text: this.#content ? "" : hidden
    })

  get text(): string {
    return chain(this.#lines)
  }
}

/** `schema` of `attempts` attempts violate the schema, evenly spread; the rest are reads that succeed. */
export const oracle = (
  schema: number,
  attempts: number,
  options: WrittenOptions & { readonly runId?: string } = {}
): Written => {
  const run = new Written(options.runId ?? "oracle", options)
  const every = Math.floor(attempts / schema)
  for (let at = 1; at <= attempts; at++) {
    if (at % every === 0 && at / every <= schema) {
      const found = {
        schema: "fail",
        scopes: "not_evaluated",
        pre: "not_evaluated",
        cause: "invalid_arguments"
      } as const
      run.rejected({ ...found, blocked_by: ["schema"] }, "invalid_arguments", { class: "schema", stage: "schema" })
    } else run.read()
  }
  return run.end()
}
