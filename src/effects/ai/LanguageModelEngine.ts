/**
 * The other way round: any `LanguageModel` of `effect/ai` as the engine of a run, behind every gate. It is told the
 * conversation as messages and its tools in words; its calls are text that the run's own codec reads. No grammar holds it,
 * its tokens are estimates, and what it reasons about is not shown. For codecs whose turns are marked as ChatML.
 */
import type * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { badRequest, EngineError } from "../../engine/EngineError.ts"
import { sizeOf, tokensIn, unit, unknownIds } from "../../engine/Estimate.ts"
import type { EndReason, GenerationEvent, TurnRequest } from "../../engine/Generation.ts"
import { Model, type ModelSession } from "../../engine/Model.ts"
import { type Segment, type Span, text } from "../../engine/Prompt.ts"
import { upToStop } from "../../engine/StopScan.ts"

/** Of a request without tools. */
type Part = Response.StreamPart<Record<never, never>>
type Parts = Stream.Stream<Part, AiError.AiError>

export interface LanguageModelEngineOptions {
  /** Who it is, for the record. */
  readonly name: string
  /** Tokens it can hold. Without, the model's own refusal ends a conversation that is too long. */
  readonly contextTokens?: number
  /** What of a turn's request the provider can be told: its most tokens, its sampling. `effect/ai` has no words for them. */
  readonly configure?: (parts: Parts, request: TurnRequest) => Parts
}

const roles = ["system", "user", "assistant"] as const
type Role = (typeof roles)[number]
const mark = /<\|im_(start|end)\|>/g

/**
 * Segments as messages. Only control segments begin and end one, so content cannot; what follows a beginning up to the end
 * of its line is the role, which the codec writes. The last message may still be open. `undefined`: these are no messages.
 */
export const messagesOf = (
  segments: ReadonlyArray<Segment>
): ReadonlyArray<{ readonly role: Role; readonly content: string }> | undefined => {
  const out: Array<{ role: Role; content: string }> = []
  let heading: string | undefined
  let open = false
  const say = (content: string): boolean => {
    if (heading === undefined) {
      if (open) out.at(-1)!.content += content
      return open || content.trim() === ""
    }
    const line = (heading + content).split("\n", 1)[0]!
    const rest = (heading + content).slice(line.length)
    heading = rest === "" ? line : undefined
    if (rest === "") return true
    const role = roles.find((one) => one === line)
    if (role === undefined) return false
    open = true
    out.push({ role, content: rest.slice(1) })
    return true
  }
  for (const { kind, text: content } of segments) {
    let at = 0
    for (const found of kind === "control" ? content.matchAll(mark) : []) {
      if (!say(content.slice(at, found.index))) return undefined
      at = found.index + found[0].length
      if (heading !== undefined) return undefined
      open = false
      heading = found[1] === "start" ? "" : undefined
    }
    if (!say(content.slice(at))) return undefined
  }
  return heading === undefined ? out : undefined
}

/** Turns deltas into pieces until the turn ends: by itself, by a stop text, or by its tokens. */
class Listening {
  readonly #request: TurnRequest
  #said = ""
  #end: EndReason | undefined
  /** The piece that ended the turn; the provider's own end may come later or never. */
  #last: GenerationEvent | undefined
  #usage: { readonly input: number | undefined; readonly output: number | undefined } | undefined

  constructor(request: TurnRequest) {
    this.#request = request
  }

  get said(): string {
    return this.#said
  }

  readonly take = (part: Part): ReadonlyArray<GenerationEvent> => {
    if (part.type === "finish") {
      this.#usage = { input: part.usage.inputTokens.total, output: part.usage.outputTokens.total }
      if (part.reason === "length") this.#end ??= "length"
    }
    if (part.type !== "text-delta" || part.delta === "" || this.#end !== undefined) return []
    const before = this.#said.length
    const stopped = upToStop(this.#said, part.delta, this.#request.stops)
    if (stopped !== undefined) this.#end = "stop"
    let all = stopped ?? this.#said + part.delta
    const most = this.#request.maxTokens * unit
    if (all.length >= most) {
      // Not between the halves of a character.
      all = all.slice(0, /[\ud800-\udbff]$/.test(all.slice(0, most)) ? most - 1 : most)
      this.#end = "length"
    }
    this.#said = all
    const piece = all.slice(before)
    const event: GenerationEvent = { _tag: "Piece", text: piece, tokens: unknownIds(tokensIn(piece)) }
    if (this.#end !== undefined) this.#last = event
    return [event]
  }

  readonly isLast = (event: GenerationEvent): boolean => event === this.#last

  readonly end = (prompt: number): GenerationEvent => ({
    _tag: "End",
    reason: this.#end ?? "eog",
    usage: {
      prefillTokens: this.#usage?.input ?? prompt,
      outputTokens: Math.max(1, this.#usage?.output ?? tokensIn(this.#said)),
      prefillMillis: 0,
      decodeMillis: 0
    }
  })
}

const failure = (error: AiError.AiError): EngineError => {
  const wrong = error.reason._tag === "InvalidRequestError" || error.reason._tag === "InvalidUserInputError"
  return new EngineError({ reason: wrong ? "bad_request" : "failed", message: error.message, cause: error })
}

class Talk {
  readonly #ask: (prompt: Prompt.Prompt, request: TurnRequest) => Parts
  readonly #capacity: number
  #log: ReadonlyArray<Segment> = []
  #length = 0
  /** Segments in the log at each boundary, by its length. */
  readonly #boundaries = new Map<number, number>([[0, 0]])
  #turn: ReadonlyArray<Segment> | undefined

  constructor(ask: (prompt: Prompt.Prompt, request: TurnRequest) => Parts, capacity: number) {
    this.#ask = ask
    this.#capacity = capacity
  }

  #grow(segments: ReadonlyArray<Segment>): Effect.Effect<Span, EngineError> {
    const start = this.#length
    const end = start + sizeOf(segments)
    if (end > this.#capacity) return Effect.fail(this.#overflow(end))
    this.#log = [...this.#log, ...segments]
    this.#length = end
    this.#boundaries.set(end, this.#log.length)
    this.#turn = undefined
    return Effect.succeed({ start, end })
  }

  #overflow(tokens: number): EngineError {
    return new EngineError({
      reason: "context_overflow",
      message: `About ${tokens} tokens do not fit ${this.#capacity}.`
    })
  }

  readonly commit: ModelSession["commit"] = (segments) =>
    Effect.suspend(() =>
      this.#turn === undefined
        ? this.#grow(segments)
        : Effect.fail(badRequest("A turn is open: keep it or roll it back."))
    )

  readonly keep: ModelSession["keep"] = (closing) =>
    Effect.suspend(() =>
      this.#turn === undefined
        ? Effect.fail(badRequest("There is no finished turn to keep."))
        : this.#grow([...this.#turn, ...closing])
    )

  readonly turn: ModelSession["turn"] = (opening, request) =>
    Stream.suspend(() => {
      if (this.#turn !== undefined) return Stream.fail(badRequest("A turn is open: keep it or roll it back."))
      const size = this.#length + sizeOf(opening)
      if (size + 1 > this.#capacity) return Stream.fail(this.#overflow(size + 1))
      const messages = messagesOf([...this.#log, ...opening])
      if (messages === undefined) {
        return Stream.fail(badRequest("A language model is told messages: choose a codec with ChatML turns (qwen2.5)."))
      }
      // What the opening began is for the model to say.
      const told = messages.filter(
        ({ content, role }, at) => at < messages.length - 1 || role !== "assistant" || content.trim() !== ""
      )
      const heard = new Listening(request)
      const end = Stream.suspend(() => {
        this.#turn = [...opening, text(heard.said)]
        return Stream.succeed(heard.end(size))
      })
      return this.#ask(Prompt.make(told as Prompt.RawInput), request).pipe(
        Stream.mapError(failure),
        Stream.mapAccumArray(
          () => heard,
          (state, parts) => [state, parts.flatMap(state.take)] as const
        ),
        Stream.takeUntil(heard.isLast),
        (pieces) => Stream.concat(pieces, end),
        Stream.onExit((exit) =>
          Effect.sync(() => {
            if (Exit.isFailure(exit)) this.#turn = undefined
          })
        )
      )
    })

  readonly rewind: ModelSession["rewind"] = (length) =>
    Effect.suspend(() => {
      this.#turn = undefined
      const segments = this.#boundaries.get(length)
      if (segments === undefined) return Effect.fail(badRequest(`The log has no boundary at token ${length}.`))
      for (const later of this.#boundaries.keys()) if (later > length) this.#boundaries.delete(later)
      this.#log = this.#log.slice(0, segments)
      this.#length = length
      return Effect.void
    })

  readonly session: ModelSession = {
    commit: this.commit,
    turn: this.turn,
    endsTurns: true,
    keep: this.keep,
    rollback: Effect.sync(() => {
      this.#turn = undefined
    }),
    rewind: this.rewind,
    length: Effect.sync(() => this.#length),
    measure: (segments) => Effect.succeed(sizeOf(segments))
  }
}

/** Nobody has to keep it in mind, so there is room for everything. */
const unbounded = 2 ** 50

/** The engine of a run over whatever `LanguageModel` there is. */
export const layer = (options: LanguageModelEngineOptions): Layer.Layer<Model, never, LanguageModel.LanguageModel> =>
  Layer.effect(
    Model,
    Effect.map(LanguageModel.LanguageModel, (model) => {
      const contextTokens = options.contextTokens ?? unbounded
      const ask = (prompt: Prompt.Prompt, request: TurnRequest): Parts => {
        const parts: Parts = model.streamText({ prompt })
        return options.configure === undefined ? parts : options.configure(parts, request)
      }
      return Model.of({
        identity: { engine: "language-model", name: options.name, contextTokens },
        tokenize: (segments) => Effect.succeed(unknownIds(sizeOf(segments))),
        session: Effect.sync(() => new Talk(ask, contextTokens).session)
      })
    })
  )
