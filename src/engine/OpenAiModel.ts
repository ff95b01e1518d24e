/**
 * A `Model` over an OpenAI-compatible server: llama-server, vLLM, Ollama, a hosted one. Finds out how it is talked to, says so
 * in its identity, and opens sessions; `effect/http` is the transport, whichever is provided. See docs/openai.md.
 */
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { openAiChat } from "./codecs/OpenAiChat.ts"
import { badRequest, type EngineError } from "./EngineError.ts"
import { Model, type ModelIdentity } from "./Model.ts"
import { type Address, isKey, parseAddress } from "./OpenAiAddress.ts"
import * as Chat from "./OpenAiChat.ts"
import * as Completions from "./OpenAiCompletions.ts"
import * as Http from "./OpenAiHttp.ts"
import { type Api, detect, nameOf, type Server } from "./OpenAiServer.ts"
import { OpenAiSession } from "./OpenAiSession.ts"
import * as Tokens from "./OpenAiTokens.ts"

export interface OpenAiOptions {
  /** The server, with or without `/v1`: `http://127.0.0.1:8080`. */
  readonly url: string
  /** The model's name there. Without one, the only one the server lists. */
  readonly model?: string
  /** How to talk to it. Without a word it is found out. */
  readonly api?: Api
  /** The codec that will be used, where it was asked for by name: needed for prompts of ours to a server that tells no template. */
  readonly codec?: string
  readonly apiKey?: Redacted.Redacted<string>
  /** Sends the key over a connection others can listen to. */
  readonly allowPlainHttp?: boolean
  /** Tokens a session may hold, where the server does not say or less is wanted. */
  readonly contextTokens?: number
  readonly patience?: Partial<Http.Patience>
}

/** Nobody says how much fits; the server's own refusal is the limit. */
const unbounded = 2 ** 50

const addressOf = ({ allowPlainHttp, apiKey, url }: OpenAiOptions): Result.Result<Address, string> => {
  const address = parseAddress(url)
  if (Result.isFailure(address) || apiKey === undefined) return address
  if (!isKey(Redacted.value(apiKey))) return Result.fail("the key holds characters that no key has")
  return address.success.confidential || allowPlainHttp === true
    ? address
    : Result.fail(
        `${address.success.shown}: a key is not sent unencrypted to another machine; use https, or say that it may be`
      )
}

const identityOf = (where: string, server: Server, options: OpenAiOptions): ModelIdentity => ({
  engine: "openai",
  name: nameOf(server.model),
  contextTokens: Math.min(options.contextTokens ?? unbounded, server.contextTokens ?? unbounded),
  // In chat the server's template is its own affair.
  ...(server.api === "completions" && server.template !== undefined ? { template: server.template } : {}),
  build: {
    server: where,
    kind: server.kind,
    api: server.api,
    because: server.because,
    tokens: server.tokens && server.api === "completions" ? "counted" : "estimated",
    ...(server.build === undefined ? {} : { version: server.build })
  }
})

/** Looks at the server and returns it as a model. */
export const make = Effect.fnUntraced(function* (
  options: OpenAiOptions
): Effect.fn.Return<Model["Service"], EngineError, HttpClient.HttpClient> {
  const address = yield* Effect.mapError(Effect.fromResult(addressOf(options)), badRequest)
  const patience = { ...Http.standardPatience, ...options.patience }
  const exchange = Http.make(yield* HttpClient.HttpClient, address, options.apiKey, patience)
  const chat = options.codec === openAiChat.id
  if (chat && options.api === "completions") {
    return yield* badRequest(`The codec ${openAiChat.id} is for chat; completions need the model's own.`)
  }
  const server = yield* detect(exchange, {
    ...(options.model === undefined ? {} : { model: options.model }),
    ...(options.api === undefined && !chat ? {} : { api: options.api ?? "chat" }),
    ...(options.codec === undefined ? {} : { codec: options.codec })
  })
  const counted = server.api === "completions" && server.tokens && server.kind !== "plain"
  const tokens = counted ? yield* Tokens.make(exchange, server.kind, server.model) : Tokens.estimated
  const dialect = server.api === "chat" ? Chat.make(exchange, server) : Completions.make(exchange, server, tokens)
  const identity = identityOf(exchange.where, server, options)
  const breaks = { count: 0 }
  return Model.of({
    identity,
    tokenize: (segments) => tokens.encode(segments, true),
    session: Effect.sync(() => new OpenAiSession(exchange, dialect, identity.contextTokens, breaks).session())
  })
})

export const layer = (options: OpenAiOptions): Layer.Layer<Model, EngineError, HttpClient.HttpClient> =>
  Layer.effect(Model, make(options))
