/**
 * Requests to an OpenAI-compatible server: bounded in time and size, sent again with growing pauses where that can help, the
 * key in a header and nowhere else. Leaving a stream closes its connection. Knows nothing of prompts and models.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import type { HttpClientError } from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Address } from "./OpenAiAddress.ts"
import { complaintOf, Fault, parsed, refused, reported, retryAfter, said } from "./OpenAiFault.ts"
import { type SseEvent, SseFault, SseReader } from "./OpenAiSse.ts"

/** How long and how often a server is waited for. Milliseconds. */
export interface Patience {
  /** For the answer to a question that costs the server nothing. */
  readonly questionMillis: number
  /** From a turn's request to the first word of it, which the evaluation of the prompt comes before. */
  readonly firstMillis: number
  /** Between two signs of life of a turn. */
  readonly idleMillis: number
  /** From a turn's end to the end of its stream, in which it is still told what the turn has cost. */
  readonly restMillis: number
  /** Tries, the first included. */
  readonly attempts: number
  /** The first pause; each further one is twice as long, up to `pauseMillis`. */
  readonly delayMillis: number
  /** The longest pause, also where the server asks for one; asked for more, the request fails at once. */
  readonly pauseMillis: number
}

export const standardPatience: Patience = {
  questionMillis: 30_000,
  firstMillis: 600_000,
  idleMillis: 120_000,
  restMillis: 5_000,
  attempts: 4,
  delayMillis: 500,
  pauseMillis: 30_000
}

/** Bytes of one answer; a template and a list of models are well below. */
const mostAnswerBytes = 16 * 1024 * 1024
const mostComplaintBytes = 64 * 1024

/** One parsed event of a stream of them. */
export type Event = Readonly<Record<string, unknown>>

/** The object that a part of what a server says is, if it is one. */
export const recordOf = (value: unknown): Event | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Event) : undefined

/** The text that a part is; of anything else, none. */
export const wordOf = (value: unknown): string => (typeof value === "string" ? value : "")

export interface Exchange {
  readonly address: Address
  /** The name of the server for sentences. */
  readonly where: string
  /** One question, asked again where that can help. Without a body it is a GET. */
  readonly ask: (url: string, body?: unknown) => Effect.Effect<Event, Fault>
  /** One attempt at a turn. Ends after `[DONE]`, with the connection, or a while after the turn is `over`. */
  readonly attempt: (url: string, body: unknown, over: () => boolean) => Stream.Stream<Event, Fault>
  /** Attempts until one has delivered something, which is never repeated. */
  readonly persistent: <A>(make: () => Stream.Stream<A, Fault>, delivered: () => boolean) => Stream.Stream<A, Fault>
}

const plainly = (where: string, error: HttpClientError, key: string | undefined): Fault => {
  const cause = error.reason._tag === "TransportError" ? (error.reason.cause as { readonly code?: unknown }) : undefined
  const code = typeof cause?.code === "string" ? ` (${said(cause.code, key)})` : ""
  // The error itself holds the request, and with it the key.
  return new Fault("lost", `There is no connection to ${where}${code}. Is the server running there?`, { again: true })
}

/** The whole of a body, up to a limit. */
const bodyOf = (response: HttpClientResponse, most: number, where: string): Effect.Effect<string, Fault> =>
  Effect.suspend(() => {
    const parts: Array<Uint8Array> = []
    let size = 0
    return Stream.runForEach(response.stream, (part) => {
      size += part.length
      parts.push(part)
      return size > most
        ? Effect.fail(new Fault("failed", `${where} answers with more than ${most} bytes.`))
        : Effect.void
    }).pipe(
      Effect.mapError((error) => (error instanceof Fault ? error : plainly(where, error, undefined))),
      Effect.map(() => Buffer.concat(parts).toString("utf8"))
    )
  })

const objectOf = (text: string, where: string, what: string, key: string | undefined): Effect.Effect<Event, Fault> =>
  Effect.suspend(() => {
    const value = recordOf(parsed(text))
    return value !== undefined
      ? Effect.succeed(value)
      : Effect.fail(new Fault("failed", `${where} sends ${what} that is no JSON object: ${said(text, key)}`))
  })

const isStream = ({ headers }: HttpClientResponse): boolean =>
  (headers["content-type"] ?? "").split(";", 1)[0]!.trim().toLowerCase() === "text/event-stream"

/** No redirect is followed, whoever the transport is: it could lead a conversation anywhere. Only `fetch` would follow one. */
const unredirected = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.serviceOption(FetchHttpClient.RequestInit), (given) =>
    Effect.provideService(self, FetchHttpClient.RequestInit, {
      ...Option.getOrUndefined(given),
      redirect: "manual"
    })
  ) as Effect.Effect<A, E, R>

/** An exchange with one server. */
class HttpExchange implements Exchange {
  readonly address: Address
  readonly where: string
  readonly #client: HttpClient.HttpClient.With<HttpClientError, Scope.Scope>
  readonly #key: string | undefined
  readonly #patience: Patience

  constructor(client: HttpClient.HttpClient, address: Address, key: string | undefined, patience: Patience) {
    this.address = address
    this.where = address.shown
    this.#client = HttpClient.withScope(client)
    this.#key = key
    this.#patience = patience
  }

  #within(millis: number, what: string) {
    return Effect.timeoutOrElse({
      duration: millis,
      orElse: () => Effect.fail(new Fault("lost", `${this.where} ${what}.`, { again: true }))
    })
  }

  #request(url: string, body: unknown, accept: string): HttpClientRequest.HttpClientRequest {
    const bare = body === undefined ? HttpClientRequest.get(url) : HttpClientRequest.post(url)
    const asked = HttpClientRequest.setHeaders(bare, { accept, "accept-encoding": "identity" })
    const key = this.#key
    const signed = key === undefined ? asked : HttpClientRequest.bearerToken(asked, key)
    return body === undefined ? signed : HttpClientRequest.bodyText(signed, JSON.stringify(body), "application/json")
  }

  /** Sends, and fails with what is no success. The connection lives as long as the scope. */
  #send(url: string, body: unknown, accept: string, millis: number) {
    const { where } = this
    const key = this.#key
    return unredirected(this.#client.execute(this.#request(url, body, accept))).pipe(
      Effect.mapError((error) => plainly(where, error, key)),
      // A span would hold the address of every request; the trace of a run says what is to be known.
      Effect.provideService(HttpClient.TracerDisabledWhen, () => true),
      Effect.flatMap((response) => (isSuccess(response) ? Effect.succeed(response) : refusal(response, where, key))),
      this.#within(millis, `does not answer within ${millis / 1000} s`)
    )
  }

  /** The pause before try `next`, counting from 1; a failure where none helps. */
  readonly #pause = Effect.fnUntraced({ self: this }, function* (this: HttpExchange, fault: Fault, next: number) {
    const { attempts, delayMillis, pauseMillis } = this.#patience
    if (!fault.again || next >= attempts) return yield* Effect.fail(fault)
    if (fault.after !== undefined && fault.after > pauseMillis) return yield* Effect.fail(fault)
    const grown = Math.min(pauseMillis, delayMillis * 2 ** (next - 1))
    // Many clients that were refused together must not come back together.
    const spread = grown * (0.75 + 0.5 * (yield* Random.next))
    yield* Effect.sleep(Math.max(spread, fault.after ?? 0))
  })

  #once(url: string, body: unknown): Effect.Effect<Event, Fault> {
    const { questionMillis } = this.#patience
    return this.#send(url, body, "application/json", questionMillis).pipe(
      Effect.flatMap((response) => bodyOf(response, mostAnswerBytes, this.where)),
      Effect.flatMap((text) => objectOf(text, this.where, "something", this.#key)),
      this.#within(2 * questionMillis, "does not finish its answer"),
      Effect.scoped
    )
  }

  #tried(url: string, body: unknown, tried: number): Effect.Effect<Event, Fault> {
    return Effect.catch(this.#once(url, body), (fault) =>
      Effect.andThen(this.#pause(fault, tried), this.#tried(url, body, tried + 1))
    )
  }

  readonly ask: Exchange["ask"] = (url, body) => Effect.suspend(() => this.#tried(url, body, 1))

  readonly attempt: Exchange["attempt"] = (url, body, over) =>
    Stream.unwrap(
      Effect.map(this.#send(url, body, "text/event-stream", this.#patience.firstMillis), (response) =>
        isStream(response)
          ? hurried(events(response, this.where, this.#key, this.#patience), over, this.#patience.restMillis)
          : Stream.fromEffect(this.#noStream(response))
      )
    )

  /** A success that is no stream may be a failure all the same, which some servers say in the body only. */
  #noStream(response: HttpClientResponse): Effect.Effect<never, Fault> {
    const { where } = this
    const key = this.#key
    const kind = said(response.headers["content-type"] ?? "no type", key)
    const other = new Fault("failed", `${where} answers with ${kind} where a stream of events was asked for.`)
    return bodyOf(response, mostComplaintBytes, where).pipe(
      this.#within(this.#patience.questionMillis, "does not finish its answer"),
      Effect.map((body) => complaintOf(parsed(body))),
      Effect.matchEffect({
        onFailure: () => Effect.fail(other),
        onSuccess: (complaint) => Effect.fail(complaint === undefined ? other : reported(where, complaint, key))
      })
    )
  }

  readonly persistent: Exchange["persistent"] = (make, delivered) => {
    const from = (tried: number): ReturnType<typeof make> =>
      Stream.suspend(make).pipe(
        Stream.catch((fault) =>
          delivered() ? Stream.fail(fault) : Stream.unwrap(Effect.map(this.#pause(fault, tried), () => from(tried + 1)))
        )
      )
    return from(1)
  }
}

const isSuccess = ({ status }: HttpClientResponse): boolean => status >= 200 && status < 300

const refusal = Effect.fnUntraced(function* (
  response: HttpClientResponse,
  where: string,
  key: string | undefined
): Effect.fn.Return<never, Fault> {
  const after = retryAfter(response.headers["retry-after"], yield* Clock.currentTimeMillis)
  const body = yield* Effect.orElseSucceed(bodyOf(response, mostComplaintBytes, where), () => "")
  return yield* Effect.fail(refused(where, { status: response.status, body, after }, key))
})

export const make = (
  client: HttpClient.HttpClient,
  address: Address,
  secret: Redacted.Redacted<string> | undefined,
  patience: Patience
): Exchange => new HttpExchange(client, address, secret === undefined ? undefined : Redacted.value(secret), patience)

/** The events of a response, each one JSON object. */
const events = (
  response: HttpClientResponse,
  where: string,
  key: string | undefined,
  patience: Patience
): Stream.Stream<Event, Fault> => {
  const reader = new SseReader()
  const read = (take: () => ReadonlyArray<SseEvent>) =>
    Effect.try({
      try: take,
      catch: (cause) => {
        if (!(cause instanceof SseFault)) throw cause
        return new Fault("lost", `${where} sends no proper stream: ${cause.message}.`)
      }
    })
  return response.stream.pipe(
    Stream.mapError((error) => brokenOff(where, error)),
    watched(where, patience, () => reader.begun),
    Stream.mapEffect((bytes) => read(() => reader.push(bytes))),
    (heard) => Stream.concat(heard, Stream.fromEffect(Effect.suspend(() => read(() => reader.end())))),
    Stream.flattenIterable,
    Stream.takeUntil(({ data }) => data.trim() === "[DONE]", { excludeLast: true }),
    Stream.mapEffect(({ data, event }) =>
      event === "error" ? Effect.fail(failureOf(data, where, key)) : objectOf(data, where, "an event", key)
    ),
    Stream.mapEffect((value) => {
      const complaint = value["error"] ? complaintOf(value) : undefined
      return complaint === undefined ? Effect.succeed(value) : Effect.fail(reported(where, complaint, key))
    })
  )
}

/** Until something begins, all waiting together counts, signs of life or not; then each wait counts alone. */
const watched =
  (where: string, patience: Patience, begun: () => boolean) =>
  <A, R>(self: Stream.Stream<A, Fault, R>): Stream.Stream<A, Fault, R> =>
    Stream.transformPull(self, (pull) =>
      Effect.map(Clock.currentTimeMillis, (start) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const { firstMillis, idleMillis } = patience
          const late = begun()
            ? `has not been heard of for ${idleMillis / 1000} s`
            : `has not begun to answer for ${firstMillis / 1000} s`
          return Effect.timeoutOrElse(pull, {
            duration: begun() ? idleMillis : Math.max(1, firstMillis - (now - start)),
            orElse: () => Effect.fail(new Fault("lost", `${where} ${late}.`, { again: true, silent: true }))
          })
        })
      )
    )

/** Once the turn is over, what else there is has to come soon: not every server closes, and signs of life go on for ever. */
const hurried = (self: Stream.Stream<Event, Fault>, over: () => boolean, millis: number): Stream.Stream<Event, Fault> =>
  Stream.transformPull(self, (pull) => {
    let until: number | undefined
    return Effect.succeed(
      Effect.suspend(() => {
        if (!over()) return pull
        return Effect.flatMap(Clock.currentTimeMillis, (now) => {
          until ??= now + millis
          return Effect.timeoutOrElse(pull, { duration: Math.max(0, until - now), orElse: () => Cause.done() })
        })
      })
    )
  })

const brokenOff = (where: string, { reason }: HttpClientError): Fault => {
  const code = "cause" in reason ? (reason.cause as { readonly code?: unknown } | undefined)?.code : undefined
  const shown = typeof code === "string" ? ` (${said(code, undefined)})` : ""
  return new Fault("lost", `The connection to ${where} broke off${shown}.`, { again: true })
}

const failureOf = (data: string, where: string, key: string | undefined): Fault => {
  const body = parsed(data)
  const complaint = complaintOf(body) ?? complaintOf({ error: body }) ?? { message: data, words: "" }
  return reported(where, complaint, key)
}
