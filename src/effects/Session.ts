/** Opens a session: one conversation on one sequence of the model, with a codec that fits and a fixed set of tools. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { Codec } from "../engine/codecs/Codec.ts"
import * as Families from "../engine/codecs/Families.ts"
import { marksOf, neutralising } from "../engine/codecs/Neutral.ts"
import { EngineError } from "../engine/EngineError.ts"
import { Model, type ModelIdentity } from "../engine/Model.ts"
import { control, text } from "../engine/Prompt.ts"
import type { Registry } from "../tools/Registry.ts"
import type { ToolSpec } from "../tools/ToolCall.ts"
import type { Session } from "./RunContext.ts"
import { Transcript } from "./Transcript.ts"

export interface SessionOptions {
  readonly tools: Registry
  /** System text. Without one the family's own default is used, if it has one. */
  readonly system?: string
  /** A family's id, or a codec. Without it the codec is chosen from the model's own template. */
  readonly codec?: string | Codec
  /** Tools whose calls are recognised, where they are others than those advertised. */
  readonly heard?: ReadonlyArray<ToolSpec>
}

const refuse = (message: string) => Effect.fail(new EngineError({ reason: "unknown_template", message }))

/** What the model's own template says, for a codec that was asked for by name. */
const secondOpinion = (chosen: ReturnType<typeof Families.choose>, codec: Codec): string => {
  if (Result.isFailure(chosen)) return ""
  return `; the template ${chosen.success.codec.id === codec.id ? "agrees" : "says otherwise"} (${chosen.success.reason})`
}

const resolve = (
  identity: ModelIdentity,
  wanted: string | Codec | undefined
): Effect.Effect<Families.Chosen, EngineError> => {
  if (typeof wanted === "object") return Effect.succeed({ codec: wanted, reason: "given by the caller" })
  if (wanted === undefined && identity.engine !== "llama" && identity.template === undefined) {
    // A script speaks what it was written in, a hosted model what it is told; the default is the project's own tests' family.
    const reason = `${identity.engine === "scripted" ? "a script" : "a language model"} without a template speaks qwen2.5`
    return Result.match(Families.byId("qwen2.5"), {
      onFailure: (failure) => refuse(failure.reason),
      onSuccess: (codec) => Effect.succeed({ codec, reason })
    })
  }
  const chosen = Families.choose({
    ...(identity.template === undefined ? {} : { template: identity.template }),
    ...(identity.architecture === undefined ? {} : { architecture: identity.architecture }),
    name: identity.name
  })
  if (wanted === undefined) {
    return Result.isSuccess(chosen) ? Effect.succeed(chosen.success) : refuse(chosen.failure.reason)
  }
  return Result.match(Families.byId(wanted), {
    onFailure: (failure) => refuse(failure.reason),
    onSuccess: (codec) => Effect.succeed({ codec, reason: `asked for by name${secondOpinion(chosen, codec)}` })
  })
}

/** Codecs as they are safe with a model's vocabulary, by the codec. */
const guardedCodecs = new WeakMap<ModelIdentity, Map<string, Codec>>()

/** The codec for this vocabulary: marks of the family that are plain text in it are made visible in content. */
const guarded = Effect.fnUntraced(function* (
  { identity, tokenize }: Model["Service"],
  codec: Codec
): Effect.fn.Return<Codec, EngineError> {
  if (identity.engine !== "llama") return codec
  const known = guardedCodecs.get(identity) ?? new Map<string, Codec>()
  guardedCodecs.set(identity, known)
  const before = known.get(codec.id)
  if (before !== undefined) return before
  const alone = (yield* tokenize([text("x")])).length
  const plain: Array<string> = []
  for (const mark of marksOf(codec)) {
    const ours = yield* tokenize([text("x"), control(mark)])
    const theirs = yield* tokenize([text("x"), text(mark)])
    // A mark can be one token and an ordinary one all the same, which content could be as well.
    const same = ours.length === theirs.length && ours.every((token, at) => token === theirs[at])
    if (same || ours.length > alone + 1) plain.push(mark)
  }
  const made = neutralising(codec, plain)
  known.set(codec.id, made)
  return made
})

export const open = Effect.fnUntraced(function* (
  options: SessionOptions
): Effect.fn.Return<Session, EngineError, Model | Scope.Scope> {
  const model = yield* Model
  const { codec, reason } = yield* resolve(model.identity, options.codec)
  return {
    model: model.identity,
    context: yield* model.session,
    codec: yield* guarded(model, codec),
    codecReason: reason,
    registry: options.tools,
    ...(options.heard === undefined ? {} : { heard: options.heard }),
    system: options.system,
    transcript: new Transcript(),
    frameSizes: new Map(),
    opened: false,
    turnLeft: false,
    owed: undefined,
    busy: false
  }
})
