/**
 * `effect/ai`'s `LanguageModel` on a `Model` of ours: any Effect AI program on a local model file. Calls are read by the
 * strict codec of the model's family, objects are held to their schema by a grammar, content of people never becomes a
 * mark. It runs no tool and governs nothing: that is the program's, or the `Agent`'s.
 */
import * as AiError from "effect/ai/AiError"
import { IdGenerator } from "effect/ai/IdGenerator"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as AiModel from "effect/ai/Model"
import type * as Response from "effect/ai/Response"
import * as Telemetry from "effect/ai/Telemetry"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type LlamaOptions, layerWorker } from "../../actors/Inference.ts"
import type { Codec } from "../../engine/codecs/Codec.ts"
import type { EngineError } from "../../engine/EngineError.ts"
import type { MessageCall } from "../../engine/Message.ts"
import type { Model } from "../../engine/Model.ts"
import { parametersOf } from "../../tools/Parameters.ts"
import type { ProposedCall } from "../../tools/ToolCall.ts"
import { aiError, cutValue, engineReason, type Method, malformed, noCall } from "./AiErrors.ts"
import { Parts } from "./AiParts.ts"
import { type AiPlan, planOf } from "./AiPlan.ts"
import { type AiSettings, CurrentSettings, samplingOf } from "./AiSettings.ts"
import { type AiUsage, type Ended, speak } from "./AiSpeech.ts"
import * as WarmSessions from "./WarmSessions.ts"

export interface LlamaLanguageModelOptions extends AiSettings {
  /** A family's id, or a codec. Without it the codec is chosen from the model's own template. */
  readonly codec?: string | Codec
  /** Sessions that are kept between requests, and so requests at a time. Default 2; the model must have as many sequences. */
  readonly sessions?: number
}

type Part = Response.StreamPartEncoded
type Failure = AiError.AiError

/** The service over a `Model`. Its sessions are closed with the scope. Fails where no codec speaks the model's language. */
export const make = Effect.fnUntraced(function* (
  options: LlamaLanguageModelOptions = {}
): Effect.fn.Return<LanguageModel.LanguageModel, EngineError, Model | Scope.Scope> {
  const { codec, sessions: limit = 2, ...settings } = options
  const sessions = yield* WarmSessions.make({ codec, limit: Math.max(1, limit) })
  const answer = (asked: LanguageModel.ProviderOptions, method: Method) => respond(sessions, settings, asked, method)
  return yield* LanguageModel.make({
    streamText: (asked) => Stream.map(answer(asked, "streamText"), ({ part }) => part).pipe(Stream.filter(isPart)),
    generateText: (asked) => {
      const method = asked.responseFormat.type === "json" ? "generateObject" : "generateText"
      return Stream.runCollect(answer(asked, method)).pipe(Effect.map(gathered))
    },
    codecTransformer: (schema) => ({ codec: Schema.toCodecJson(schema), jsonSchema: parametersOf(schema) }),
    // Families put what was said first, first: a later system message is read with the others.
    supportsSystemMessagesInHistory: Effect.succeed(false)
  })
})

/** `make` as a layer over a `Model`. */
export const layer = (
  options?: LlamaLanguageModelOptions
): Layer.Layer<LanguageModel.LanguageModel, EngineError, Model> =>
  Layer.effect(LanguageModel.LanguageModel, make(options))

/** A model file in a thread of its own, as a `LanguageModel`. */
export const layerFile = (
  file: LlamaOptions,
  options?: LlamaLanguageModelOptions
): Layer.Layer<LanguageModel.LanguageModel, EngineError> => layer(options).pipe(Layer.provide(layerWorker(file)))

/**
 * For programs that choose among providers (`effect/ai/Model`, `ExecutionPlan`): provider `writ`, under a name of the
 * caller's. A model that nobody can speak to fails each request.
 */
export const model = <const Name extends string>(
  name: Name,
  options?: LlamaLanguageModelOptions
): AiModel.Model<"writ", LanguageModel.LanguageModel, Model> =>
  AiModel.make(
    "writ",
    name,
    Layer.effect(
      LanguageModel.LanguageModel,
      make(options).pipe(Effect.catch((error) => LanguageModel.make(refusing(error))))
    )
  )

const refusing = (error: EngineError) => ({
  generateText: () => Effect.fail(aiError("generateText", engineReason(error))),
  streamText: () => Stream.fail(aiError("streamText", engineReason(error)))
})

/** Settings for the requests of an effect. For a stream: `Stream.provideService(CurrentSettings, settings)`. */
export const withSettings: {
  (settings: AiSettings): <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  <A, E, R>(effect: Effect.Effect<A, E, R>, settings: AiSettings): Effect.Effect<A, E, R>
} = dual(2, <A, E, R>(effect: Effect.Effect<A, E, R>, settings: AiSettings) =>
  Effect.flatMap(CurrentSettings, (outer) => Effect.provideService(effect, CurrentSettings, { ...outer, ...settings }))
)

/** A part of a stream, or what only a whole response has. */
interface Said {
  readonly part?: Part
  readonly whole?: Response.PartEncoded
}

const isPart = (part: Part | undefined): part is Part => part !== undefined
const both = (part: Part & Response.PartEncoded): Said => ({ part, whole: part })
const gathered = (said: ReadonlyArray<Said>): Array<Response.PartEncoded> =>
  said.flatMap(({ whole }) => (whole === undefined ? [] : [whole]))

const respond = (
  sessions: WarmSessions.WarmSessions,
  base: AiSettings,
  asked: LanguageModel.ProviderOptions,
  method: Method
): Stream.Stream<Said, Failure, IdGenerator> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const settings = { ...base, ...(yield* CurrentSettings) }
      const plan = planOf(sessions.codec, asked, settings)
      if (Result.isFailure(plan)) return yield* aiError(method, plan.failure)
      const seed = settings.seed ?? (yield* Random.nextIntBetween(0, 0xffff_ffff))
      const { generateId } = yield* IdGenerator
      const id = yield* generateId()
      annotate(asked, sessions.model.name, settings, seed)
      const timestamp = DateTime.formatIso(yield* DateTime.now)
      const parts = new Parts()
      const first = both({ type: "response-metadata", id, modelId: sessions.model.name, timestamp })
      const rest = speak(sessions, plan.success, settings, seed).pipe(
        Stream.mapError((error) => aiError(method, engineReason(error))),
        Stream.mapEffect((said) =>
          said._tag === "Ended"
            ? finish(said, plan.success, parts, method, asked, generateId())
            : Effect.succeed(parts.take(said).map((part): Said => ({ part })))
        ),
        Stream.flattenIterable
      )
      return Stream.concat(Stream.succeed(first), rest)
    })
  )

/** Settles the turn, then tells how it ended. */
const finish = Effect.fnUntraced(function* (
  ended: Ended,
  plan: AiPlan,
  parts: Parts,
  method: Method,
  asked: LanguageModel.ProviderOptions,
  newId: Effect.Effect<string>
): Effect.fn.Return<ReadonlyArray<Said>, Failure> {
  const { action, reason, turn, usage } = ended
  const fail = (why: AiError.AiErrorReason) => aiError(method, why)
  const out: Array<Said> = parts.close().map((part) => ({ part }))
  let finished: Response.FinishReason = reason === "length" ? "length" : "stop"
  let calls: ReadonlyArray<MessageCall> = []
  if (plan.object !== undefined) {
    if (reason === "length") return yield* fail(cutValue(parts.text, turn))
  } else if (action._tag === "ToolCalls") {
    calls = yield* Effect.mapError(named(action.calls, plan, newId), fail)
    finished = "tool-calls"
  } else if (action._tag === "Malformed" && action.code !== "empty_turn" && reason !== "length") {
    return yield* fail(malformed(action, turn))
  } else if (plan.tools.required && reason !== "length") return yield* fail(noCall(turn))
  // What was asked in the turn itself, or cannot stand in a conversation, does not stay.
  if (plan.object === undefined && action._tag !== "Malformed") {
    yield* ended.keep(parts.key(calls)).pipe(
      Effect.catchIf(
        ({ reason: why }) => why === "context_overflow",
        () => Effect.void
      ),
      Effect.mapError((error) => fail(engineReason(error)))
    )
  }
  out.push(...parts.whole.map((whole): Said => ({ whole })))
  for (const { arguments: params, id = "", name } of calls) out.push(both({ type: "tool-call", id, name, params }))
  Telemetry.addGenAIAnnotations(asked.span, {
    response: { finishReasons: [finished] },
    usage: { inputTokens: usage.inputTokens, outputTokens: usage.outputTokens }
  })
  out.push(both({ type: "finish", reason: finished, usage: usageOf(usage), response: undefined }))
  return out
})

/** Calls with ids of their own, once every name is one that may be called. */
const named = (
  calls: ReadonlyArray<ProposedCall>,
  { tools }: AiPlan,
  newId: Effect.Effect<string>
): Effect.Effect<ReadonlyArray<MessageCall>, AiError.AiErrorReason> => {
  const availableTools = tools.heard.map(({ name }) => name)
  const used = new Set<string>()
  return Effect.forEach(calls, ({ arguments: args, id, name }) => {
    if (!tools.deferred && !availableTools.includes(name)) {
      return Effect.fail(new AiError.ToolNotFoundError({ toolName: name, availableTools }))
    }
    const own = id !== undefined && id !== "" && !used.has(id)
    return Effect.map(own ? Effect.succeed(id) : newId, (callId): MessageCall => {
      used.add(callId)
      return { name, arguments: args, id: callId }
    })
  })
}

const usageOf = (usage: AiUsage) => ({
  inputTokens: {
    total: usage.inputTokens,
    cacheRead: usage.cachedTokens,
    uncached: usage.inputTokens - usage.cachedTokens,
    cacheWrite: undefined
  },
  outputTokens: {
    total: usage.outputTokens,
    reasoning: usage.reasoningTokens,
    text: usage.outputTokens - usage.reasoningTokens
  }
})

const annotate = ({ span }: LanguageModel.ProviderOptions, name: string, settings: AiSettings, seed: number): void => {
  const { temperature, topK, topP } = samplingOf(settings, seed)
  Telemetry.addGenAIAnnotations(span, {
    provider: { name: "writ" },
    operation: { name: "chat" },
    request: { model: name, temperature, topK, topP, seed, maxTokens: settings.maxTokens },
    response: { model: name }
  })
}
