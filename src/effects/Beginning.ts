/** The first events of a run's record: the task and its limits, what it is made with, how it was routed, what it goes on from. */
import { hash } from "node:crypto"
import type { EventData, TraceInput } from "../actors/TraceEvent.ts"
import type { RunTrace } from "../actors/TraceWriter.ts"
import * as ContextPolicy from "./ContextPolicy.ts"
import type * as Gates from "./Gates.ts"
import * as Limits from "./Limits.ts"
import * as Phases from "./Phases.ts"
import { type Asked, type RunContext, round3, type Session } from "./RunContext.ts"
import { effectVersion, version } from "./Version.ts"

const gatesRecorded = ({ authority, candidates, dryRun, governor, profile, retry }: Gates.Gates) => ({
  profile,
  authority: authority.name,
  governor: governor.name,
  weights: governor.weights,
  retry: { attempts: retry.attempts, delay_ms: retry.delayMillis, factor: retry.factor },
  dry_run: dryRun,
  candidates
})

const productOf = (build: Session["model"]["build"]): Readonly<Record<string, string>> => ({
  writ: version,
  effect: effectVersion,
  node: process.versions.node,
  // Also among the facts of the model's build; here because they are what the run depends on.
  ...(build?.["library"] === undefined ? {} : { library: String(build["library"]) }),
  ...(build?.["llamaCpp"] === undefined ? {} : { llamaCpp: String(build["llamaCpp"]) })
})

const toolsRecorded = ({ registry }: Session): EventData<"provenance">["tools"] =>
  registry.tools.map(({ contract, hash, isRun, name }) => ({
    name,
    hash,
    risk: contract.risk,
    ledger: contract.ledger,
    retry: contract.retry,
    reversible: contract.reversible,
    evidence: contract.evidence.source,
    ...(contract.compensation === undefined ? {} : { compensation: contract.compensation }),
    ...(isRun === undefined ? {} : { run: isRun })
  }))

/** What the run was made with. A chat that may hand over was made for its task: tools and system text are those. */
const provenance = (run: RunContext): TraceInput => {
  const { settings, trace } = run
  const session = run.taskSession ?? run.session
  const { template, ...model } = session.model
  const { clarify, constrained, phase, phases, thinking } = settings
  return {
    type: "provenance",
    step: "run",
    data: {
      product: productOf(model.build),
      model: { ...model, ...(template === undefined ? {} : { templateSha256: hash("sha256", template) }) },
      codec: session.codec.id,
      codec_reason: session.codecReason,
      tools: toolsRecorded(session),
      tools_hash: session.registry.hash,
      system: trace.text(session.system ?? ""),
      policy: settings.approver.name,
      gates: gatesRecorded(settings.gates),
      context: ContextPolicy.recorded(settings.context),
      sampling: settings.sampling,
      profile: { thinking: thinking ?? null, constrained, ...(phase === undefined ? {} : { phase }), clarify },
      phases: Object.fromEntries(Phases.phaseNames.map((name) => [name, Phases.recorded(phases[name])])),
      not_carried: run.constraint?.notCarried ?? []
    }
  }
}

const started = ({ parent, settings, task, trace }: RunContext, length: number): TraceInput => ({
  type: "run_started",
  step: "run",
  data: {
    task: trace.text(task),
    limits: Limits.recorded(settings.limits),
    calls: settings.calls,
    render: "verbatim",
    content: trace.options.content,
    committed_len: length,
    ...(parent === undefined ? {} : { parent: { run: parent.run, call: parent.call, depth: parent.depth } }),
    ...(trace.options.redact === undefined ? {} : { redact: trace.options.redact.names })
  }
})

/** Who decided that the run talks or works. */
export interface Routed {
  readonly route: "chat" | "task"
  readonly by: "model" | "caller"
  readonly reason: EventData<"routed">["reason"]
  /** What the model wrote, where it was asked, and what that took. */
  readonly text?: string
  readonly tokens?: number
  readonly millis?: number
}

const routedEvent = (
  trace: RunTrace,
  length: number,
  { by, millis, reason, route, text, tokens }: Routed
): TraceInput => ({
  type: "routed",
  step: "run",
  data: {
    route,
    by,
    reason,
    ...(text === undefined ? {} : { text: trace.text(text) }),
    ...(tokens === undefined ? {} : { output_tokens: tokens }),
    ...(millis === undefined ? {} : { duration_ms: round3(millis) }),
    committed_len: length
  }
})

/** A run that goes on in the same session: nothing is evaluated again. */
const wentOn = ({ events, nextTurn, rootRunId, runId, spent }: Asked, length: number): ReadonlyArray<TraceInput> => [
  {
    type: "run_resumed",
    step: "run",
    data: {
      from_run: runId,
      root_run: rootRunId,
      from_seq: events,
      next_turn: nextTurn,
      spent: spentRecorded(spent),
      calls: []
    }
  },
  {
    type: "session_state_changed",
    step: "run",
    data: { role: "history", span: [length, length], committed_len: length }
  }
]

/** Budgets that go on, as the trace has them. */
export const spentRecorded = ({ repairs, toolCalls, wallMillis }: Limits.Spent) => ({
  tool_calls: toolCalls,
  repairs,
  wall_ms: round3(wallMillis)
})

/** What the record begins with. `length`: tokens that are in the context already. */
export const beginning = (
  run: RunContext,
  length: number,
  routed: Routed | undefined,
  asked: Asked | undefined
): ReadonlyArray<TraceInput> => [
  started(run, length),
  provenance(run),
  ...(routed === undefined ? [] : [routedEvent(run.trace, length, routed)]),
  ...(asked === undefined ? [] : wentOn(asked, length))
]
