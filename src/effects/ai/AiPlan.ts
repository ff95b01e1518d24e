/**
 * One request as a plan: what a session has to hold, what opens the turn, and how the turn is held. A request for an object
 * puts its question, with the schema, into the turn itself: the turn is rolled back, so the log never holds either.
 */
import * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Result from "effect/Result"
import type { Codec, RenderOptions } from "../../engine/codecs/Codec.ts"
import { opensReasoning } from "../../engine/codecs/Thinking.ts"
import type { TurnRequest } from "../../engine/Generation.ts"
import type { CallGrammar } from "../../engine/Grammar.ts"
import type { Segment } from "../../engine/Prompt.ts"
import { answerLead, callFirst, callLead, valueGrammar } from "../../engine/WholeTurn.ts"
import type { JsonObject } from "../../tools/JsonText.ts"
import { parametersOf } from "../../tools/Parameters.ts"
import type { ToolSpec } from "../../tools/ToolCall.ts"
import { closingOf } from "../RunContext.ts"
import { type AiConversation, keyOf, read, type Turn } from "./AiConversation.ts"
import type { AiSettings } from "./AiSettings.ts"
import { type AiTools, toolsOf } from "./AiTools.ts"

export interface AiPlan {
  readonly conversation: AiConversation
  readonly tools: AiTools
  readonly options: RenderOptions
  /** The schema of the object that is asked for. */
  readonly object: { readonly name: string; readonly schema: JsonObject } | undefined
  /** Turns the session holds before this one is opened. */
  readonly before: ReadonlyArray<Turn>
  /** One for the system block, then one for each turn of `before`. */
  readonly keys: ReadonlyArray<string>
}

export const planOf = (
  codec: Codec,
  options: LanguageModel.ProviderOptions,
  settings: AiSettings
): Result.Result<AiPlan, AiError.AiErrorReason> =>
  Result.gen(function* () {
    const conversation = yield* read(options.prompt)
    const tools = yield* toolsOf(options)
    const object = options.responseFormat.type === "json" ? yield* objectOf(options.responseFormat) : undefined
    const { turns } = conversation
    const before = object !== undefined && turns.at(-1)?.kind === "user" ? turns.slice(0, -1) : turns
    // Reasoning would stand before what the turn has to begin with.
    const thinking = object !== undefined || tools.required ? false : settings.thinking
    const render = { tools: tools.shown, ...(thinking === undefined ? {} : { thinking }) }
    return {
      conversation,
      tools,
      object,
      before,
      options: { ...render, after: before.at(-1)?.kind === "answers" && object === undefined ? "answers" : "user" },
      keys: [JSON.stringify(codec.system(conversation.system, render)), ...before.map(keyOf)]
    } satisfies AiPlan
  })

const objectOf = ({ objectName, schema }: Extract<LanguageModel.ProviderOptions["responseFormat"], { type: "json" }>) =>
  Result.try({
    try: () => ({ name: objectName, schema: parametersOf(schema) }),
    catch: (cause) =>
      new AiError.UnsupportedSchemaError({ description: cause instanceof Error ? cause.message : String(cause) })
  })

const turnSegments = (
  codec: Codec,
  { options }: AiPlan,
  turn: Turn,
  previous: Turn | undefined
): ReadonlyArray<Segment> => {
  if (turn.kind === "user") return codec.user(turn.text)
  if (turn.kind === "answers") return codec.answers(turn.answers)
  const given: RenderOptions = { ...options, after: previous?.kind === "answers" ? "answers" : "user" }
  const calls = (turn.turn.calls ?? []).length > 0
  return [...codec.opening(given), ...codec.written(turn.turn, given), ...closingOf(codec, calls)]
}

/** What a session that holds the first `held` keys still has to evaluate. */
export const missing = (codec: Codec, plan: AiPlan, held: number): ReadonlyArray<Segment> => {
  const { before, conversation, options } = plan
  const out = held === 0 ? [...codec.system(conversation.system, options)] : []
  const from = Math.max(0, held - 1)
  for (const [index, turn] of before.entries()) {
    if (index >= from) out.push(...turnSegments(codec, plan, turn, before[index - 1]))
  }
  return out
}

const question = (last: Turn | undefined, { name, schema }: { readonly name: string; readonly schema: JsonObject }) => {
  const told = `Answer with one JSON object (${name}) and nothing else. Its JSON Schema: ${JSON.stringify(schema)}`
  return last?.kind === "user" ? `${last.text}\n\n${told}` : told
}

/** How a turn begins. `reasoningOpen`: with a block of reasoning. */
export interface Beginning {
  readonly opening: ReadonlyArray<Segment>
  readonly reasoningOpen: boolean
  readonly grammar: CallGrammar | undefined
}

/** `holds`: the engine can hold a turn to a grammar. What leads to a held turn is written for the model. */
export const beginningOf = (codec: Codec, plan: AiPlan, settings: AiSettings, holds: boolean): Beginning => {
  const { conversation, object, options, tools } = plan
  const opening = codec.opening(options)
  const reasoningOpen = opensReasoning(codec, options)
  const held = holds && settings.constrained !== false
  if (object !== undefined) {
    const begun = [...codec.user(question(conversation.turns.at(-1), object)), ...opening]
    const grammar = held ? valueGrammar(object.schema, settings.objectBounds)?.grammar : undefined
    return grammar === undefined
      ? { opening: begun, reasoningOpen, grammar }
      : { opening: [...begun, ...answerLead(codec, options)], reasoningOpen: false, grammar }
  }
  if (tools.required && held) {
    const grammar = callFirst(codec, tools.heard, options)
    if (grammar !== undefined) {
      return { opening: [...opening, ...callLead(codec, options)], reasoningOpen: false, grammar }
    }
  }
  const grammar = held ? callGrammar(codec, tools.heard) : undefined
  const tags = codec.reasoning
  const told =
    grammar === undefined || tags === undefined
      ? grammar
      : { ...grammar, reasoning: { open: tags.open, close: tags.close, opened: reasoningOpen } }
  return { opening, reasoningOpen, grammar: told }
}

/** Choices among the tools of one toolkit that are remembered. */
const keptGrammars = 16

/** Making a grammar takes longer than a short turn; a toolkit's specs are the same objects each time. */
const grammars = new WeakMap<
  ToolSpec,
  Array<{ readonly id: string; readonly specs: ReadonlyArray<ToolSpec>; readonly grammar: CallGrammar | undefined }>
>()

const callGrammar = (codec: Codec, specs: ReadonlyArray<ToolSpec>): CallGrammar | undefined => {
  const first = specs[0]
  if (first === undefined || codec.grammar === undefined) return undefined
  const known = grammars.get(first) ?? []
  grammars.set(first, known)
  const same = known.find(
    (one) =>
      one.id === codec.id && one.specs.length === specs.length && one.specs.every((spec, at) => spec === specs[at])
  )
  if (same !== undefined) return same.grammar
  const grammar = codec.grammar(specs)?.grammar
  known.push({ id: codec.id, specs, grammar })
  if (known.length > keptGrammars) known.shift()
  return grammar
}

/** What reasoning may cost, where that is limited. */
export const thinkingOf = (
  codec: Codec,
  { object, options, tools }: AiPlan,
  { thinkTokens }: AiSettings,
  opened: boolean
): Pick<TurnRequest, "thinking"> => {
  const bounds = codec.thinking?.(options) ?? codec.reasoning
  if (thinkTokens === undefined || bounds === undefined || object !== undefined || tools.required) return {}
  return { thinking: { ...bounds, opened, maxTokens: Math.max(1, thinkTokens) } }
}
