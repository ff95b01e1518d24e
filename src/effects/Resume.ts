/**
 * Continues a run that crashed, was cancelled or stopped at a limit: from its traces, in a fresh session, with its effects
 * looked up in the ledger. What settled is never performed again.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { RedactionRule } from "../actors/Redaction.ts"
import type { TraceError } from "../actors/TraceWriter.ts"
import type { EngineError } from "../engine/EngineError.ts"
import type { Model } from "../engine/Model.ts"
import type { Registry } from "../tools/Registry.ts"
import { type RunHandle, startWith } from "./Agent.ts"
import type { Outcome } from "./Outcome.ts"
import { fold, type Past } from "./Past.ts"
import { type Control, execute, type InvalidOptions, type RunOptions, type RunServices } from "./Run.ts"
import { open } from "./Session.ts"
import type { TraceRecord } from "./trace/TraceReader.ts"

/** A run that cannot be continued, and why. */
export class ResumeError extends Schema.TaggedError<ResumeError>()("ResumeError", { message: Schema.String }) {}

export interface ResumeOptions extends RunOptions {
  /** The events of each part of the run, oldest first, as far as they could be read. */
  readonly traces: ReadonlyArray<ReadonlyArray<TraceRecord>>
  readonly tools: Registry
  /** The user's answer, for a run that stopped to ask. */
  readonly answer?: string
}

/** What can be continued, or why not. Tools that changed since are refused: their calls were decided under other contracts. */
export const plan = (traces: ResumeOptions["traces"], tools: Registry): Effect.Effect<Past, ResumeError> => {
  const folded = fold(traces)
  if (Result.isFailure(folded)) return Effect.fail(new ResumeError({ message: folded.failure }))
  return folded.success.toolsHash === tools.hash
    ? Effect.succeed(folded.success)
    : Effect.fail(
        new ResumeError({
          message:
            "stale_contract: the tools are not those the run was started with (names, schemas or contracts differ)"
        })
      )
}

/** Does the run wait for the user's answer: to what was said, or to a call of its last turn that nobody has answered? */
const asksStill = (
  traces: ResumeOptions["traces"],
  { answers, openTurn, questioned }: Past,
  tools: Registry
): boolean =>
  questioned === true ||
  traces.flat().some(({ data, event_type: type }) => {
    // A call that asks is validated, and nothing comes after that but its answer.
    if (type !== "tool_call_validated" || openTurn === undefined) return false
    const call = String(data["call"])
    const asks = tools.get(String(data["tool"]))?.contract.asksUser === true
    return asks && call.startsWith(`call-${openTurn.turn}-`) && !answers.has(call)
  })

/** Why there is nothing to be answered. `undefined` where there is, and where nothing is answered. */
export const answerProblem = (
  { answer, tools, traces }: Pick<ResumeOptions, "answer" | "tools" | "traces">,
  past: Past
): string | undefined =>
  answer === undefined || asksStill(traces, past, tools)
    ? undefined
    : "the run has not asked anything that is still open"

/** Patterns are in no record: a run whose rules are not said again would write down what they are about. */
export const rulesUnsaid = (
  recorded: ReadonlyArray<string>,
  said: ReadonlyArray<RedactionRule> = []
): string | undefined => {
  const missing = [...new Set(recorded)].filter((name) => !said.some((rule) => rule.name === name))
  return missing.length === 0
    ? undefined
    : `redaction rules: the run was recorded under ${missing.join(", ")}, whose patterns are in no record; say them again`
}

export type ResumeFailure = ResumeError | EngineError | InvalidOptions | TraceError

/** Starts to continue the run, in the caller's scope. */
export const start = (
  options: ResumeOptions
): Effect.Effect<RunHandle<ResumeFailure>, ResumeFailure, Model | RunServices | Scope.Scope> =>
  startWith<ResumeFailure, Model | RunServices>((control) => resume(options, control))

/** Continues the run to its outcome. The trace is a new one, named after the first part (`ROOT-r2`). */
export const resume = (
  options: ResumeOptions,
  control: Omit<Control, "past"> = { emit: () => {}, started: () => {} }
): Effect.Effect<Outcome, ResumeFailure, Model | RunServices> => Effect.scoped(resumeScoped(options, control))

const resumeScoped = Effect.fnUntraced(function* (
  options: ResumeOptions,
  control: Omit<Control, "past">
): Effect.fn.Return<Outcome, ResumeFailure, Model | RunServices | Scope.Scope> {
  const past = yield* plan(options.traces, options.tools)
  const unsaid = rulesUnsaid(past.redact, options.trace?.redact)
  const message = unsaid ?? answerProblem(options, past)
  if (message !== undefined) return yield* new ResumeError({ message })
  const session = yield* open({
    tools: options.tools,
    codec: past.codec,
    ...(past.system === "" ? {} : { system: past.system })
  })
  return yield* execute(session, past.task, options, { ...control, past: { past, answer: options.answer } })
})
