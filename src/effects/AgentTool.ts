/**
 * A run as a tool of another run. What the inner one is permitted is what both permit; it has limits of its own and never
 * more time than the outer one has left; its effects are keyed under the outer call, so that an outer run that goes on does
 * not repeat them; each record names the other. It runs where the program runs, never in a thread of tools.
 */
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { noTimeLeft, runDetachable } from "../actors/Detachment.ts"
import type { ToolPool } from "../actors/ToolPool.ts"
import type { Model } from "../engine/Model.ts"
import * as Contract from "../tools/Contract.ts"
import { execute as executeTool } from "../tools/Execution.ts"
import * as Registry from "../tools/Registry.ts"
import type { ToolSettings } from "../tools/ToolContext.ts"
import { ToolError } from "../tools/ToolError.ts"
import type { AgentEvent } from "./AgentEvent.ts"
import { everything, narrow } from "./Authority.ts"
import { CurrentCall } from "./CurrentCall.ts"
import type { Gates } from "./Gates.ts"
import * as Limits from "./Limits.ts"
import type { Outcome } from "./Outcome.ts"
import { takingCalls } from "./OwnCalls.ts"
import { Approval } from "./Policy.ts"
import { execute, type RunOptions, type RunServices } from "./Run.ts"
import type { Watch } from "./RunContext.ts"
import { partOf } from "./RunDirectory.ts"
import { open, type SessionOptions } from "./Session.ts"
import type { Stop } from "./State.ts"

export interface AgentToolOptions extends SessionOptions, Omit<RunOptions, "trace"> {
  /** The tool's name, and what a model is told that it does. The one argument is `task`, a text. */
  readonly name: string
  readonly description: string
  /** How deep runs may lie in runs: 1 is a tool of a run that nobody runs as a tool. Default 3. */
  readonly maxDepth?: number
  /** Scopes a caller has to have, besides permission to execute `tool:NAME`. */
  readonly scopes?: ReadonlyArray<string>
}

export interface AgentTool {
  /** The one tool, to be merged with others. */
  readonly registry: Registry.Registry
  /**
   * Takes the calls of this tool before whatever else runs tools, and ends a run with its call: provide it to the program that
   * runs the outer run. Without it the tool works where tools run in this thread (`ToolPool.layerInline`), and is ended two
   * seconds after its call.
   */
  readonly layer: Layer.Layer<ToolPool, never, ToolPool>
}

const standardDepth = 3

/** The inner run ends a little before its call would, so that its own record says why. */
const share = 0.95

const refusal = (message: string) => new ToolError({ kind: "refused", message })

/** What a run that did not complete is to its caller, in words for a model. */
const reasonOf = (stop: Exclude<Stop, { readonly _tag: "Completed" }>): string => {
  switch (stop._tag) {
    case "NeedsInput":
      return `it needs to know: ${stop.question}`
    case "AwaitingApproval":
      return "one of its calls waits for an approval that nobody here can give"
    case "Limit":
      return `it reached its limit of ${stop.kind.replaceAll("_", " ")}`
    case "ContextExhausted":
      return "its context is full"
    case "LoopDetected":
      return "it went in circles"
    case "Escalated":
      return "the outcome of one of its effects is unknown"
    case "Cancelled":
      return "it was cancelled"
    case "Failed":
      return `it failed (${stop.class})`
  }
}

const worse = (before: Left["effect"], now: Left["effect"] = "none"): Left["effect"] => (now === "none" ? before : now)

/** What is known to be left of the inner run's calls. */
class Left {
  effect: "none" | "present" | "unknown" = "none"

  readonly #add = (effect: Left["effect"] | undefined): void => {
    if (this.effect !== "unknown") this.effect = worse(this.effect, effect)
  }

  readonly hear = (event: AgentEvent): void => {
    if (event._tag === "CallFinished") this.#add(event.effect)
  }

  /** A call that the ledger has answered finishes nothing, and what it left is there all the same. */
  readonly watch: Watch = ({ open }, after) =>
    Effect.sync((): undefined => {
      if (after !== "Acting") return
      for (const { replayed, replayedEffect } of open?.records ?? []) {
        this.#add(replayed === "succeeded" ? "present" : replayed === "unknown" ? "unknown" : replayedEffect)
      }
    })
}

const failureOf = (outcome: Outcome, effect: Left["effect"]): Effect.Effect<string, ToolError> => {
  const { runId, stop } = outcome
  if (stop._tag === "Completed") return Effect.succeed(stop.text)
  return Effect.fail(
    new ToolError({
      kind: stop._tag === "AwaitingApproval" ? "refused" : "execution_failed",
      message: `the task was not completed: ${reasonOf(stop)} (run ${runId})`,
      effect: stop._tag === "Escalated" ? "unknown" : effect
    })
  )
}

const temperatureOf = ({ sampling }: AgentToolOptions): number => sampling?.temperature ?? 0

/** Would it say the same again? A phase can sample where the run as a whole does not. */
const samples = (options: AgentToolOptions): boolean =>
  temperatureOf(options) > 0 || Object.values(options.phases ?? {}).some((phase) => (phase?.temperature ?? 0) > 0)

const limitsOf = (options: AgentToolOptions, { deadlineMillis }: CurrentCall): Limits.Limits => {
  const own = { ...Limits.defaults, ...options.limits }
  // The deadline of the call is what the outer run has left at most.
  const wallMillis = Math.min(own.wallMillis, Number.isFinite(deadlineMillis) ? deadlineMillis * share : Infinity)
  return { ...own, wallMillis: Number.isFinite(wallMillis) ? Math.max(1, Math.floor(wallMillis)) : wallMillis }
}

/** Nothing the outer run says is widened. Several samples of a turn need a run that samples. */
const gatesOf = (options: AgentToolOptions, { run }: CurrentCall): Partial<Gates> => {
  const outer = run.settings.gates
  const greedy = temperatureOf(options) === 0
  return {
    ...outer,
    ...(greedy ? { candidates: 1 } : {}),
    ...options.gates,
    authority: narrow(outer.authority, options.gates?.authority ?? everything),
    dryRun: outer.dryRun || options.gates?.dryRun === true
  }
}

/** What tools of the inner run may reach is what the outer one's may, unless it says otherwise. Key and artifacts are a run's own. */
const settingsOf = (options: AgentToolOptions, { run }: CurrentCall): Partial<ToolSettings> => {
  const { artifacts: _, idempotencyKey: __, ...outer } = run.settings.tools
  return { ...outer, ...options.settings }
}

/** The inner run's name. Each execution of a call is a run of its own, also where they share the keys of their effects. */
const nameOf = ({ attempt, callId, run }: CurrentCall): string => {
  const { part, root } = partOf(run.runId)
  const name = attempt === 1 ? `${root}.${callId}` : `${root}.${callId}-a${attempt}`
  return part === 1 ? name : `${name}-r${part}`
}

/** Runs the task for a call, to its text. */
const perform = Effect.fnUntraced(function* (
  options: AgentToolOptions,
  task: string
): Effect.fn.Return<string, ToolError, Model | RunServices> {
  const call = yield* CurrentCall
  if (call === undefined) {
    return yield* refusal(`${options.name} is a run: it needs the program's own thread (Agent.asTool says how)`)
  }
  const { callId, run, step, tool } = call
  const depth = (run.parent?.depth ?? 0) + 1
  const most = options.maxDepth ?? standardDepth
  if (depth > most) return yield* refusal(`runs lie ${most} deep already; do the task without ${options.name}`)
  const limits = limitsOf(options, call)
  const effectRunId = `${run.effectRunId}.${callId}`
  const runId = nameOf(call)
  const linked = {
    type: "child_run_started",
    step,
    phase: "execute",
    data: { call: callId, tool, run: runId, depth }
  } as const
  if (run.closed) return yield* refusal("the run that wanted this is over")
  yield* Effect.mapError(run.trace.append(linked), () => refusal("the run could not be put on record"))
  const left = new Left()
  const inner: RunOptions = {
    ...options,
    limits,
    trace: run.traceChoices,
    settings: settingsOf(options, call),
    gates: gatesOf(options, call)
  }
  const waitSeconds = Math.min(options.waitSeconds ?? 60, limits.wallMillis / 1000)
  const running = Effect.flatMap(open({ ...options, waitSeconds }), (session) =>
    execute(session, task, inner, {
      emit: left.hear,
      watch: left.watch,
      started: () => {},
      runId,
      parent: { run: run.runId, call: callId, depth, effectRunId }
    })
  )
  const outcome = yield* Effect.scoped(running).pipe(
    Effect.provideService(Approval, run.settings.approver),
    Effect.mapError(
      ({ message }) => new ToolError({ kind: "execution_failed", message: `no run could begin: ${message}` })
    )
  )
  return yield* failureOf(outcome, left.effect)
})

/** What the tool owes follows from what the inner run's tools can do. */
const declared = (options: AgentToolOptions) => {
  const tool = Tool.make(options.name, {
    description: options.description,
    parameters: Schema.Struct({
      task: Schema.String.annotate({ description: "What is to be done, in full sentences." })
    }),
    success: Schema.String,
    failure: ToolError
  })
  const { tools } = options.tools
  const scopes = options.scopes === undefined ? {} : { scopes: options.scopes }
  const deadline = { deadlineMillis: options.limits?.wallMillis ?? Limits.defaults.wallMillis }
  const timed = Number.isFinite(deadline.deadlineMillis) ? deadline : {}
  const acting = tools.filter(({ contract }) => contract.risk !== "read")
  if (acting.length === 0) return Contract.declare(tool, { risk: "read", ...scopes, ...timed })
  const reversible = acting.every(({ contract }) => contract.reversible)
  return Contract.declare(tool, {
    risk: acting.some(({ contract }) => contract.risk === "external") ? "external" : "local-write",
    // The inner run honours the key of the call: its own effects are keyed under it. One that may say something else the
    // next time does not, so it is not even performed again for an outer run that goes on.
    ledger: samples(options) ? "none" : "external",
    // A whole run is too much to try again by itself: whoever lets the outer run go on decides about that.
    retry: "never",
    reversible,
    evidence: reversible
      ? { source: "self", describes: "the answer of the inner run" }
      : { source: "sensor", describes: "the record of the inner run: each of its calls is judged by its own evidence" },
    post: "result",
    ...scopes,
    ...timed
  })
}

const routed = (registry: Registry.Registry): Layer.Layer<ToolPool, never, ToolPool> =>
  takingCalls((owner) => (call, late) => {
    const { arguments: args, deadlineMillis, detached, settings, tool } = call
    if (registry.get(tool.name)?.hash !== tool.hash) return undefined
    if (deadlineMillis <= 0) return Effect.succeed(noTimeLeft)
    const options = { contract: tool.contract, deadlineMillis, graceMillis: 0, owner, late, detached }
    return runDetachable(executeTool(tool, args, { settings }), options)
  })

/**
 * Makes a run a tool. The model, and whatever else the inner run needs, are those of the context it is made in, and of the
 * outer run.
 */
export const asTool = Effect.fnUntraced(function* (
  options: AgentToolOptions
): Effect.fn.Return<AgentTool, Registry.RegistrationError, Model | RunServices> {
  const tool = declared(options)
  const handlers = { [options.name]: ({ task }: { readonly task: string }) => perform(options, task) }
  const registry = yield* Registry.fromToolkit(Toolkit.make(tool), handlers as never) as Effect.Effect<
    Registry.Registry,
    Registry.RegistrationError,
    Model | RunServices
  >
  const marked = yield* Registry.make(registry.tools.map((one) => Object.freeze({ ...one, isRun: true })))
  return { registry: marked, layer: routed(marked) }
})
