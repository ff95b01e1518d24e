/**
 * Several turns sampled at one boundary, so that there is something to choose among. Each is read, priced and rolled back;
 * the one that is chosen is then generated again from its seed, and passes every gate like any other. The prefix is shared:
 * a sample costs its own tokens.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { LedgerError } from "../actors/EffectLedgerError.ts"
import type { TraceError } from "../actors/TraceWriter.ts"
import type { Action } from "../engine/codecs/Codec.ts"
import { opensReasoning } from "../engine/codecs/Thinking.ts"
import { EngineError } from "../engine/EngineError.ts"
import type { EndReason } from "../engine/Generation.ts"
import type { Segment } from "../engine/Prompt.ts"
import { type Prospect, weigh, withImplicit } from "./Governor.ts"
import { governorFor, scoredForTrace } from "./legality/Choice.ts"
import { prices } from "./legality/ContractTerms.ts"
import { legalityOf } from "./legality/Legality.ts"
import { type CallRecord, openingOptions, type RunContext, rollBack } from "./RunContext.ts"
import { TurnReader } from "./TurnReader.ts"
import { requestOf } from "./TurnRequest.ts"

interface Sample {
  readonly action: Action
  readonly text: string
  readonly reason: EndReason
  readonly tokens: number
}

/** One sample, read to its end and rolled back. Nobody is shown anything of it. */
const sampleOnce = Effect.fnUntraced(function* (
  run: RunContext,
  turn: number,
  at: number,
  opening: ReadonlyArray<Segment>
): Effect.fn.Return<Sample, EngineError> {
  const { codec, context, registry } = run.session
  const reasoningOpen = opensReasoning(codec, openingOptions(run))
  const reader = new TurnReader(
    turn,
    () => codec.parser({ tools: registry.specs, reasoningOpen }),
    () => {}
  )
  let ended: { readonly reason: EndReason; readonly tokens: number } | undefined
  const request = { ...requestOf(run, turn, 2 * at, false), live: false }
  yield* Stream.runForEach(context.turn(opening, request), (event) =>
    Effect.sync(() => {
      if (event._tag === "End") ended = { reason: event.reason, tokens: event.usage.outputTokens }
      else if (event._tag !== "Prefill") reader.push(event.text, event.tokens)
    })
  ).pipe(Effect.onExit(() => rollBack(run.session)))
  if (ended === undefined) {
    return yield* new EngineError({ reason: "failed", message: "the engine's turn ended without saying how" })
  }
  return { action: reader.end(ended.reason), text: reader.raw, ...ended }
})

/** What a turn of calls would cost and harm, all of it together. Illegal as soon as one of its calls is. */
const pricesOf = Effect.fnUntraced(function* (
  run: RunContext,
  turn: number,
  calls: Extract<Action, { _tag: "ToolCalls" }>["calls"]
): Effect.fn.Return<Pick<Prospect, "legal" | "cost" | "risk">, LedgerError> {
  let [legal, cost, risk] = [true, 0, 0]
  for (const proposed of calls) {
    const record: CallRecord = { callId: `call-${turn}-${proposed.ordinal}`, turn, proposed }
    const found = yield* legalityOf(run, record)
    const tool = run.session.registry.get(proposed.name)
    const priced = tool === undefined || found.arguments === undefined ? undefined : prices(tool, found.arguments)
    if (found.refusal !== undefined || priced === undefined || Result.isFailure(priced)) {
      legal = false
      continue
    }
    cost += priced.success.cost
    risk += priced.success.hazard
  }
  return { legal, cost, risk }
})

const prospectOf = Effect.fnUntraced(function* (
  run: RunContext,
  turn: number,
  at: number,
  { action, reason }: Sample
): Effect.fn.Return<Prospect, LedgerError> {
  const about = { id: `sample-${at}`, order: at, cost: 0, risk: 0 }
  if (action._tag === "Malformed") return { ...about, kind: "proposal", legal: false }
  if (action._tag === "FinalText") return { ...about, kind: "answer", legal: reason !== "length" }
  const first = action.calls[0]
  const call = first === undefined ? {} : { call: { tool: first.name, arguments: first.arguments } }
  return { ...about, kind: "proposal", ...(yield* pricesOf(run, turn, action.calls)), ...call }
})

const sampled = (run: RunContext, turn: number, at: number, sample: Sample): void =>
  run.trace.note({
    type: "candidate_sampled",
    step: `model-${turn}`,
    phase: "decode",
    data: {
      turn,
      id: `sample-${at}`,
      seed: requestOf(run, turn, 2 * at, false).sampling.seed,
      stop_reason: sample.reason,
      output_tokens: sample.tokens,
      action: ({ FinalText: "final_text", ToolCalls: "tool_calls", Malformed: "malformed" } as const)[
        sample.action._tag
      ],
      text: run.trace.text(sample.text)
    }
  })

/**
 * Which of several samples is to be generated in earnest, by its number. Where none of them beats doing nothing it is the
 * first, and the gates say why it does not happen.
 */
export const sampleTurns = Effect.fnUntraced(function* (
  run: RunContext,
  turn: number,
  opening: ReadonlyArray<Segment>
): Effect.fn.Return<number, EngineError | TraceError | LedgerError> {
  const { candidates } = run.settings.gates
  if (candidates === 1) return 0
  const prospects: Array<Prospect> = []
  for (let at = 0; at < candidates; at++) {
    run.budget.generations++
    const sample = yield* sampleOnce(run, turn, at, opening)
    sampled(run, turn, at, sample)
    prospects.push(yield* prospectOf(run, turn, at, sample))
  }
  const governor = governorFor(run.settings.gates)
  const situation = { task: run.task, turn, toolCalls: run.budget.toolCalls, candidates: withImplicit(prospects) }
  const weighed = yield* Effect.result(weigh(governor, situation))
  // A governor at fault is said where the first sample meets its gate.
  if (Result.isFailure(weighed)) return 0
  const { chosen, scored } = weighed.success
  yield* run.trace.append({
    type: "proposal_scored",
    step: `model-${turn}`,
    phase: "validate",
    data: {
      governor: governor.name,
      weights: governor.weights,
      candidates: scored.map(scoredForTrace),
      chosen: chosen?.id ?? null
    }
  })
  return prospects.find(({ id }) => id === chosen?.id)?.order ?? 0
})
