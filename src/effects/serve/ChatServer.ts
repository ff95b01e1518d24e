/**
 * Chat completions in the form of OpenAI's API, backed by the governed loop: who may ask, what is asked, and the way back.
 * Routes only; what listens is `HttpListener`, what runs is `Answering`.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { isHttpServerError } from "effect/http/HttpServerError"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Response from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import type { EngineError } from "../../engine/EngineError.ts"
import { Model } from "../../engine/Model.ts"
import type { RunServices } from "../Run.ts"
import * as Admission from "./Admission.ts"
import * as Answering from "./Answering.ts"
import { type About, completion } from "./ChatBodies.ts"
import { bodyOf, type ChatError, mayRetry, refused } from "./ChatError.ts"
import { bug, refusalOf, replyOf, resultOf } from "./ChatReply.ts"
import { type ChatRequest, type RequestBounds, read } from "./ChatRequest.ts"
import * as ChatStream from "./ChatStream.ts"
import * as EngineWatch from "./EngineWatch.ts"
import { isForeign, isLoopback, isOwnHost } from "./Origins.ts"
import * as RequestBody from "./RequestBody.ts"
import { type Route, ServeMetrics } from "./ServeMetrics.ts"
import * as ServeState from "./ServeState.ts"
import { bearer, type Tokens } from "./Tokens.ts"

export interface ServeLimits
  extends Omit<Admission.AdmissionLimits, "sessions">,
    RequestBounds,
    RequestBody.BodyLimits {
  /** Silence in a stream after which a comment is sent. */
  readonly keepAliveMillis: number
  /** How long a client may take nothing of what it is sent. */
  readonly stallMillis: number
}

export const defaultLimits: ServeLimits = {
  queue: 32,
  keyConcurrency: 16,
  keyPerMinute: Infinity,
  messages: 1024,
  tools: 128,
  bodyBytes: 4 * 1024 * 1024,
  bodyMillis: 30_000,
  keepAliveMillis: 10_000,
  stallMillis: 60_000
}

export interface ServeOptions extends Answering.AnsweringOptions {
  /** What clients call the model. */
  readonly model: string
  /** What is listened on: requests for another name are refused where that is loopback. */
  readonly host: string
  /** Who may ask. Without tokens everybody who gets here may. */
  readonly tokens?: Tokens
  readonly serving?: Partial<ServeLimits>
}

export interface ChatServer {
  readonly routes: Layer.Layer<never, never, HttpRouter.HttpRouter>
  readonly metrics: ServeMetrics
  readonly drain: ServeState.ServeState["drain"]
}

interface Desk {
  readonly options: ServeOptions
  readonly limits: ServeLimits
  readonly answering: Answering.Answering
  readonly admission: Admission.Admission
  readonly metrics: ServeMetrics
  readonly state: ServeState.ServeState
  readonly engine: EngineWatch.EngineWatch
  readonly started: number
}

const json = (
  body: object,
  status = 200,
  headers: Readonly<Record<string, string>> = {}
): Response.HttpServerResponse =>
  Response.text(JSON.stringify(body), {
    status,
    contentType: "application/json",
    headers: { "cache-control": "no-store", ...headers }
  })

const errorResponse = (error: ChatError, headers: Readonly<Record<string, string>> = {}): Response.HttpServerResponse =>
  json(bodyOf(error), error.status, {
    ...headers,
    ...(error.retryAfter === undefined ? {} : { "retry-after": String(error.retryAfter) }),
    // Clients repeat by themselves what looks like it could help, and what a run has done stays done.
    ...(mayRetry(error) ? {} : { "x-should-retry": "false" }),
    ...(error.status === 401 ? { "www-authenticate": "Bearer" } : {})
  })

/** Who asks, by the name of their token. */
const allowed = ({ metrics, options }: Desk, { headers }: HttpServerRequest): Effect.Effect<string, ChatError> =>
  Effect.suspend(() => {
    const { host, tokens } = options
    // Where a token is needed, a page that leads here by a name of its own has none, and a proxy passes the name it is called by.
    const strange = tokens === undefined && isLoopback(host) && !isOwnHost(headers["host"], host)
    if (strange || isForeign(headers["origin"], headers["host"])) {
      metrics.refusal("forbidden")
      const text = strange ? "This server is not known by that name" : "Pages of other places are not answered"
      return Effect.fail(refused(403, "forbidden_origin", text))
    }
    if (tokens === undefined) return Effect.succeed("anonymous")
    const token = bearer(headers["authorization"])
    const holder = token === undefined ? undefined : tokens.holder(token)
    if (holder !== undefined) return Effect.succeed(holder)
    metrics.refusal("unauthorized")
    const text =
      token === undefined ? "A bearer token is needed: Authorization: Bearer TOKEN" : "The token is not known"
    return Effect.fail(refused(401, "invalid_api_key", text))
  })

const only = (request: HttpServerRequest, ...methods: ReadonlyArray<string>): Effect.Effect<void, ChatError> =>
  methods.includes(request.method)
    ? Effect.void
    : Effect.fail(
        refused(405, "method_not_allowed", `${request.method} is not for this address: ${methods.join(", ")}`)
      )

const modelOf = ({ options, started }: Desk) => ({
  id: options.model,
  object: "model",
  created: Math.floor(started / 1000),
  owned_by: "writ"
})

const unknownModel = ({ options }: Desk, model: string): ChatError =>
  refused(404, "model_not_found", `There is no model '${model}' here; there is '${options.model}'`)

const secondsSince = (began: number) => Effect.map(Clock.currentTimeMillis, (now) => (now - began) / 1000)

/** The whole answer at once. */
const whole = Effect.fnUntraced(function* (
  { metrics }: Desk,
  request: ChatRequest,
  answer: Answering.Answer,
  about: About,
  began: number,
  headers: Readonly<Record<string, string>>
) {
  const ended = yield* resultOf(answer)
  const reply = "_tag" in ended ? ended : replyOf(ended, request)
  if (reply._tag === "ChatError") return errorResponse(reply, headers)
  yield* Effect.map(secondsSince(began), metrics.took)
  return json(completion(about, reply), 200, headers)
})

interface Source {
  readonly socket?: { readonly setTimeout: (millis: number) => void }
}

/** From here on the client has to take what it is sent: a connection on which nothing moves for so long is closed. */
const hurry = (http: HttpServerRequest, { keepAliveMillis, stallMillis }: ServeLimits): Effect.Effect<void> =>
  Effect.sync(() => (http.source as Source).socket?.setTimeout(Math.max(stallMillis, 2 * keepAliveMillis)))

const begin = (
  { answering, metrics, state }: Desk,
  request: ChatRequest,
  whose: string,
  emit: Answering.Observer["emit"]
) =>
  state
    .whileOpen(
      answering.start(request, whose, {
        emit: (event) => {
          metrics.see(event)
          emit(event)
        },
        live: request.stream,
        ended: metrics.ended,
        gone: metrics.gone
      })
    )
    .pipe(Effect.mapError(refusalOf))

const answered = Effect.fnUntraced(function* (
  desk: Desk,
  http: HttpServerRequest,
  request: ChatRequest,
  whose: string
) {
  const { limits, metrics, options, state } = desk
  const began = yield* Clock.currentTimeMillis
  const inbox = yield* ChatStream.inbox
  const running = yield* state.running
  const answer = yield* begin(desk, request, whose, request.stream ? inbox.emit : () => {})
  yield* running({ cancel: answer.cancel, ended: Effect.asVoid(Effect.exit(answer.ended)) })
  const about = { id: `chatcmpl-${answer.runId}`, created: Math.floor(began / 1000), model: options.model }
  const headers = { "x-writ-run-id": answer.runId }
  if (!request.stream) {
    const response = yield* whole(desk, request, answer, about, began, headers)
    return yield* Effect.as(hurry(http, limits), response)
  }
  yield* hurry(http, limits)
  const body = ChatStream.body(inbox, answer, request, about, {
    keepAliveMillis: limits.keepAliveMillis,
    first: Effect.map(secondsSince(began), metrics.tookToFirst),
    done: Effect.map(secondsSince(began), metrics.took)
  })
  return Response.stream(body, {
    contentType: "text/event-stream",
    headers: { ...headers, "cache-control": "no-store", "x-accel-buffering": "no" }
  })
})

const chat = Effect.fnUntraced(function* (desk: Desk, http: HttpServerRequest) {
  const { admission, limits, metrics, options, state } = desk
  const key = yield* allowed(desk, http)
  yield* only(http, "POST")
  yield* state.inside.pipe(Effect.tapError(() => Effect.sync(() => metrics.refusal("draining"))))
  yield* admission.enter(key)
  const request = yield* state.whileOpen(RequestBody.read(http, limits)).pipe(
    Effect.flatMap((text) => Effect.fromResult(read(text, limits))),
    Effect.filterOrFail(
      ({ model }) => model === options.model,
      ({ model }) => unknownModel(desk, model)
    ),
    Effect.tapError(({ status }) => Effect.sync(() => metrics.refusal(status === 503 ? "draining" : "invalid")))
  )
  return yield* answered(desk, http, request, key)
})

const models = Effect.fnUntraced(function* (desk: Desk, http: HttpServerRequest) {
  yield* allowed(desk, http)
  yield* only(http, "GET", "HEAD")
  const wanted = (yield* HttpRouter.params)["*"] ?? ""
  if (wanted === "") return json({ object: "list", data: [modelOf(desk)] })
  return wanted === desk.options.model ? json(modelOf(desk)) : yield* unknownModel(desk, wanted)
})

/** `live` says that the process answers, the others that it takes requests and has something to answer them with. */
const health = Effect.fnUntraced(function* ({ engine, state }: Desk, http: HttpServerRequest) {
  yield* only(http, "GET", "HEAD")
  if (http.url.startsWith("/health/live")) return json({ live: true })
  const status = state.draining() ? "draining" : (yield* engine.isThere) ? "ready" : "no_engine"
  const ready = status === "ready"
  return json({ status, live: true, ready }, ready ? 200 : 503)
})

const metricsText = Effect.fnUntraced(function* (desk: Desk, http: HttpServerRequest) {
  yield* allowed(desk, http)
  yield* only(http, "GET", "HEAD")
  const { admission, metrics, state } = desk
  const standing = { inFlight: admission.inside(), waiting: admission.waiting(), draining: state.draining() }
  return Response.text(metrics.text(standing), { contentType: "text/plain; version=0.0.4; charset=utf-8" })
})

const nowhere = (desk: Desk, http: HttpServerRequest) =>
  Effect.andThen(allowed(desk, http), Effect.fail(refused(404, "not_found", "There is nothing at this address")))

type Handler<R> = (desk: Desk, http: HttpServerRequest) => Effect.Effect<Response.HttpServerResponse, ChatError, R>

/** What all routes have in common: errors in the form of the API, a name for the request, a count. */
const handled =
  <R>(desk: Desk, route: Route, handler: Handler<R>) =>
  (http: HttpServerRequest) =>
    Effect.gen(function* () {
      const response = yield* handler(desk, http).pipe(
        Effect.catchTag("ChatError", (error) => Effect.succeed(errorResponse(error))),
        Effect.catchDefect((defect) => Effect.as(Effect.logError("a request failed", defect), errorResponse(bug)))
      )
      desk.metrics.request(route, response.status)
      const salt = yield* Random.nextIntBetween(0, 0xffff_ffff)
      const named = Response.setHeader(response, "x-request-id", `req-${salt.toString(16).padStart(8, "0")}`)
      return desk.state.draining() ? Response.setHeader(named, "connection", "close") : named
    })

/** Opens the sessions in the caller's scope. */
export const make = Effect.fnUntraced(function* (
  options: ServeOptions
): Effect.fn.Return<ChatServer, EngineError, Model | RunServices | Scope.Scope> {
  const { host: _, model: __, serving, tokens: ___, ...rest } = options
  const limits = { ...defaultLimits, ...serving }
  const metrics = new ServeMetrics()
  const desk: Desk = {
    options,
    limits,
    answering: yield* Answering.make(rest),
    admission: Admission.make({ ...limits, sessions: options.sessions }, metrics.refusal),
    metrics,
    state: yield* ServeState.make,
    engine: yield* EngineWatch.make(yield* Model),
    started: yield* Clock.currentTimeMillis
  }
  const services = yield* Effect.context<RunServices>()
  // A request has a scope of its own, and whatever else it has goes before what the server has.
  const within = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.updateContext(
      effect,
      (own: Context.Context<Exclude<R, RunServices>>) => Context.merge(services, own) as Context.Context<R>
    )
  const at = <R>(path: HttpRouter.PathInput, route: Route, handler: Handler<R>) =>
    HttpRouter.route("*", path, (http) => within(handled(desk, route, handler)(http)))
  const routes = HttpRouter.addAll([
    at("/v1/chat/completions", "chat", chat),
    at("/v1/models/*", "models", models),
    at("/health", "health", health),
    at("/health/live", "health", health),
    at("/health/ready", "health", health),
    at("/metrics", "metrics", metricsText)
  ])
  const elsewhere = Effect.flatMap(HttpServerRequest, handled(desk, "other", nowhere))
  return { routes: Layer.merge(routes, unrouted(elsewhere)), metrics, drain: desk.state.drain }
})

const isUnrouted = (error: unknown): boolean => isHttpServerError(error) && error.reason._tag === "RouteNotFound"

/** What no route is for, a path that cannot be decoded included, which a route for all paths would not see. */
const unrouted = (answer: Effect.Effect<Response.HttpServerResponse, never, HttpServerRequest>) =>
  HttpRouter.middleware(
    (routed) => Effect.catch(routed, (error) => (isUnrouted(error) ? answer : Effect.fail(error))),
    { global: true }
  )
