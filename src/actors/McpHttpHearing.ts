/**
 * Hears what an MCP server says over HTTP besides its answers: on the stream it may keep open for that (GET), and on the streams
 * that carry answers. Effect's client opens no such stream and drops notifications. Nothing here is needed for a call.
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Sse from "effect/encoding/Sse"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { HttpServer, McpLimits } from "./McpServer.ts"

export interface HearingOptions {
  readonly server: HttpServer
  /** The revision of the protocol that was agreed on. */
  readonly version: string
  readonly limits: Pick<McpLimits, "freshMillis" | "hearMillis" | "messageBytes" | "requests" | "strayBytes">
  /** The list of tools changed, or may have while nobody was listening. */
  readonly onChanged: () => void
}

export interface McpHttpHearing {
  /** The client for everything else, with our ears on its responses. */
  readonly client: HttpClient.HttpClient
  /** Listens until the scope closes. Returns when the stream is open, when there is none, or soon. */
  readonly listen: Effect.Effect<void, never, Scope.Scope>
}

/** Pause before a stream that ended is opened again: twice as long each time, unless it held. */
const pauseMillis = 1_000
const longestPauseMillis = 60_000

const methodNotFound = -32601

const isStream = ({ headers }: HttpClientResponse): boolean =>
  (headers["content-type"] ?? "").split(";")[0]!.trim().toLowerCase() === "text/event-stream"

type Message = Readonly<Record<string, unknown>>

const messagesIn = (data: string): ReadonlyArray<Message> => {
  try {
    const value: unknown = JSON.parse(data)
    return [value].flat().filter((one): one is Message => typeof one === "object" && one !== null)
  } catch {
    return []
  }
}

/** Takes the bytes of one stream; false where an event is larger than a message may be. */
const ear = (messageBytes: number, onMessage: (message: Message) => void): ((bytes: Uint8Array) => boolean) => {
  const text = new TextDecoder()
  const parser = Sse.makeParser(
    (event) => {
      if (event._tag === "Event") for (const message of messagesIn(event.data)) onMessage(message)
    },
    { maxEventSize: messageBytes }
  )
  return (bytes) => parser.feed(text.decode(bytes, { stream: true })) === undefined
}

/** The same response, whose body is heard on its way through. The library judges its size and its form. */
const overheard = (response: HttpClientResponse, hear: (bytes: Uint8Array) => unknown): HttpClientResponse =>
  Object.create(response, {
    stream: { get: () => Stream.tap(response.stream, (bytes) => Effect.sync(() => void hear(bytes))) }
  })

const answerTo = (id: unknown, method: unknown): Message =>
  method === "ping"
    ? { jsonrpc: "2.0", id, result: {} }
    : { jsonrpc: "2.0", id, error: { code: methodNotFound, message: `Unsupported MCP method: ${String(method)}` } }

/** One conversation with a server: who speaks to it, and in which session. */
interface Talk extends HearingOptions {
  readonly inner: HttpClient.HttpClient
  session: string | undefined
}

const noted = (talk: Talk, message: Message): void => {
  if (message["method"] === "notifications/tools/list_changed") talk.onChanged()
}

const headersOf = ({ server, session, version }: Talk, accept: string) => ({
  ...server.headers,
  accept,
  "mcp-protocol-version": version,
  ...(session === undefined ? {} : { "mcp-session-id": session })
})

const answer = (talk: Talk, message: Message): Effect.Effect<void> =>
  talk.inner
    .execute(
      HttpClientRequest.post(talk.server.url).pipe(
        HttpClientRequest.setHeaders(headersOf(talk, "application/json, text/event-stream")),
        HttpClientRequest.bodyText(JSON.stringify(message), "application/json")
      )
    )
    .pipe(Effect.scoped, Effect.ignore)

/** One stream from its opening to its end, `opened` in between. False where the server has none. */
const heard = Effect.fnUntraced(function* (talk: Talk, opened: Effect.Effect<unknown>) {
  const { inner, limits, server } = talk
  const response = yield* HttpClient.withScope(inner).execute(
    HttpClientRequest.get(server.url).pipe(HttpClientRequest.setHeaders(headersOf(talk, "text/event-stream")))
  )
  if (response.status < 200 || response.status >= 300 || !isStream(response)) return false
  yield* opened
  let asked: Array<Message> = []
  let [size, requests] = [0, 0]
  const hear = ear(limits.messageBytes, (message) => {
    noted(talk, message)
    if (typeof message["method"] === "string" && message["id"] !== undefined) asked.push(message)
  })
  // What says too much is not listened to any longer; it may try again after the pause.
  const bearable = Stream.takeWhile(response.stream, (bytes) => {
    size += bytes.byteLength
    return size <= limits.strayBytes && hear(bytes) && requests + asked.length <= limits.requests
  })
  yield* Stream.runForEach(bearable, () => {
    const now = asked
    asked = []
    requests += now.length
    return Effect.forEach(now, ({ id, method }) => answer(talk, answerTo(id, method)), { discard: true })
  })
  return true
}, Effect.scoped)

const listening = Effect.fnUntraced(function* (talk: Talk) {
  const { limits, onChanged } = talk
  const ready = yield* Deferred.make<void>()
  let missed = false
  const opened = Effect.suspend(() => {
    if (missed) onChanged()
    return Deferred.succeed(ready, undefined)
  })
  const loop = Effect.gen(function* () {
    for (let pause = pauseMillis; ; pause = Math.min(2 * pause, longestPauseMillis)) {
      const before = yield* Clock.currentTimeMillis
      if (!(yield* Effect.orElseSucceed(heard(talk, opened), () => true))) return
      // From here until it is open again, nobody listens.
      missed = true
      onChanged()
      if ((yield* Clock.currentTimeMillis) - before > limits.freshMillis) pause = pauseMillis
      yield* Effect.sleep(pause)
    }
  })
  yield* Effect.forkScoped(Effect.ensuring(loop, Deferred.succeed(ready, undefined)))
  yield* Effect.timeoutOption(Deferred.await(ready), limits.hearMillis)
  // One that opens later than that may have missed a change already.
  missed = true
})

/** With the client that reaches the server: its redirects, its credentials. */
export const make = Effect.fnUntraced(function* (options: HearingOptions) {
  const inner = yield* HttpClient.HttpClient
  const talk: Talk = { ...options, inner, session: undefined }
  const client = HttpClient.transformResponse(
    inner,
    Effect.map((response) => {
      talk.session = response.headers["mcp-session-id"] ?? talk.session
      return isStream(response)
        ? overheard(
            response,
            ear(options.limits.messageBytes, (message) => noted(talk, message))
          )
        : response
    })
  )
  const hearing: McpHttpHearing = { client, listen: listening(talk) }
  return hearing
})
