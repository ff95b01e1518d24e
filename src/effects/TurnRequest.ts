/** What the engine is asked for in one turn: seed, limits, the grammar of calls, and what reasoning may cost. */
import { opensReasoning } from "../engine/codecs/Thinking.ts"
import type { TurnRequest } from "../engine/Generation.ts"
import type { CallGrammar } from "../engine/Grammar.ts"
import { openingOptions, phaseNow, type RunContext } from "./RunContext.ts"
import { seedOf } from "./Seeds.ts"

/** The grammar of calls, told where reasoning stands in this turn. */
const grammarOf = (run: RunContext, grammar: CallGrammar): CallGrammar => {
  const tags = run.session.codec.reasoning
  if (tags === undefined) return grammar
  const opened = opensReasoning(run.session.codec, openingOptions(run))
  return { ...grammar, reasoning: { open: tags.open, close: tags.close, opened } }
}

/** What reasoning may cost in this turn, where that is limited. A turn that goes on has its reasoning behind it. */
const budgetOf = (run: RunContext, goesOn: boolean): Pick<TurnRequest, "thinking"> => {
  const { codec } = run.session
  const { thinkTokens } = run.settings.phases[phaseNow(run)]
  if (thinkTokens === Infinity || goesOn) return {}
  const options = openingOptions(run)
  const bounds = codec.thinking?.(options) ?? codec.reasoning
  if (bounds === undefined) return {}
  const opened = opensReasoning(codec, options)
  return { thinking: { ...bounds, opened, maxTokens: thinkTokens } }
}

/** @param attempt 0 to 15, different for everything that is generated at one boundary */
export const requestOf = (run: RunContext, turn: number, attempt: number, goesOn: boolean): TurnRequest => {
  const { phases, priority, sampling } = run.settings
  const { outputTokens, temperature, topK, topP } = phases[phaseNow(run)]
  // A chat has no tools, so nothing to hold it to.
  const held = run.taskSession === undefined ? run.constraint : undefined
  const grammar = held === undefined ? undefined : grammarOf(run, held.grammar)
  return {
    maxTokens: outputTokens,
    sampling: { temperature, topK, topP, seed: seedOf(sampling.seed, turn, attempt) },
    stops: run.session.codec.stops,
    ends: run.session.codec.ends,
    live: run.live || run.trace.options.tokenEvents,
    ...(grammar === undefined ? {} : { grammar }),
    ...(priority === undefined ? {} : { priority }),
    ...budgetOf(run, goesOn)
  }
}
