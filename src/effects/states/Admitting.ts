/**
 * Decides, call by call, what may happen: legality, worth, approval. Every attempt is on the record with all three legality
 * results before anybody is asked about it; what is refused gets its answer here and never runs.
 */
import * as Effect from "effect/Effect"
import type { LedgerError } from "../../actors/EffectLedgerError.ts"
import type { TraceInput } from "../../actors/TraceEvent.ts"
import type { TraceError } from "../../actors/TraceWriter.ts"
import { canonical } from "../../tools/JsonText.ts"
import type { RegisteredTool, ValidatedArguments } from "../../tools/Registry.ts"
import { ask } from "../legality/Approving.ts"
import { notWorthIt } from "../legality/Choice.ts"
import { type Legality, legalityOf, unchecked } from "../legality/Legality.ts"
import { type Refusal, refusal, reject } from "../legality/Refusal.ts"
import { refusalBefore, rememberRefusal, resemblance } from "../Memory.ts"
import { type Decided, person } from "../Policy.ts"
import { gatesOf } from "../Profile.ts"
import { type CallRecord, type RunContext, repairStop, toolLabel } from "../RunContext.ts"
import { acting, committing, type State, type Stop } from "../State.ts"

/** The record of an attempt, with what came before it in this run. Notes on the call where that is, and whether a refusal did. */
const legalityEvent = (run: RunContext, record: CallRecord, step: string, found: Legality): TraceInput => {
  const { cause, pre, schema, scopes, touches } = found
  const seq = run.trace.length()
  const before = refusalBefore(run.memory, touches)
  const tool = record.tool
  const same =
    tool === undefined || tool.contract.risk === "read" || found.arguments === undefined || found.inquiry
      ? undefined
      : resemblance(run.memory, tool.name, found.arguments.canonical, seq)
  record.followsRefusal = before !== undefined
  record.legalitySeq = seq
  const blocked = (["schema", "scopes", "pre"] as const).filter((gate) => found[gate] === "fail")
  return {
    type: "legality_checked",
    step,
    phase: "validate",
    data: {
      call: record.callId,
      ordinal: record.proposed.ordinal,
      tool: toolLabel(run, record.proposed.name),
      schema,
      scopes,
      pre,
      ...(cause === undefined ? {} : { cause }),
      blocked_by: blocked,
      ...(before === undefined ? {} : { follows_refusal_of: before.seq }),
      ...(same === undefined ? {} : { resembles: same })
    }
  }
}

const turnedDown = ({ by, reason }: Decided): Refusal => {
  if (reason !== undefined) {
    return refusal("refused", "approval", `this call was turned down, nothing was executed: ${reason}`)
  }
  const who = by === person ? "the person who was asked" : "the policy of this run"
  return refusal("refused", "approval", `${who} does not allow this call; nothing was executed`)
}

const onlyFirst = refusal(
  "not_executed",
  "parse",
  "only the first call of a turn is executed; send the next call in a turn of its own"
)

const tried: Refusal = refusal(
  "dry_run",
  "execution",
  "this is a dry run: the call is legal and was not executed; go on as if you could not know its result"
)

/** A dry run performs no effect, and asks for none that may be under way. */
const onlyTried = (run: RunContext, tool: RegisteredTool): boolean =>
  run.settings.gates.dryRun && tool.contract.risk !== "read"

/** Is somebody asked? A call that does again what was refused always is, whatever its own risk. */
const mustAsk = (run: RunContext, record: CallRecord, { contract }: RegisteredTool): boolean =>
  contract.risk !== "read" && (record.followsRefusal === true || gatesOf(run.settings.gates.profile, contract).approve)

const validated = (run: RunContext, record: CallRecord, tool: RegisteredTool, args: ValidatedArguments, step: string) =>
  run.trace.note({
    type: "tool_call_validated",
    step,
    phase: "validate",
    data: {
      call: record.callId,
      tool: tool.name,
      risk: tool.contract.risk,
      arguments: run.trace.json(args.raw),
      ...(args.effective === args.raw ? {} : { effective: run.trace.json(args.effective) })
    }
  })

/** A legal call that nobody has decided about yet. */
const decide = Effect.fnUntraced(function* (
  run: RunContext,
  record: CallRecord,
  tool: RegisteredTool,
  args: ValidatedArguments,
  touches: Legality["touches"],
  step: string
): Effect.fn.Return<"admitted" | "refused" | "suspended", TraceError> {
  const unworthy = yield* notWorthIt(run, record, tool, args, step)
  if (unworthy !== undefined) {
    yield* reject(run, step, record, unworthy)
    return "refused"
  }
  if (onlyTried(run, tool)) {
    yield* reject(run, step, record, tried)
    return "refused"
  }
  if (!mustAsk(run, record, tool)) return "admitted"
  const decided = yield* ask(run, record, tool, args, step)
  const { decision } = decided
  if (decision === "suspend") return "suspended"
  if (decision === "allow") return "admitted"
  rememberRefusal(run.memory, tool.name, touches, record.legalitySeq ?? 0)
  yield* reject(run, step, record, turnedDown(decided))
  return "refused"
})

/** One call to its verdict. Returns a reason to stop when the call itself ends the run. */
const admit = Effect.fnUntraced(function* (
  run: RunContext,
  step: string,
  record: CallRecord
): Effect.fn.Return<Stop | undefined, TraceError | LedgerError> {
  const { name, ordinal } = record.proposed
  if (run.settings.calls === "single" && ordinal > 0) {
    const event = legalityEvent(run, record, step, unchecked("single_call_policy"))
    yield* reject(run, step, record, onlyFirst, event)
    return undefined
  }
  const tool = run.session.registry.get(name)
  if (tool !== undefined) record.tool = tool
  const found = yield* legalityOf(run, record)
  const event = legalityEvent(run, record, step, found)
  if (found.refusal !== undefined) {
    if (found.refusal.kind === "unauthorized") rememberRefusal(run.memory, name, found.touches, record.legalitySeq ?? 0)
    yield* reject(run, step, record, found.refusal, event)
    return undefined
  }
  const args = found.arguments
  if (tool === undefined || args === undefined)
    return yield* Effect.die(new Error(`${record.callId}: legal, but of what?`))
  record.arguments = args
  record.touches = found.touches
  record.inquiry = found.inquiry
  run.trace.note(event)
  if (found.inquiry && onlyTried(run, tool)) {
    yield* reject(run, step, record, tried)
    return undefined
  }
  const decision = found.inquiry ? "admitted" : yield* decide(run, record, tool, args, found.touches, step)
  if (decision === "refused") return undefined
  validated(run, record, tool, args, step)
  if (decision === "suspended") return { _tag: "AwaitingApproval", callId: record.callId }
  if (!tool.contract.asksUser) return undefined
  const question = args.effective["question"]
  return { _tag: "NeedsInput", question: typeof question === "string" ? question : canonical(args.effective) }
})

/** Refused for something the model can do better. */
const isMistake = ({ answer }: CallRecord): boolean => answer !== undefined && !answer.ok && answer.kind !== "dry_run"

export const admitting = Effect.fnUntraced(function* (
  run: RunContext,
  turn: number
): Effect.fn.Return<State, TraceError | LedgerError> {
  run.point = "between-calls"
  const records = run.open?.records ?? []
  let mistakes = 0
  for (const record of records) {
    // Known from before the run was resumed.
    if (record.answer !== undefined) continue
    const stop = yield* admit(run, `model-${turn}`, record)
    if (stop !== undefined) return committing(turn, stop)
    if (isMistake(record)) mistakes++
  }
  if (records.some((record) => record.answer === undefined)) return acting(turn)
  return committing(turn, mistakes < records.length ? undefined : repairStop(run))
})
