/** T10, T14 to T20: the model's turns, from start to kept or rolled back. */
import type { EventData } from "../../../actors/TraceEvent.ts"
import type { Findings } from "./Findings.ts"
import { type KnownRecord, type ModelTurn, newCall, newTurn, type RunFacts } from "./RunFacts.ts"

const reopened = "engine_restarted"

/** What may come while a turn is under way, by how far it is. Anything else belongs to another state. */
const between: Readonly<Record<ModelTurn["state"], ReadonlySet<string>>> = {
  generating: new Set(["generation_token", "model_call_finished", "turn_rolled_back", "late_outcome", reopened]),
  finished: new Set(["model_call_started", "assistant_action_parsed", "turn_rolled_back", "late_outcome", reopened]),
  parsed: new Set(["session_state_changed", "late_outcome"])
}

const roleOf = ({ action, stop }: ModelTurn): string => {
  if (action?.action === "tool_calls") return "assistant_tool_call"
  if (action?.action === "malformed") return "assistant_malformed"
  if (action?.action === "clarify") return "assistant_question"
  return stop === "length" ? "assistant_partial" : "assistant_final"
}

export class Turns {
  readonly #findings: Findings
  readonly #facts: RunFacts
  readonly #seeds = new Set<number>()
  /** Of the turn that was begun last. */
  #own: Array<number> = []
  /** The last event is of an engine that was opened again, inside a turn. */
  #reopened = false

  constructor(findings: Findings, facts: RunFacts) {
    this.#findings = findings
    this.#facts = facts
  }

  readonly see = (record: KnownRecord) => {
    if (!this.#handsOver(record)) this.#inBetween(record)
    const { step } = record
    switch (record.event_type) {
      case "run_resumed":
        return this.#resumed(record.data)
      case "model_call_started":
        return this.#started(step, record.data)
      case "generation_token":
        return this.#token(step)
      case "model_call_finished":
        return this.#finished(step, record.data)
      case "turn_rolled_back":
        return this.#rolledBack(step, record.data)
      case "engine_restarted":
        return this.#mayStartAgain()
      case "assistant_action_parsed":
        return this.#parsed(step, record.data)
      case "session_state_changed":
        return record.data.role.startsWith("assistant_") ? this.#kept(step, record.data.role) : undefined
    }
  }

  /** The end of the record: what is under way now will never end. */
  readonly end = (): void => {
    const { turn } = this.#facts
    if (turn === undefined) return
    if (turn.state === "generating") this.#findings.add("T15", `turn ${turn.turn} started and never ended`)
    else this.#findings.add("T18", `turn ${turn.turn} finished and was neither kept nor rolled back`)
  }

  /** A talk that says that it is none is read and rolled back, and the run goes on. */
  #handsOver({ data, event_type }: KnownRecord): boolean {
    const { turn } = this.#facts
    const said = turn?.state === "parsed" && turn.action?.action === "hand_over"
    return said && event_type === "turn_rolled_back" && (data as EventData<"turn_rolled_back">).reason === "handed_over"
  }

  #inBetween({ event_type }: KnownRecord) {
    const { rolledBack, turn } = this.#facts
    const { add } = this.#findings
    const after = event_type === "late_outcome" || (event_type === reopened && rolledBack === "engine_error")
    if (rolledBack !== undefined && !after) add("T19", `${event_type} after a rollback`)
    // The engine was there again before the turn began, which is rolled back for a reason of its own.
    if (this.#reopened && event_type !== "turn_rolled_back" && event_type !== reopened)
      add("T70", `${event_type} after an engine was opened again in the middle of a turn`)
    this.#reopened = turn !== undefined && event_type === reopened
    if (turn === undefined || between[turn.state].has(event_type)) return
    if (turn.state === "generating") add("T15", `${event_type} while the model writes turn ${turn.turn}`)
    else add("T18", `${event_type} before turn ${turn.turn} was ${turn.state === "finished" ? "read" : "kept"}`)
  }

  #resumed({ calls, next_turn }: EventData<"run_resumed">) {
    const facts = this.#facts
    facts.nextTurn = next_turn
    facts.owesFeedback = next_turn > 0 && calls.length === 0
    if (calls.length === 0) return
    const open = calls.map(({ answered, call, ordinal }) => newCall(ordinal, call, answered))
    facts.open = newTurn(next_turn - 1, "calls", open)
  }

  #started(step: string, data: EventData<"model_call_started">) {
    const { attempt, committed_len, max_tokens, seed, turn } = data
    const { add, unless } = this.#findings
    const facts = this.#facts
    const before = facts.turn
    if (this.#seeds.has(seed)) add("T17", `the seed ${seed} was used before`)
    this.#seeds.add(seed)
    this.#own = attempt === 0 ? [seed] : [...this.#own, seed]
    unless(
      committed_len === facts.length,
      "T14",
      () => `turn ${turn} starts at ${committed_len}, the context has ${facts.length}`
    )
    unless(step === `model-${turn}`, "T15", () => `turn ${turn} starts in step ${step}`)
    if (before === undefined || before.turn !== turn) {
      unless(
        turn === facts.nextTurn && attempt === 0,
        "T16",
        () => `turn ${turn} attempt ${attempt}, expected turn ${facts.nextTurn} attempt 0`
      )
      this.#opens(turn)
    } else if (attempt !== before.attempt + 1 || before.stop !== "length") {
      add("T16", `attempt ${attempt} of turn ${turn} after attempt ${before.attempt}, which ended with ${before.stop}`)
    }
    facts.modelCalls += 1
    facts.turn = { turn, step, attempt, maxTokens: max_tokens, state: "generating", stop: undefined, action: undefined }
  }

  #opens(turn: number) {
    const facts = this.#facts
    if (facts.open !== undefined)
      this.#findings.add("T20", `turn ${turn} starts, turn ${facts.open.turn} still waits for answers`)
    else if (facts.uncommitted)
      this.#findings.add("T20", `turn ${turn} starts, and the answers before it never entered the context`)
    facts.open = undefined
    facts.uncommitted = false
    facts.owesFeedback = false
    facts.counts.turns += 1
    facts.nextTurn = turn + 1
  }

  #token(step: string) {
    const { turn } = this.#facts
    if (turn?.state !== "generating" || turn.step !== step)
      this.#findings.add("T15", `a token in step ${step}, and no turn is being written there`)
  }

  #finished(step: string, data: EventData<"model_call_finished">) {
    const facts = this.#facts
    const { turn } = facts
    facts.counts.outputTokens += data.output_tokens
    if (
      turn?.state !== "generating" ||
      turn.step !== step ||
      turn.turn !== data.turn ||
      turn.attempt !== data.attempt
    ) {
      this.#findings.add(
        "T15",
        `turn ${data.turn} attempt ${data.attempt} finishes in step ${step}, and no such call was started`
      )
    }
    if (turn === undefined) return
    turn.state = "finished"
    turn.stop = data.stop_reason
  }

  #rolledBack(step: string, { committed_len, reason, turn }: EventData<"turn_rolled_back">) {
    const facts = this.#facts
    const { unless } = this.#findings
    // A stop may come before the first attempt: then the turn was begun, and nothing of it is on the record but its end.
    const known = facts.turn ?? { turn: facts.nextTurn, step: `model-${facts.nextTurn}` }
    unless(
      known.turn === turn && known.step === step,
      "T15",
      () => `turn ${turn} is rolled back in step ${step}, turn ${known.turn} was under way`
    )
    unless(
      committed_len === facts.length,
      "T14",
      () => `turn ${turn} was rolled back to ${committed_len}, the context had ${facts.length}`
    )
    if (facts.turn === undefined) this.#opens(turn)
    facts.turn = undefined
    facts.rolledBack = reason
  }

  /** A turn that died with its engine is as if it had never been. */
  #mayStartAgain() {
    const facts = this.#facts
    if (facts.rolledBack !== "engine_error") return
    facts.rolledBack = undefined
    facts.nextTurn -= 1
    facts.counts.turns -= 1
    for (const seed of this.#own) this.#seeds.delete(seed)
    this.#own = []
  }

  #parsed(step: string, data: EventData<"assistant_action_parsed">) {
    const facts = this.#facts
    const { turn } = facts
    if (data.action === "malformed") facts.counts.rejected += 1
    if (turn?.state !== "finished" || turn.step !== step)
      this.#findings.add("T18", `something was read in step ${step}, and no turn finished there`)
    if (data.action === "tool_calls" && data.count === 0)
      this.#findings.add("T18", "calls were read, and there are none")
    const silent = data.action === "final_text" || data.action === "clarify" || data.action === "hand_over"
    if (silent && data.count > 0) this.#findings.add("T18", `${data.action} was read, and ${data.count} calls`)
    if (turn === undefined) return
    turn.state = "parsed"
    turn.action = data
  }

  #kept(step: string, role: string) {
    const facts = this.#facts
    const { turn } = facts
    if (turn?.state !== "parsed" || turn.step !== step || roleOf(turn) !== role) {
      const expected = turn?.state === "parsed" ? `${roleOf(turn)} in step ${turn.step}` : "no kept turn"
      this.#findings.add("T18", `${role} is kept in step ${step}, expected ${expected}`)
    }
    facts.turn = undefined
    facts.lastKept = role
    facts.closed = undefined
    const action = turn?.action
    facts.questioned = action?.action === "clarify" || action?.asks === true
    if (turn === undefined || action === undefined) return
    if (action.action !== "tool_calls" && action.action !== "malformed") return
    const calls = action.action === "tool_calls" ? Array.from({ length: action.count }, (_, at) => newCall(at)) : []
    facts.open = newTurn(turn.turn, action.action === "tool_calls" ? "calls" : "malformed", calls, action.code)
    if (action.action === "malformed") facts.repairs += 1
  }
}
