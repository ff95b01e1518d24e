/**
 * What must be true of every world, whatever went wrong in it: the record against what really happened, the context against
 * the transcript, how a run ended against what was done to it. What a trace says of itself is the validator's to judge.
 */
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import { outcomeOf } from "../../../src/actors/EffectLedgerEntry.ts"
import { closingOf } from "../../../src/effects/RunContext.ts"
import type { Stop } from "../../../src/effects/State.ts"
import type { Entry } from "../../../src/effects/Transcript.ts"
import { validateText } from "../../../src/effects/trace/TraceValidator.ts"
import type { Codec, RenderOptions } from "../../../src/engine/codecs/Codec.ts"
import { flatten, type Segment, type Span } from "../../../src/engine/Prompt.ts"
import { type Line, lines } from "../script.ts"
import { checkInside } from "./inside.ts"
import { type ConversationSeen, lastWord, type Seen, type SessionSeen } from "./play.ts"
import { codecOf, type EngineFault } from "./scenario.ts"
import { task } from "./table.ts"
import { secret } from "./turns.ts"
import type { RunSeen, World } from "./world.ts"

/** A claim that does not hold: which, and where. */
export interface Problem {
  readonly claim: string
  readonly where: string
  readonly detail: string
}

export type Report = (claim: string, detail: string) => void

const terminalOf: Readonly<Record<Stop["_tag"], string>> = {
  Completed: "run_completed",
  NeedsInput: "run_needs_input",
  AwaitingApproval: "run_awaiting_approval",
  Limit: "run_terminated",
  ContextExhausted: "run_terminated",
  LoopDetected: "run_terminated",
  Escalated: "run_terminated",
  Cancelled: "run_cancelled",
  Failed: "run_failed"
}

const reasonOf: Partial<Record<Stop["_tag"], string>> = {
  Limit: "limit",
  ContextExhausted: "context_exhausted",
  LoopDetected: "loop_detected",
  Escalated: "escalated"
}

const agrees = (stop: Stop, { data, event_type }: Line): boolean => {
  if (terminalOf[stop._tag] !== event_type) return false
  if (event_type === "run_terminated" && data["reason"] !== reasonOf[stop._tag]) return false
  if (stop._tag === "Limit") return data["limit_hit"] === stop.kind
  if (stop._tag === "Cancelled") return data["at"] === stop.at
  if (stop._tag === "AwaitingApproval") return data["call"] === stop.callId
  return stop._tag !== "Failed" || data["class"] === stop.class
}

/** How the run ended, to its caller and on its record. */
const checkEnding = (seen: RunSeen, trace: ReadonlyArray<Line>, report: Report): void => {
  const { exit } = seen
  const last = trace.at(-1)
  const never = trace.length === 0
  if (exit === undefined) {
    report("every run ends", "it has no exit")
    return
  }
  if (Exit.isSuccess(exit)) {
    const { artifacts, rejected, skipped, stop, toolCalls, turns } = exit.value
    if (seen.defects > 0) report("a defect stays a defect", `it ended as ${stop._tag}`)
    if (seen.broken) {
      const said = stop._tag === "Failed" && stop.class === "trace"
      if (!said) report("a record that cannot be closed is said so", `it ended as ${stop._tag}`)
      return
    }
    if (last === undefined || !agrees(stop, last)) {
      report("outcome and record agree", `${JSON.stringify(stop)} against ${JSON.stringify(last)}`)
      return
    }
    const counts = [turns, toolCalls, rejected, skipped, artifacts.length]
    const recorded = ["turns", "tool_calls", "rejected_calls", "skipped_calls", "artifacts"].map(
      (key) => last.data[key]
    )
    if (String(counts) !== String(recorded)) report("outcome and record agree", `${counts} against ${recorded}`)
    return
  }
  if (Cause.hasDies(exit.cause)) {
    if (seen.defects === 0) report("nothing breaks by itself", Cause.pretty(exit.cause))
    else if (!seen.broken && last?.event_type !== "run_failed") {
      report("a defect comes after the record is closed", `the record ends with ${last?.event_type}`)
    }
    return
  }
  const interrupted = seen.stops.some(({ how }) => how === "interrupt")
  if (Cause.hasInterrupts(exit.cause)) {
    if (!interrupted) report("only who is interrupted ends so", Cause.pretty(exit.cause))
    return
  }
  // The record could not be opened: the only thing a run may fail with.
  if (!(never && seen.broken)) report("failures are outcomes", Cause.pretty(exit.cause))
}

/** What takes time and cannot be stopped: a slow engine, or one that is opened again, outside of a message. */
const shielded = ({ kind, on }: EngineFault): boolean =>
  kind === "reopened" || (on !== "commit" && (kind === "slow" || kind === "restarted"))

/** A stop that was asked for while the run was on ends it: at once, and nothing new begins. */
const checkStops = (world: World, session: SessionSeen, seen: RunSeen, report: Report): void => {
  const tolerance = session.scenario.engine.some(shielded) ? 1_000 : 0
  const first = seen.stops.find(({ order }) => seen.finished === undefined || order < seen.finished)
  if (first !== undefined) {
    const took = (seen.endedAt ?? Infinity) - first.at
    if (took > tolerance) report("a stop takes no time", `${took} ms`)
    const later = seen.events.find(
      ({ event, order }) => order > first.order && event._tag === "StateEntered" && event.state !== "Committing"
    )
    if (later !== undefined) report("after a stop nothing new begins", JSON.stringify(later.event))
    const call = world.poolCalls.find(({ order, run }) => run === seen.label && order > first.order)
    if (call !== undefined) report("after a stop no tool starts", call.callId)
  }
  const wall = seen.scenario.limits.wallMillis ?? 600_000
  const total = (seen.endedAt ?? Infinity) - seen.startedAt
  // Without any wall time the prompt is still evaluated, however long that takes.
  const prompt = wall === 0 && session.scenario.engine.some(({ on }) => on === "commit") ? Infinity : 0
  if (total > wall + tolerance + prompt) report("wall time bounds a run", `${total} of ${wall} ms`)
  const finished = seen.finished ?? Infinity
  for (const { callId, order, run } of world.poolCalls) {
    if (run === seen.label && order > finished) report("nothing runs after the end", callId)
  }
}

/** What the tools did against what the record says they did. */
const checkExecutions = (world: World, seen: RunSeen, trace: ReadonlyArray<Line>, report: Report): void => {
  const calls = world.poolCalls.filter(({ run }) => run === seen.label)
  const started = trace.filter(({ event_type }) => event_type === "tool_execution_started")
  const finishes = trace.filter(({ event_type }) => event_type === "tool_execution_finished")
  const count = (list: ReadonlyArray<string>, id: string) => list.filter((one) => one === id).length
  const ids = calls.map(({ callId }) => callId)
  const performed = world.performed.filter(({ run }) => run === seen.label).map(({ callId }) => callId)
  const decisions = world.opened(seen.effectRun).decisions
  const retries = trace.filter(({ event_type }) => event_type === "retry_scheduled").map(({ data }) => data["call"])
  for (const { callId } of calls) {
    const tries = 1 + retries.filter((id) => id === callId).length
    if (count(ids, callId) > tries) report("a call runs once", `${callId} reached the pool ${count(ids, callId)} times`)
    if (started.filter(({ data }) => data["call"] === callId).length !== 1) {
      report("what runs is on the record", `${callId} has no start`)
    }
    const finish = finishes.find(({ data }) => data["call"] === callId)
    const cut = finish === undefined || ["cancelled", "outcome_unknown"].includes(String(finish.data["failure_kind"]))
    const times = count(performed, callId)
    const performs = calls.filter((one) => one.callId === callId).reduce((sum, one) => sum + one.performs, 0)
    if (times > performs || (times < performs && !cut)) report("a call runs once", `${callId} ran ${times} times`)
  }
  for (const { data } of started) {
    const finish = finishes.find((one) => one.data["call"] === data["call"])
    const kind = String(finish?.data["failure_kind"])
    const mayBeMissing = seen.broken || kind === "not_executed" || kind === "cancelled" || kind === "outcome_unknown"
    if (!ids.includes(String(data["call"])) && !mayBeMissing) {
      report("what is on the record runs", `${data["call"]} never reached the pool`)
    }
  }
  // What this tool has begun it does: nobody may say that nothing was done.
  for (const { data } of finishes) {
    const { call, effect, tool } = data
    if (tool === "pay" && effect === "none" && performed.includes(String(call))) {
      report("what was done is not said to be nothing", String(call))
    }
  }
  for (const { callId, tool } of calls) {
    const asks = tool === "send" || tool === "pay" || tool === "slow_send"
    if (asks && decisions.get(callId) !== "allow") report("what was not allowed does not run", `${callId} ${tool}`)
    if (tool === "clarify") report("a question to the user is never executed", callId)
  }
}

/** What contracts say about calls, and the looks they took, against the record. */
const checkContracts = (world: World, seen: RunSeen, trace: ReadonlyArray<Line>, report: Report): void => {
  const about = (type: string) => trace.filter(({ event_type }) => event_type === type)
  const has = (type: string, call: unknown) => about(type).some(({ data }) => data["call"] === call)
  for (const { data } of about("approval_requested")) {
    if (data["tool"] === "pay" && !has("proposal_scored", data["call"]))
      report("what has a price is weighed", `${data["call"]}`)
  }
  for (const { data } of about("effect_intent")) {
    const { call, tool } = data
    if (tool === "pay" && !has("precondition_checked", call))
      report("after an approval the world is looked at again", `${call}`)
  }
  const stopped = seen.stops.length > 0 || seen.broken || seen.defects > 0
  const wall = about("run_terminated").some(({ data }) => data["limit_hit"] === "wall_time")
  if (stopped || wall) return
  const probed = about("effect_probed").length
  if (probed !== world.looks(seen.label, "probe")) report("every look for an effect is on the record", `${probed}`)
  // An outcome that is late is looked at once more, and nobody waits for what is still open then.
  if (world.scenario.pool.some(({ kind }) => kind === "late")) return
  const looks = world.looks(seen.label, "post")
  const open = Array.from({ length: looks }, (_, at) => (at + 1) % 5).filter(
    (at, index) => at === 0 || (at === 1 && index === 0)
  )
  if (about("effect_accepted").length !== open.length) report("every open promise is on the record", `${open.length}`)
}

const checkArtifacts = (world: World, seen: RunSeen, trace: ReadonlyArray<Line>, report: Report): void => {
  if (seen.broken) return
  const stored = world.puts.filter(({ runId }) => runId === seen.label).map(({ sha256 }) => sha256)
  const said = trace.filter(({ event_type }) => event_type === "artifact_written").map(({ data }) => data["sha256"])
  const sorted = (list: ReadonlyArray<unknown>) => [...new Set(list)].sort().join(" ")
  if (sorted(stored) !== sorted(said)) {
    report("artifacts and record agree", `${stored.length} stored, ${said.length} recorded`)
  }
}

/** Nothing of a person, a tool or a model is in a trace without content. */
const checkPrivacy = (seen: RunSeen, report: Report): void => {
  if (!seen.scenario.content && seen.lines.includes(secret)) report("a trace without content has none", secret)
}

const checkTrace = (seen: RunSeen, report: Report): void => {
  if (seen.lines === "" && seen.broken) return
  const verdict = validateText(seen.lines)
  for (const { invariant, message } of verdict.violations) report(invariant, message)
  if (!seen.broken && !verdict.complete) report("the record is complete", "it has no terminal event")
}

/** What an entry put into the context; several answers of one turn are one piece. */
const pieceOf = (
  codec: Codec,
  options: RenderOptions,
  entries: ReadonlyArray<Entry>,
  before: Entry | undefined
): ReadonlyArray<Segment> => {
  const entry = entries[0]!
  switch (entry.kind) {
    case "system":
      return codec.system(entry.implicit ? undefined : entry.content, options)
    case "user":
    case "marker":
      return codec.user(entry.content)
    case "assistant":
      return [
        ...codec.opening({
          ...options,
          after: before?.kind === "tool" || before?.kind === "feedback" ? "answers" : "user"
        }),
        { kind: "text", text: entry.raw },
        ...closingOf(codec, entry.turn === "calls")
      ]
    case "feedback":
      return codec.answers([{ name: "", text: entry.content }])
    case "tool":
      return codec.answers(
        entries.flatMap((one) => (one.kind === "tool" ? [{ name: one.name, text: one.content }] : []))
      )
  }
}

const spanOf = (entry: Entry): Span | undefined => entry.span

/** Entries that share a span, in order; what is not in the context yet is left out. */
const pieces = (transcript: ReadonlyArray<Entry>): ReadonlyArray<ReadonlyArray<Entry>> => {
  const out: Array<Array<Entry>> = []
  for (const entry of transcript) {
    const span = spanOf(entry)
    if (span === undefined) continue
    const last = out.at(-1)
    if (last !== undefined && spanOf(last[0]!)?.start === span.start) last.push(entry)
    else out.push([entry])
  }
  return out
}

/** The transcript is what is in the context: the same text, the same tokens, in the same order. */
const checkContext = (codec: Codec, { committed, length, session, talk }: ConversationSeen, report: Report): void => {
  const options = { tools: session.registry.specs, ...(talk ? { thinking: false } : {}) }
  const { entries } = session.transcript
  let before: Entry | undefined
  let end = 0
  let text = ""
  for (const piece of pieces(entries)) {
    const span = spanOf(piece[0]!)!
    if (span.start !== end) report("spans join", `${span.start} after ${end}`)
    end = span.end
    text += flatten(pieceOf(codec, options, piece, before))
    before = piece.at(-1)
  }
  if (end !== length) report("spans cover the context", `${end} of ${length} tokens`)
  if (text === committed) return
  const at = [...text].findIndex((character, index) => character !== committed[index])
  report(
    "context and transcript agree",
    `from ${at}: ${JSON.stringify(text.slice(at, at + 60))} against ${JSON.stringify(committed.slice(at, at + 60))}`
  )
}

/** Every turn with calls is followed by as many answers, in order; every mistake by its feedback. */
const checkAnswers = ({ session }: ConversationSeen, report: Report): void => {
  const entries = [...session.transcript.entries, ...session.transcript.aside]
  for (const [at, entry] of entries.entries()) {
    if (entry.kind !== "assistant") continue
    const names = entry.turn === "calls" ? entry.calls.map(({ name }) => name) : []
    const following = entries.slice(at + 1, at + 1 + names.length)
    const same = following.every((one, index) => one.kind === "tool" && one.name === names[index])
    if (following.length !== names.length || !same) report("every call has one answer", `of the turn at ${at}`)
    const next = entries[at + 1 + names.length]
    if (next?.kind === "tool") report("every call has one answer", `one more after the turn at ${at}`)
    if (entry.turn === "malformed" && next?.kind !== "feedback") report("every mistake has feedback", `entry ${at}`)
  }
}

/** After whatever happened, the session works; an engine that is gone excepted. */
const checkProbe = (session: SessionSeen, seen: RunSeen, report: Report): void => {
  const { exit } = seen
  if (exit === undefined || !Exit.isSuccess(exit)) {
    report("a session can be used again", exit === undefined ? "it did not end" : Cause.pretty(exit.cause))
    return
  }
  const { stop, text } = exit.value
  if (session.lost && stop._tag === "Failed") return
  if (session.conversations[0]!.session.transcript.aside.length > 0) {
    report("what a compaction kept comes back", JSON.stringify(stop))
  }
  const full = stop._tag === "ContextExhausted" && session.scenario.contextTokens < 10_000
  if (text !== lastWord && !full) report("a session can be used again", JSON.stringify(stop))
}

/** What the ledger keeps against what ran and against the record: every effect has its entry, settled as the record says. */
const checkLedger = (seen: Seen, run: RunSeen, trace: ReadonlyArray<Line>, report: Report): void => {
  for (const { callId, key, run: label } of seen.world.poolCalls) {
    if (label !== run.label || key === undefined) continue
    const entry = seen.ledger.find((one) => one.key === key)
    if (entry === undefined || entry.callId !== callId || entry.runId !== run.effectRun) {
      report("every effect is in the ledger", callId)
      continue
    }
    if (seen.world.unsettled.has(key) || run.broken) continue
    const said = trace.findLast(({ data, event_type }) => event_type === "effect_settled" && data["call"] === callId)
    // A try that was lost stays so; what was found out about the effect since is told apart from it.
    const state = outcomeOf(entry)?.state ?? entry.attempts.at(-1)?.settled?.outcome.state
    const later = said?.data["outcome"] === "unknown" && entry.late !== undefined
    if (!later && (state === undefined || state !== said?.data["outcome"])) {
      report("ledger and record agree", `${callId} is ${state}, by the record ${said?.data["outcome"]}`)
    }
  }
}

/** The task is in the context as it was given, once per run at most. */
const checkCommittedTask = ({ session }: ConversationSeen, runs: number, report: Report): void => {
  const users = session.transcript.all.filter(({ kind }) => kind === "user")
  if (users.length > runs) report("a task is said once", `${users.length} times`)
  if (users.some((entry) => entry.kind === "user" && entry.content !== task)) report("a task is said as it is", "")
}

/** Everything that is wrong with what was seen. */
export const problemsOf = (all: Seen): ReadonlyArray<Problem> => {
  const { sessions, stuck, world } = all
  const problems: Array<Problem> = []
  const reporter =
    (where: string): Report =>
    (claim, detail) =>
      void problems.push({ claim, where, detail })
  if (stuck) reporter("the world")("every run ends", "virtual time is up")
  for (const [index, session] of sessions.entries()) {
    for (const seen of session.runs) {
      const report = reporter(seen.label)
      const trace = lines(seen.lines)
      checkEnding(seen, trace, report)
      checkStops(world, session, seen, report)
      checkExecutions(world, seen, trace, report)
      checkContracts(world, seen, trace, report)
      checkArtifacts(world, seen, trace, report)
      checkLedger(all, seen, trace, report)
      checkPrivacy(seen, report)
      checkTrace(seen, report)
      if (seen.probe) checkProbe(session, seen, report)
    }
    const codec = codecOf(session.scenario.codec)
    for (const [at, conversation] of session.conversations.entries()) {
      const report = reporter(`session ${index}${at === 0 ? "" : ` conversation ${at}`}`)
      checkContext(codec, conversation, report)
      checkAnswers(conversation, report)
      checkCommittedTask(conversation, at === 0 ? session.runs.length : 1, report)
    }
  }
  for (const seen of world.runs) {
    if (seen.parent === undefined) continue
    const report = reporter(seen.label)
    const trace = lines(seen.lines)
    checkInside(world, seen, seen.parent, report)
    checkExecutions(world, seen, trace, report)
    checkLedger(all, seen, trace, report)
    checkPrivacy(seen, report)
    checkTrace(seen, report)
  }
  return problems
}
