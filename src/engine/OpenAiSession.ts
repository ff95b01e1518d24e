/**
 * A `ModelSession` whose log is kept here: a server is sent the whole of it with each turn and reuses what it has evaluated.
 * So boundaries cost nothing, and leaving a turn leaves nothing behind.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { badRequest, EngineError } from "./EngineError.ts"
import type { GenerationEvent, TurnRequest } from "./Generation.ts"
import type { ModelSession, Recovery } from "./Model.ts"
import type { Dialect, Ended, Entry, Hearing } from "./OpenAiDialect.ts"
import { Fault, thrown } from "./OpenAiFault.ts"
import type { Exchange } from "./OpenAiHttp.ts"
import type { Segment, Span } from "./Prompt.ts"

const sizeOf = (entries: ReadonlyArray<Entry>): number => entries.reduce((sum, { size }) => sum + size, 0)

/** Characters a token may have on average before a server is taken to count wrongly. */
const mostCharsPerToken = 64

/** How often turns of a model broke off in the middle, in any session. */
export interface Breaks {
  count: number
}

type Piece = Extract<GenerationEvent, { readonly _tag: "Piece" }>

export class OpenAiSession {
  readonly #exchange: Exchange
  readonly #dialect: Dialect
  readonly #capacity: number
  readonly #owner = Semaphore.makeUnsafe(1)
  #log: ReadonlyArray<Entry> = []
  #length = 0
  /** Entries and tokens at each boundary, in order. */
  #boundaries: ReadonlyArray<{ readonly entries: number; readonly length: number }> = [{ entries: 0, length: 0 }]
  /** A finished turn that is not kept yet. */
  #turn: ReadonlyArray<Entry> | undefined

  readonly #breaks: Breaks
  readonly #recoveries: Array<Recovery> = []

  constructor(exchange: Exchange, dialect: Dialect, capacity: number, breaks: Breaks) {
    this.#exchange = exchange
    this.#dialect = dialect
    this.#breaks = breaks
    this.#capacity = capacity
  }

  #enter(segments: ReadonlyArray<Segment>): Effect.Effect<Entry, EngineError> {
    return this.#dialect.enter(segments, this.#log.length === 0)
  }

  #room(tokens: number): EngineError | undefined {
    if (this.#length + tokens <= this.#capacity) return undefined
    const message = `${tokens} tokens do not fit after ${this.#length} of ${this.#capacity} in the context of ${this.#exchange.where}.`
    return new EngineError({ reason: "context_overflow", message })
  }

  #append(entries: ReadonlyArray<Entry>): Effect.Effect<Span, EngineError> {
    const start = this.#length
    const tooLong = this.#room(sizeOf(entries))
    if (tooLong !== undefined) return Effect.fail(tooLong)
    this.#turn = undefined
    this.#log = [...this.#log, ...entries]
    this.#length = start + sizeOf(entries)
    this.#boundaries = [...this.#boundaries, { entries: this.#log.length, length: this.#length }]
    return Effect.succeed({ start, end: this.#length })
  }

  readonly commit = (segments: ReadonlyArray<Segment>): Effect.Effect<Span, EngineError> =>
    this.#owner.withPermit(
      Effect.suspend(() =>
        this.#turn === undefined
          ? Effect.flatMap(this.#enter(segments), (entry) => this.#append([entry]))
          : Effect.fail(badRequest("A turn is open: keep it or roll it back before committing."))
      )
    )

  readonly keep = (closing: ReadonlyArray<Segment>): Effect.Effect<Span, EngineError> =>
    this.#owner.withPermit(
      Effect.suspend(() => {
        const turn = this.#turn
        if (turn === undefined) return Effect.fail(badRequest("There is no finished turn to keep."))
        return Effect.flatMap(this.#dialect.enter(closing, false), (entry) =>
          this.#append(entry.segments.length === 0 ? turn : [...turn, entry])
        ).pipe(Effect.onError(() => this.#drop))
      })
    )

  /** A turn that broke off in the middle leaves the session where it was, so that who runs it may ask once more. */
  #failure({ again, error, silent }: Fault, delivered: boolean): EngineError {
    if (!delivered || !again || error.reason !== "lost") return error
    this.#breaks.count++
    this.#recoveries.push({ cause: silent ? "stalled" : "crashed", restarts: this.#breaks.count, tokens: 0 })
    return new EngineError({ reason: "restarted", message: `${error.message} The turn can be asked for once more.` })
  }

  readonly #drop: Effect.Effect<void> = Effect.sync(() => {
    this.#turn = undefined
  })

  readonly rewind = (length: number): Effect.Effect<void, EngineError> =>
    this.#owner.withPermit(
      Effect.suspend(() => {
        this.#turn = undefined
        const at = this.#boundaries.findLastIndex((boundary) => boundary.length === length)
        if (at < 0) return Effect.fail(badRequest(`There is no boundary at ${length} tokens.`))
        this.#boundaries = this.#boundaries.slice(0, at + 1)
        this.#log = this.#log.slice(0, this.#boundaries[at]!.entries)
        this.#length = length
        return Effect.void
      })
    )

  readonly turn = (
    opening: ReadonlyArray<Segment>,
    request: TurnRequest
  ): Stream.Stream<GenerationEvent, EngineError> => Stream.unwrap(this.#begin(opening, request))

  readonly #begin = Effect.fnUntraced(
    { self: this },
    function* (this: OpenAiSession, opening: ReadonlyArray<Segment>, request: TurnRequest) {
      let held = true
      const release = Effect.suspend(() => {
        if (!held) return Effect.void
        held = false
        return this.#owner.release(1)
      })
      yield* Effect.acquireRelease(this.#owner.take(1), () => release, { interruptible: true })
      if (!(request.maxTokens >= 1)) return yield* badRequest("A turn must be allowed at least one token.")
      const continued = this.#turn ?? []
      let over = false
      // What is not read to its end is gone, and with it what it went on from.
      yield* Effect.addFinalizer((exit) => (over && Exit.isSuccess(exit) ? Effect.void : this.#drop))
      const opened = yield* this.#enter(opening)
      const before = opened.segments.length === 0 ? continued : [...continued, opened]
      if (this.#log.length + before.length === 0)
        return yield* badRequest("A turn needs a prompt: commit something first.")
      const tooLong = this.#room(sizeOf(before) + request.maxTokens)
      if (tooLong !== undefined) return yield* tooLong
      const ended = Effect.suspend(() => {
        over = true
        return release
      })
      return this.#generate(before, request, ended)
    }
  )

  #generate(
    before: ReadonlyArray<Entry>,
    request: TurnRequest,
    ended: Effect.Effect<void>
  ): Stream.Stream<GenerationEvent, EngineError> {
    const ask = this.#dialect.ask([...this.#log, ...before], request)
    const heard = new Attempts(this.#exchange.where, request)
    const pieces = this.#exchange.persistent(
      () => {
        const hearing = ask.hear()
        const over = () => hearing.end() !== undefined
        return heard.events(this.#exchange.attempt(ask.url, ask.body, over), hearing)
      },
      () => heard.delivered
    )
    const end = Effect.suspend(() => this.#dialect.spoken(heard.text, heard.ended)).pipe(
      Effect.flatMap((spoken) => {
        this.#turn = [...before, spoken]
        return Effect.andThen(ended, heard.end(sizeOf(before) + this.#length, spoken.size))
      })
    )
    return Stream.concat(
      Stream.unwrap(Effect.as(heard.begin, pieces)).pipe(
        Stream.mapError((fault) => this.#failure(fault, heard.delivered))
      ),
      Stream.fromEffect(end)
    )
  }

  readonly session = (): ModelSession => ({
    commit: this.commit,
    turn: this.turn,
    ...(this.#dialect.endsTurns === true ? { endsTurns: true } : {}),
    keep: this.keep,
    rollback: this.#owner.withPermit(this.#drop),
    rewind: this.rewind,
    recoveries: () => this.#recoveries,
    length: Effect.sync(() => this.#length),
    measure: (segments) => Effect.map(this.#enter(segments), ({ size }) => size)
  })
}

/** One turn over however many attempts it takes: what was said, when, and how it ended. */
class Attempts {
  readonly #where: string
  /** Events may say nothing, and are as many as characters at most. */
  readonly #most: { readonly chars: number; readonly events: number }
  #started = 0
  #first: number | undefined
  #text: Array<string> = []
  #chars = 0
  #events = 0
  #ended: Ended = { reason: "eog" }

  constructor(where: string, { maxTokens }: TurnRequest) {
    this.#where = where
    const chars = maxTokens * mostCharsPerToken
    this.#most = { chars: chars + 65_536, events: chars + 4_096 }
  }

  /** Something of the turn is out of our hands. */
  get delivered(): boolean {
    return this.#text.length > 0
  }

  get text(): string {
    return this.#text.join("")
  }

  get ended(): Ended {
    return this.#ended
  }

  readonly begin = Effect.map(Clock.currentTimeMillis, (now) => {
    this.#started = now
  })

  /** The events of one attempt. */
  events(events: Stream.Stream<Readonly<Record<string, unknown>>, Fault>, hearing: Hearing) {
    const taken = events.pipe(
      Stream.mapEffect((event) => Effect.try({ try: () => hearing.take(event), catch: thrown })),
      Stream.tap((heard) => (heard[0]?._tag === "Prefill" ? Effect.void : this.#heard)),
      Stream.takeUntil(() => hearing.over()),
      // Once the end was said, what comes of the connection does not matter.
      Stream.catch((fault) => (hearing.end() === undefined ? Stream.fail(fault) : Stream.empty))
    )
    const rest = Effect.suspend(() => {
      const end = hearing.end()
      if (end !== undefined) {
        this.#ended = end.ended
        return Effect.succeed(end.rest)
      }
      return Effect.fail(
        new Fault("lost", `${this.#where} closed the connection before the turn was over.`, { again: true })
      )
    })
    return Stream.concat(taken, Stream.fromEffect(rest)).pipe(
      Stream.flattenIterable,
      Stream.tap((event) => (event._tag === "Piece" ? this.#take(event) : Effect.void))
    )
  }

  /** An event of the turn; the first is its first word, of whatever kind: calls are told at the end, but generated before. */
  readonly #heard = Effect.flatMap(Clock.currentTimeMillis, (now) => {
    this.#first ??= now
    this.#events += 1
    return this.#events > this.#most.events ? Effect.fail(this.#endless()) : Effect.void
  })

  readonly #take = (piece: Piece): Effect.Effect<void, Fault> =>
    Effect.suspend(() => {
      this.#text.push(piece.text)
      this.#chars += piece.text.length
      return this.#chars > this.#most.chars ? Effect.fail(this.#endless()) : Effect.void
    })

  #endless(): Fault {
    return new Fault("failed", `${this.#where} does not stop where it was told to.`)
  }

  /** @param prompt tokens of the whole prompt @param spoken tokens of the turn, counted or estimated */
  readonly end = (prompt: number, spoken: number): Effect.Effect<GenerationEvent> =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      const { decodeMillis, outputTokens, prefillMillis, prefillTokens, reason } = this.#ended
      const first = this.#first ?? now
      return {
        _tag: "End",
        reason,
        usage: {
          prefillTokens: prefillTokens ?? prompt,
          outputTokens: outputTokens ?? spoken,
          prefillMillis: prefillMillis ?? first - this.#started,
          decodeMillis: decodeMillis ?? now - first
        }
      }
    })
}
