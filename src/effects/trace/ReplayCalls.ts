/**
 * Executes recorded calls once more and compares what they come to with the record. Only calls of tools that read, unless the
 * caller knows more. Calls are found by their ids, so a call that was denied or never ran shifts nothing. Nothing is
 * published, nothing is decided, no model is asked.
 */
import { createHash } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { ToolPool } from "../../actors/ToolPool.ts"
import { isObject, type Json } from "../../tools/JsonText.ts"
import type { RegisteredTool, Registry } from "../../tools/Registry.ts"
import { answerOf, answerText, type ToolOutcome } from "../../tools/ToolCall.ts"
import type { ToolSettings } from "../../tools/ToolContext.ts"
import { eventOf, fateOf, type TraceCall, type TraceRun } from "./TraceRun.ts"
import { apart } from "./TraceValues.ts"

export interface ReplayCallsOptions {
  readonly tools: Registry
  readonly settings: ToolSettings
  /** May calls of this tool be executed again? Default: if it only reads. */
  readonly mayRun?: (tool: RegisteredTool) => boolean
  /**
   * Why a call cannot be compared here, for example because it reads what is not there. Asked directly before the call is
   * executed, so what is there may be put in place.
   */
  readonly lacks?: (tool: RegisteredTool, call: TraceCall) => string | undefined
  /** Why an outcome that is not the recorded one says nothing, for example because what it needed is not there. */
  readonly unanswered?: (outcome: ToolOutcome) => string | undefined
  /** Time for one call in milliseconds, at most what it had when it was recorded. Default 60 000. */
  readonly deadlineMillis?: number
}

/** One call: the same again, something else, or not compared and why. */
export type CallVerdict = {
  readonly call: string
  readonly tool: string
  /** The tool is not the one of the record (its definition or contract is another). */
  readonly changed: boolean
} & Found

type Found =
  | { readonly _tag: "Match" }
  | { readonly _tag: "Mismatch"; readonly path: string; readonly recorded: unknown; readonly replayed: unknown }
  | { readonly _tag: "Skipped"; readonly reason: string }

export interface ReplayCallsReport {
  /** Skipped calls are no mismatch; where all are skipped, or there are none, there is nothing to compare. */
  readonly verdict: "match" | "mismatch" | "nothing to compare"
  readonly calls: ReadonlyArray<CallVerdict>
  readonly matched: number
  readonly mismatched: number
  readonly skipped: number
}

/** Failures that time, the run or the process brought about, not tool and arguments. */
const notRepeatable: Readonly<Record<string, string>> = {
  timed_out: "it ran out of time, which says nothing about its result",
  cancelled: "the run was stopped while it ran",
  not_executed: "it was not executed",
  outcome_unknown: "its outcome is not known",
  idempotency_conflict: "the ledger refused it"
}

const unexecuted: Readonly<Record<string, string>> = {
  rejected: "it was rejected and never ran",
  malformed: "it never became a call",
  denied: "it was denied and never ran",
  "known from before": "the ledger knew its outcome and nothing ran",
  "asks the user": "it asks the user and is never executed",
  skipped: "the run stopped before it ran",
  undecided: "it was never decided about",
  unfinished: "its end is not on record"
}

interface Prepared {
  readonly tool: RegisteredTool
  readonly arguments: Json
  readonly deadlineMillis: number
}

/** Events whose content an execution is made of or held against. */
const compared: ReadonlySet<string> = new Set(["tool_call_validated", "tool_execution_finished", "artifact_written"])

const skip = (reason: string) => Result.fail(reason)

/** What is needed to execute a call again, or why it cannot be. */
const prepare = (call: TraceCall, run: TraceRun, options: ReplayCallsOptions): Result.Result<Prepared, string> => {
  const finished = eventOf(call, "tool_execution_finished")
  if (finished === undefined) return skip(unexecuted[fateOf(call, run)] ?? "it never ran")
  const kind = String(finished.data["failure_kind"])
  if (Object.hasOwn(notRepeatable, kind)) return skip(notRepeatable[kind]!)
  const name = String(call.tool)
  const tool = options.tools.get(name)
  if (tool === undefined) return skip("there is no tool of this name here")
  const mayRun = options.mayRun ?? (({ contract }: RegisteredTool) => contract.risk === "read")
  if (!mayRun(tool)) return skip("it can change something, and nothing is changed by a replay")
  const args = eventOf(call, "tool_call_validated")?.data["arguments"] as Json | undefined
  if (args === undefined) return skip("its arguments are not on record")
  if (!run.content) return skip("its arguments were recorded without content")
  if (call.events.some((event) => compared.has(event.event_type) && event.redacted !== undefined)) {
    return skip("its arguments or its result were redacted")
  }
  const lacks = options.lacks?.(tool, call)
  if (lacks !== undefined) return skip(lacks)
  const recorded = eventOf(call, "tool_execution_started")?.data["deadline_ms"]
  const deadlineMillis = Math.min(
    options.deadlineMillis ?? 60_000,
    typeof recorded === "number" && recorded > 0 ? recorded : Infinity
  )
  return Result.succeed({ tool, arguments: args, deadlineMillis })
}

/** What of an outcome is compared: everything it says, and the hashes of what it handed over. */
const saidBy = (outcome: ToolOutcome): Readonly<Record<string, unknown>> => {
  const text = answerText(answerOf(outcome))
  const ok = outcome._tag === "Succeeded"
  const raw = ok || outcome.raw === undefined ? [] : [outcome.raw]
  return {
    ok,
    failure_kind: ok ? null : outcome.kind,
    effect: ok ? null : outcome.effect,
    payload: ok ? outcome.result : text,
    artifacts: (ok ? outcome.artifacts : raw).map(({ bytes, name }) => ({ name, sha256: hashOf(bytes) }))
  }
}

const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex")

const recordedOf = (call: TraceCall): Readonly<Record<string, unknown>> => {
  const { effect, failure_kind, ok, payload } = eventOf(call, "tool_execution_finished")!.data
  const artifacts = call.events
    .filter(({ event_type: type, step }) => type === "artifact_written" && step.startsWith("tool-"))
    .map(({ data }) => ({ name: data["name"], sha256: data["sha256"] }))
  return { ok, failure_kind, effect, payload, artifacts }
}

const hashOnRecord = (run: TraceRun, name: string): unknown => {
  const tools = run.provenance?.data["tools"]
  if (!Array.isArray(tools)) return undefined
  return tools.find((tool: Readonly<Record<string, unknown>>) => tool["name"] === name)?.["hash"]
}

const again = Effect.fnUntraced(function* (
  call: TraceCall,
  { arguments: args, deadlineMillis, tool }: Prepared,
  { settings, unanswered }: ReplayCallsOptions
): Effect.fn.Return<Found, never, ToolPool> {
  const checked = isObject(args) ? tool.check(args) : undefined
  if (checked === undefined || Result.isFailure(checked)) {
    const reasons =
      checked === undefined ? ["the arguments are not an object"] : checked.failure.map(({ reason }) => reason)
    return { _tag: "Mismatch", path: "arguments", recorded: "valid", replayed: reasons.join("; ") }
  }
  const pool = yield* ToolPool
  const outcome = yield* pool.run({ callId: call.id, tool, arguments: checked.success, deadlineMillis, settings })
  const [found] = apart("", recordedOf(call), saidBy(outcome), { sameKey: false })
  if (found === undefined) return { _tag: "Match" }
  const reason = unanswered?.(outcome)
  return reason === undefined
    ? { _tag: "Mismatch", path: found.path, recorded: found.a, replayed: found.b }
    : { _tag: "Skipped", reason }
})

const judge = Effect.fnUntraced(function* (
  call: TraceCall,
  run: TraceRun,
  options: ReplayCallsOptions
): Effect.fn.Return<CallVerdict, never, ToolPool> {
  const prepared = prepare(call, run, options)
  const name = typeof call.tool === "string" ? call.tool : "(a name that is not recorded)"
  const hash = hashOnRecord(run, name)
  const known = options.tools.get(name)
  const about = { call: call.id, tool: name, changed: hash !== undefined && known !== undefined && hash !== known.hash }
  if (Result.isFailure(prepared)) return { ...about, _tag: "Skipped", reason: prepared.failure }
  return { ...about, ...(yield* again(call, prepared.success, options)) }
})

/** Executes every call that can be, one after another in the order they were written. */
export const replayCalls = Effect.fnUntraced(function* (
  run: TraceRun,
  options: ReplayCallsOptions
): Effect.fn.Return<ReplayCallsReport, never, ToolPool> {
  const calls = yield* Effect.forEach(run.calls, (call) => judge(call, run, options))
  const count = (tag: CallVerdict["_tag"]) => calls.filter(({ _tag }) => _tag === tag).length
  const [matched, mismatched, skipped] = [count("Match"), count("Mismatch"), count("Skipped")]
  const verdict = mismatched > 0 ? "mismatch" : matched > 0 ? "match" : "nothing to compare"
  return { verdict, calls, matched, mismatched, skipped }
})
