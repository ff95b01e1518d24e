/**
 * An answer as server-sent events while it is made. Text is sent when it can no longer turn out to be anything else: where
 * calls are listened for, when its turn has ended as an answer. What was sent is never taken back; reasoning is not sent.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../AgentEvent.ts"
import type { Answer, Answered } from "./Answering.ts"
import { type About, Chunks, end, event, keepAlive } from "./ChatBodies.ts"
import { bodyOf, type ChatError, failed } from "./ChatError.ts"
import { type Reply, replyOf, resultOf } from "./ChatReply.ts"
import type { ChatRequest } from "./ChatRequest.ts"
import { StopTexts } from "./StopTexts.ts"

/** What a run says about its text. Never more than the run may write, so nothing is dropped. */
type Said =
  | { readonly _tag: "Text"; readonly text: string }
  /** `again`: the turn was rolled back, and may be generated once more. */
  | { readonly _tag: "Retracted"; readonly again: boolean }
  | { readonly _tag: "Ended"; readonly result: Answered | ChatError }

export interface StreamOptions {
  /** Silence after which a comment is sent. */
  readonly keepAliveMillis: number
  /** Told once, when an answer was sent. */
  readonly done: Effect.Effect<void>
  /** Told once, when the first of the text is sent. */
  readonly first: Effect.Effect<void>
}

/** Takes what a run says, from its first event on. */
export interface Inbox {
  readonly queue: Queue.Queue<Said>
  readonly emit: (event: AgentEvent) => void
}

export const inbox: Effect.Effect<Inbox> = Effect.map(Queue.unbounded<Said>(), (queue) => ({
  queue,
  emit: (event) => {
    if (event._tag === "Text") Queue.offerUnsafe(queue, { _tag: "Text", text: event.text })
    else if (event._tag === "Retracted")
      Queue.offerUnsafe(queue, { _tag: "Retracted", again: event.reason === "rolled_back" })
  }
}))

type Out = (text: string) => Effect.Effect<void>

class Writer {
  readonly #chunks: Chunks
  readonly #stops: ReadonlyArray<string>
  #texts: StopTexts
  /** What was sent of a turn that was rolled back, as far as it has not come again. */
  #again = ""
  readonly #out: Out
  readonly #first: Effect.Effect<void>
  /** Text that waits until its turn has ended. */
  #held: Array<string> = []
  #began = false
  readonly #live: boolean

  constructor(about: About, request: ChatRequest, live: boolean, out: Out, first: Effect.Effect<void>) {
    this.#chunks = new Chunks(about, request.includeUsage)
    this.#stops = request.stop
    this.#texts = new StopTexts(request.stop)
    this.#live = live
    this.#out = out
    this.#first = first
  }

  readonly begin = (): Effect.Effect<void> => this.#out(event(this.#chunks.begun()))

  #send(text: string): Effect.Effect<void> {
    if (text === "") return Effect.void
    const sent = this.#out(event(this.#chunks.text(text)))
    if (this.#began) return sent
    this.#began = true
    return Effect.andThen(this.#first, sent)
  }

  /** False: it is not what was sent of the turn before it was rolled back. */
  readonly text = (text: string): Effect.Effect<boolean> => {
    if (this.#live) return this.#fresh(this.#texts.push(text))
    this.#held.push(text)
    return Effect.succeed(true)
  }

  /** Sends what of the text was not sent before. */
  #fresh(text: string): Effect.Effect<boolean> {
    const same = Math.min(text.length, this.#again.length)
    if (text.slice(0, same) !== this.#again.slice(0, same)) return Effect.succeed(false)
    this.#again = this.#again.slice(same)
    return Effect.as(this.#send(text.slice(same)), true)
  }

  /** What was held is dropped. False: something was sent that is no answer and does not come again. */
  readonly retract = (again: boolean): boolean => {
    this.#held = []
    const { shown } = this.#texts
    this.#texts = new StopTexts(this.#stops)
    this.#again = shown + this.#again
    return shown === "" || again
  }

  /** The rest of the text, as it was written where that is what it came to. */
  #rest(content: string): ReadonlyArray<string> {
    if (this.#live) return [this.#texts.end()]
    const written = this.#held.join("") === content ? this.#held : [content]
    return [...written.map(this.#texts.push), this.#texts.end()]
  }

  /** False: something was sent that is not part of it. */
  readonly reply = (reply: Reply, includeUsage: boolean): Effect.Effect<boolean> =>
    Effect.gen({ self: this }, function* () {
      for (const text of this.#rest(reply.content ?? "")) if (!(yield* this.#fresh(text))) return false
      // Of what was sent of a turn before, spaces at the end may be missing in an answer.
      if (this.#again.trim() !== "") return false
      for (const chunk of this.#chunks.calls(reply.calls)) yield* this.#out(event(chunk))
      yield* this.#out(event(this.#chunks.finished(reply)))
      if (includeUsage) yield* this.#out(event(this.#chunks.used(reply.usage)))
      yield* this.#out(end)
      return true
    })
}

const takenBack = failed(
  500,
  "answer_retracted",
  "What was sent of the answer turned out not to be one; the run that made it has ended"
)

/** Says what there is to say until the run has ended, and how it ended. */
const speak = Effect.fnUntraced(function* (
  { queue }: Inbox,
  answer: Answer,
  request: ChatRequest,
  writer: Writer,
  out: Out,
  { done, keepAliveMillis }: StreamOptions
): Effect.fn.Return<void> {
  const fail = (error: ChatError) => out(event(bodyOf(error)))
  yield* writer.begin()
  for (;;) {
    const said = yield* Effect.timeoutOption(Queue.take(queue), keepAliveMillis)
    if (Option.isNone(said)) {
      yield* out(keepAlive)
      continue
    }
    const { value } = said
    if (value._tag === "Ended") {
      const reply = "_tag" in value.result ? value.result : replyOf(value.result, request)
      if (reply._tag === "ChatError") return yield* fail(reply)
      return yield* (yield* writer.reply(reply, request.includeUsage)) ? done : fail(takenBack)
    }
    const stands = value._tag === "Text" ? yield* writer.text(value.text) : writer.retract(value.again)
    if (!stands) {
      yield* answer.cancel
      return yield* fail(takenBack)
    }
  }
})

const encoder = new TextEncoder()

/** The body of the response. Its consumer has to be interrupted for the run to be cancelled: the run has another owner. */
export const body = (
  inbox: Inbox,
  answer: Answer,
  request: ChatRequest,
  about: About,
  options: StreamOptions
): Stream.Stream<Uint8Array> =>
  Stream.callback<Uint8Array>(
    (queue) =>
      Effect.gen(function* () {
        const out: Out = (text) => Effect.asVoid(Queue.offer(queue, encoder.encode(text)))
        const writer = new Writer(about, request, !answer.hearsCalls, out, options.first)
        // Behind everything the run says of its text.
        const ended = Effect.flatMap(resultOf(answer), (result) => Queue.offer(inbox.queue, { _tag: "Ended", result }))
        yield* Effect.forkScoped(ended)
        yield* speak(inbox, answer, request, writer, out, options)
        yield* Queue.end(queue)
      }),
    { bufferSize: 16, strategy: "suspend" }
  )
