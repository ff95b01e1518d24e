/**
 * A model that plays the recorded turns: their text, how they stopped, what they took, where they broke off, and the token
 * positions of everything that was committed. It has no tokens of its own; asked to measure, it answers what the recorded
 * run did with the answer.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Codec } from "../../engine/codecs/Codec.ts"
import type { EngineError } from "../../engine/EngineError.ts"
import type { GenerationEvent } from "../../engine/Generation.ts"
import { Model, type ModelIdentity, type ModelSession } from "../../engine/Model.ts"
import { flatten, type Segment } from "../../engine/Prompt.ts"
import { sizeThatFits } from "./ReplayExcerpt.ts"
import type { Tape } from "./ReplayTape.ts"
import type { TraceRecord } from "./TraceReader.ts"

const speaking = new Set(["model_call_started", "generation_token"])

const number = (value: unknown): number => (typeof value === "number" ? value : 0)

const piece = ({ data }: TraceRecord): GenerationEvent => ({
  _tag: "Piece",
  text: String(data["text"]),
  tokens: data["ids"] as ReadonlyArray<number>
})

const endOf = ({ data }: TraceRecord): GenerationEvent => ({
  _tag: "End",
  reason: data["stop_reason"] as never,
  usage: {
    prefillTokens: number(data["prefill_tokens"]),
    outputTokens: number(data["output_tokens"]),
    prefillMillis: number(data["prefill_ms"]),
    decodeMillis: number(data["decode_ms"])
  },
  ...(data["think_closed"] === undefined ? {} : { thinkClosed: number(data["think_closed"]) })
})

/** One recorded sequence. */
class Playback {
  readonly #tape: Tape
  readonly #codec: Codec
  readonly #identity: ModelIdentity
  readonly #outputTokens: number
  #length = 0
  /** Messages of the past that are evaluated again so far. */
  #restored = 0
  /** Text of the turn so far: a continued turn's record holds all of it. */
  #spoken = ""

  constructor(tape: Tape, codec: Codec, identity: ModelIdentity, outputTokens: number) {
    this.#tape = tape
    this.#codec = codec
    this.#identity = identity
    this.#outputTokens = outputTokens
  }

  #take(kind: "message" | "turn") {
    return Effect.suspend(() => {
      const restored = this.#tape.history(this.#restored)
      if (restored !== undefined) this.#restored++
      const span = restored ?? this.#tape.span(kind)
      // A turn is kept where nothing can interrupt.
      if (span === undefined) {
        return kind === "message" ? this.#tape.interruption("session_state_changed") : this.#tape.failure("a kept turn")
      }
      this.#length = span.end
      return Effect.succeed(span)
    })
  }

  #turn(): Stream.Stream<GenerationEvent, EngineError> {
    return Stream.suspend(() => {
      const said = this.#tape.tokens().map(piece)
      const next = this.#tape.next()?.record
      // A turn that was only sampled is recorded when it has ended.
      if (next?.event_type === "candidate_sampled") {
        const sample: GenerationEvent = { _tag: "Piece", text: String(next.data["text"]), tokens: [] }
        return Stream.fromArray(sample.text === "" ? [endOf(next)] : [sample, endOf(next)])
      }
      if (next?.event_type !== "model_call_finished") {
        return Stream.concat(Stream.fromArray(said), Stream.fromEffect(this.#tape.interruption("model_call_finished")))
      }
      const text = String(next.data["text"])
      const before = number(next.data["attempt"]) === 0 ? "" : this.#spoken
      this.#spoken = text
      const rest: GenerationEvent = { _tag: "Piece", text: text.slice(before.length), tokens: [] }
      const pieces = said.length > 0 ? said : rest.text === "" ? [] : [rest]
      return Stream.fromArray([...pieces, endOf(next)])
    })
  }

  /** Tokens of segments, such that the loop decides what it decided. */
  #measure(segments: ReadonlyArray<Segment>): number {
    const { next, previous } = this.#tape
    const coming = next()
    // A cut answer: is there room to let it go on?
    if (previous !== undefined && speaking.has(previous.event_type)) {
      const after = coming === undefined ? undefined : next(coming.at + 1)
      return after?.record.event_type === "model_call_started" ? 0 : this.#identity.contextTokens
    }
    if (segments.length === 1 && segments[0]!.kind === "text") {
      return sizeThatFits(flatten(segments), this.#tape, this.#identity.contextTokens / 4)
    }
    if (segments === this.#codec.closing) return 0
    // A turn that did not fit, now or later: the record tells how many tokens it would have needed.
    return (this.#tape.turnSize() ?? this.#outputTokens) - this.#outputTokens
  }

  readonly session = (): ModelSession => ({
    commit: () => this.#take("message"),
    turn: () => this.#turn(),
    keep: () => this.#take("turn"),
    rollback: Effect.void,
    recoveries: this.#tape.recoveries,
    rewind: (length) =>
      Effect.sync(() => {
        this.#length = length
      }),
    length: Effect.sync(() => this.#length),
    measure: (segments) => Effect.sync(() => this.#measure(segments))
  })
}

/** The recorded model. One session: a record is of one. */
export const playback = (tape: Tape, codec: Codec, identity: ModelIdentity, outputTokens: number): Model["Service"] =>
  Model.of({
    identity,
    tokenize: () => Effect.succeed([]),
    session: Effect.sync(() => new Playback(tape, codec, identity, outputTokens).session())
  })
