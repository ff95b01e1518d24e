/** What is known of a run from the events so far: what the checks share. Holds the open turn, not the turns before it. */
import type { EventData, EventType } from "../../../actors/TraceEvent.ts"
import type { TraceRecord } from "../TraceReader.ts"
import type { KnownTool, RunGates } from "./RunGates.ts"

export type Data = TraceRecord["data"]

/** A record whose type and fields were found to be those of the vocabulary. */
export type KnownRecord = {
  readonly [T in EventType]: Omit<TraceRecord, "event_type" | "data"> & {
    readonly event_type: T
    readonly data: EventData<T>
  }
}[EventType]

/** The model turn that is under way. */
export interface ModelTurn {
  readonly turn: number
  readonly step: string
  attempt: number
  maxTokens: number
  state: "generating" | "finished" | "parsed"
  stop: EventData<"model_call_finished">["stop_reason"] | undefined
  action: EventData<"assistant_action_parsed"> | undefined
}

/** One call of the turn that waits for answers. */
export interface OpenCall {
  readonly ordinal: number
  /** Known from the first event that names it. */
  call: string | undefined
  /** Its outcome came with the run that was resumed. */
  readonly inherited: boolean
  /** `inquiry`: schema and scopes passed, and the ledger stood for the precondition. */
  legality: "unchecked" | "passed" | "inquiry" | "failed"
  /** The legality record, and its place. */
  checks: EventData<"legality_checked"> | undefined
  checkedAt: number
  scored: EventData<"proposal_scored"> | undefined
  /** The last second look at the precondition. */
  recheck: "pass" | "fail" | "not_evaluated" | undefined
  validated: boolean
  tool: string | undefined
  risk: string | undefined
  /** Canonical digest of tool and arguments, where the trace holds content. */
  digest: string | undefined
  rejected: string | undefined
  /** Rejected when it was proposed, for something the model can do better. */
  mistake: boolean
  intent: string | undefined
  /** Tries on the record so far, looks in place of a try included; unknown until the first of them is named. */
  made: number | undefined
  /** What allows another try: a retry that was scheduled, or a look that found nothing. */
  mayTry: "retry" | "absent" | undefined
  /** The last try is known to have been lost. */
  lost: boolean
  escalated: boolean
  settled: { readonly outcome: string; readonly replayed: boolean; readonly key: string } | undefined
  execution: "none" | "running" | "finished"
  step: string | undefined
  sequence: number
  ok: boolean
  effect: string | null
  failure: string | null
  /** Ids of artifacts written while it ran, as text. */
  artifacts: Array<string>
}

export interface Approval {
  readonly tool: string
  readonly digest: string
  decision: string | undefined
}

/** A kept turn whose calls or mistakes wait for answers. */
export interface OpenTurn {
  readonly turn: number
  readonly step: string
  readonly kind: "calls" | "malformed"
  /** Of a malformed turn. */
  readonly code: string | undefined
  /** Of a malformed turn: it has its own legality record. */
  attempted: boolean
  readonly calls: ReadonlyArray<OpenCall>
  readonly approvals: Map<string, Approval>
  running: number
  /** Highest ordinal that was started. */
  lastStarted: number
  started: number
  lastValidated: OpenCall | undefined
  answered: number
  committing: boolean | undefined
  skipped: Array<string>
}

export const newCall = (ordinal: number, call?: string, inherited = false): OpenCall => ({
  ordinal,
  call,
  inherited,
  legality: "unchecked",
  checks: undefined,
  checkedAt: -1,
  scored: undefined,
  recheck: undefined,
  validated: false,
  tool: undefined,
  risk: undefined,
  digest: undefined,
  rejected: undefined,
  mistake: false,
  intent: undefined,
  made: undefined,
  mayTry: undefined,
  lost: false,
  escalated: false,
  settled: undefined,
  execution: "none",
  step: undefined,
  sequence: 0,
  ok: false,
  effect: null,
  failure: null,
  artifacts: []
})

export const newTurn = (
  turn: number,
  kind: OpenTurn["kind"],
  calls: ReadonlyArray<OpenCall>,
  code?: string
): OpenTurn => ({
  turn,
  step: `model-${turn}`,
  kind,
  code,
  attempted: false,
  calls,
  approvals: new Map(),
  running: 0,
  lastStarted: -1,
  started: 0,
  lastValidated: undefined,
  answered: 0,
  committing: undefined,
  skipped: []
})

export class RunFacts {
  started: EventData<"run_started"> | undefined
  resumed: EventData<"run_resumed"> | undefined
  /** Registered tools, by name. */
  readonly tools = new Map<string, KnownTool>()
  /** How calls are gated; unknown in traces that do not say so. */
  gates: RunGates | undefined
  /** Committed tokens, once they are known. */
  length: number | undefined
  turn: ModelTurn | undefined
  nextTurn = 0
  /** The turn that waits for answers; afterwards `closed`. */
  open: OpenTurn | undefined
  /** The last turn that got its answers, or was left without. */
  closed: OpenTurn | undefined
  /** Its answers were recorded but never put before the model. */
  uncommitted = false
  lastKept: string | undefined
  rolledBack: EventData<"turn_rolled_back">["reason"] | undefined
  /** The turn that was kept last is, or holds, a question to the user. */
  questioned = false
  /** The run talks; what it was told to be at the beginning, or later. */
  route: EventData<"routed">["route"] | undefined
  /** Milliseconds that asking the model for the route took, before the record began. */
  routedMillis = 0
  /** The phase that started last. */
  phase: EventData<"phase_started"> | undefined
  /** A resumed run may owe feedback to a turn that is in another trace. */
  owesFeedback = false
  modelCalls = 0
  repairs = 0
  validatedCalls = 0
  unknownEffects = 0
  /** An effect that was settled as ambiguous, and one that was left to a person. */
  ambiguous: string | undefined
  escalated: string | undefined
  lastSequence = 0
  /** Milliseconds that executions took. */
  toolMillis = 0
  /** When the first line was written. */
  beganAt = 0
  terminal: string | undefined
  readonly counts = { turns: 0, toolCalls: 0, rejected: 0, skipped: 0, artifacts: 0, outputTokens: 0 }

  /** A limit of the run; Infinity for none. */
  readonly limit = (name: string): number => this.started?.limits[name] ?? Number.POSITIVE_INFINITY

  /** What the parts before used of a budget that goes on. */
  readonly spent = (name: "tool_calls" | "repairs" | "wall_ms"): number => this.resumed?.spent?.[name] ?? 0

  /** Wall time that was used before this record. */
  get wallBefore(): number {
    return this.spent("wall_ms") + this.routedMillis
  }

  /** Turns so far, those of the resumed run included. */
  get turns(): number {
    return this.counts.turns + (this.resumed?.next_turn ?? 0)
  }

  /** The call of this id in the turn that waits for answers. */
  readonly call = (id: string): OpenCall | undefined => this.open?.calls.find((one) => one.call === id)

  /** The turn that got its answers, or should have: the one a stop left behind. */
  get lastTurn(): OpenTurn | undefined {
    return this.open ?? (this.uncommitted ? this.closed : undefined)
  }
}
