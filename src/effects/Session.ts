/**
 * Opens a session: one conversation on one sequence of the model, with a codec that fits and a fixed set of tools. And takes
 * one back to where it was. Effects of tools are not undone by that.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { Codec } from "../engine/codecs/Codec.ts"
import * as Families from "../engine/codecs/Families.ts"
import { marksOf, neutralising } from "../engine/codecs/Neutral.ts"
import { openAiChat, speaksChat } from "../engine/codecs/OpenAiChat.ts"
import { EngineError } from "../engine/EngineError.ts"
import type { Priority } from "../engine/Generation.ts"
import { Model, type ModelIdentity } from "../engine/Model.ts"
import { control, text } from "../engine/Prompt.ts"
import { SessionWait } from "../engine/SessionWait.ts"
import type { Registry } from "../tools/Registry.ts"
import type { ToolSpec } from "../tools/ToolCall.ts"
import { InvalidOptions } from "./Run.ts"
import type { Session } from "./RunContext.ts"
import { type Mark, Transcript } from "./Transcript.ts"

/** How long a session is waited for where nothing else is said. Seconds. */
const waitSeconds = 60

export interface SessionOptions {
  readonly tools: Registry
  /** System text. Without one the family's own default is used, if it has one. */
  readonly system?: string
  /** A family's id, or a codec. Without it the codec is chosen from the model's own template. */
  readonly codec?: string | Codec
  /** Tools whose calls are recognised, where they are others than those advertised. */
  readonly heard?: ReadonlyArray<ToolSpec>
  /** 5 is served first, by a model that has fewer sessions than are wanted and by one that evaluates several at a time. Default 3. */
  readonly priority?: Priority
  /** Seconds to wait for a session while all of the model's are in use; 0: not at all. Default 60. */
  readonly waitSeconds?: number
}

const refuse = (message: string) => Effect.fail(new EngineError({ reason: "unknown_template", message }))

/** What the model's own template says, for a codec that was asked for by name. */
const secondOpinion = (chosen: ReturnType<typeof Families.choose>, codec: Codec): string => {
  if (Result.isFailure(chosen)) return ""
  return `; the template ${chosen.success.codec.id === codec.id ? "agrees" : "says otherwise"} (${chosen.success.reason})`
}

/** A server that is told messages has one language, and nobody else speaks it but a script. */
const toldMessages = (
  identity: ModelIdentity,
  wanted: string | undefined
): Effect.Effect<Families.Chosen, EngineError> => {
  const because = String(identity.build?.["because"] ?? "")
  if (!speaksChat(identity)) {
    return identity.engine === "scripted"
      ? Effect.succeed({ codec: openAiChat, reason: "asked for by name" })
      : refuse(`the codec ${openAiChat.id} is for servers that are told messages; leave it out`)
  }
  return wanted === undefined || wanted === openAiChat.id
    ? Effect.succeed({ codec: openAiChat, reason: `the server is told messages (${because})` })
    : refuse(`the codec ${wanted}: the server is told messages (${because}); prompts of ours need completions`)
}

const resolve = (
  identity: ModelIdentity,
  wanted: string | Codec | undefined
): Effect.Effect<Families.Chosen, EngineError> => {
  if (typeof wanted === "object") return Effect.succeed({ codec: wanted, reason: "given by the caller" })
  if (speaksChat(identity) || wanted === openAiChat.id) return toldMessages(identity, wanted)
  const told = identity.engine === "llama" || identity.engine === "openai"
  if (wanted === undefined && !told && identity.template === undefined) {
    // A script speaks what it was written in, a hosted model what it is told; the default is the project's own tests' family.
    const reason = `${identity.engine === "scripted" ? "a script" : "a language model"} without a template speaks qwen2.5`
    return Result.match(Families.byId("qwen2.5"), {
      onFailure: (failure) => refuse(failure.reason),
      onSuccess: (codec) => Effect.succeed({ codec, reason })
    })
  }
  const chosen = Families.choose(identity)
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

/** Without the grammar of calls, which no request to a server carries: the record is not to say that they were held. */
const unheld = ({ grammar: _, ...codec }: Codec): Codec => codec

/** The codec for this vocabulary: marks of the family that are plain text in it are made visible in content. */
const guarded = Effect.fnUntraced(function* (
  { identity, tokenize }: Model["Service"],
  codec: Codec
): Effect.fn.Return<Codec, EngineError> {
  if (identity.engine === "openai") codec = unheld(codec)
  if (identity.engine !== "llama" && (identity.engine !== "openai" || speaksChat(identity))) return codec
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
  const wait = { priority: options.priority ?? 3, seconds: options.waitSeconds ?? waitSeconds }
  const { codec, reason } = yield* resolve(model.identity, options.codec)
  return {
    model: model.identity,
    context: yield* Effect.provideService(model.session, SessionWait, wait),
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

/** A place in a session's conversation between two runs: what the context and the transcript hold there. Of no use elsewhere. */
export interface Boundary {
  readonly session: Session
  /** Tokens in the context. */
  readonly length: number
  readonly mark: Mark
  readonly opened: boolean
  readonly owed: Session["owed"]
}

const refused = (message: string) => Effect.fail(new InvalidOptions({ message }))

/** Where the session is now, for `rewind`. */
export const boundary = (session: Session): Effect.Effect<Boundary, InvalidOptions> =>
  Effect.suspend(() =>
    session.busy
      ? refused("this session runs a task; its place is known when that has ended")
      : Effect.map(session.context.length, (length) => ({
          session,
          length,
          mark: session.transcript.mark(),
          opened: session.opened,
          owed: session.owed
        }))
  )

/**
 * Takes the session back to an earlier place, context, transcript and what is owed to the model together. A session that
 * runs a task refuses, and so does a place that is no longer part of the conversation: one that was gone back behind, or
 * that a compaction has changed. What tools have done stays done.
 */
export const rewind = (session: Session, to: Boundary): Effect.Effect<void, EngineError | InvalidOptions> =>
  Effect.uninterruptible(
    Effect.suspend((): Effect.Effect<void, EngineError | InvalidOptions> => {
      if (session.busy) return refused("this session runs a task; wait for its end before going back")
      if (to.session !== session) return refused("the place to go back to is in another session")
      if (!session.transcript.reaches(to.mark)) {
        return refused("the place to go back to is no longer part of this conversation")
      }
      session.busy = true
      const back = Effect.map(session.context.rewind(to.length), () => {
        session.transcript.goBack(to.mark)
        session.opened = to.opened
        session.owed = to.owed
        // The run that asked went on, or was passed over: its next part is on record. What is said now is a task of its own.
        session.asked = undefined
        session.turnLeft = false
      })
      return Effect.ensuring(
        back,
        Effect.sync(() => {
          session.busy = false
        })
      )
    })
  )
