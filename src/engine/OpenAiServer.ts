/**
 * Finds out what kind of server there is and which of its two ways to talk fits, and says why. Asks questions only; a server
 * that evaluates something on being asked is not one of them.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Families from "./codecs/Families.ts"
import { badRequest, type EngineError } from "./EngineError.ts"
import { type Fault, said } from "./OpenAiFault.ts"
import { type Event, type Exchange, recordOf } from "./OpenAiHttp.ts"

/** Which way to talk: prompts of ours, or messages as data. */
export type Api = "completions" | "chat"

export interface Wishes {
  /** The model's name, where the server has several. */
  readonly model?: string
  /** Forced; otherwise found out. */
  readonly api?: Api
  /** A codec that was asked for by name: the model's language where the server does not say. */
  readonly codec?: string
}

/** `plain`: known for nothing but the two ways to talk. */
export type Kind = "llama.cpp" | "vllm" | "plain"

export interface Server {
  readonly kind: Kind
  /** The model as requests name it. */
  readonly model: string
  readonly api: Api
  /** Why this way to talk. */
  readonly because: string
  readonly contextTokens: number | undefined
  readonly template: string | undefined
  readonly build: string | undefined
  /** Can it turn text into its own token ids? */
  readonly tokens: boolean
}

const word = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined)
const count = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : undefined

interface Listed {
  readonly id: string
  readonly owner: string | undefined
  readonly contextTokens: number | undefined
}

/** Something the server has no path for is no failure; anything else that is wrong is. */
const ifThere = (question: Effect.Effect<Event, Fault>): Effect.Effect<Event | undefined, EngineError> =>
  Effect.catch(question, (fault): Effect.Effect<undefined, EngineError> => {
    const { status } = fault
    const absent = status !== undefined && status !== 401 && status !== 403 && status !== 429 && status < 500
    return absent || status === 501 ? Effect.succeed(undefined) : Effect.fail(fault.error)
  })

/** A guess: whatever goes wrong with it, the server does not have it. */
const guess = (question: Effect.Effect<Event, Fault>): Effect.Effect<Event | undefined> =>
  Effect.orElseSucceed(question, () => undefined)

const listed = (answer: Event | undefined): ReadonlyArray<Listed> =>
  (Array.isArray(answer?.["data"]) ? answer["data"] : []).flatMap((entry) => {
    const id = word(recordOf(entry)?.["id"])
    if (id === undefined) return []
    const { max_model_len: most, owned_by: owner } = recordOf(entry)!
    return [{ id, owner: word(owner), contextTokens: count(most) }]
  })

/** A model's name for people: llama.cpp's server calls one by the whole path of its file. */
export const nameOf = (id: string): string => (/\.gguf$/i.test(id) ? id.replace(/^.*[/\\]/, "") : id)

const chosenModel = (
  where: string,
  models: ReadonlyArray<Listed>,
  wanted: string | undefined
): Effect.Effect<string, EngineError> => {
  const ids = models.map(({ id }) => id)
  const shown = `${ids
    .slice(0, 8)
    .map((id) => said(id, undefined))
    .join(", ")}${ids.length > 8 ? ", …" : ""}`
  // A server may know names that it does not list; it will say so itself.
  if (wanted !== undefined) return Effect.succeed(ids.find((id) => nameOf(id) === wanted) ?? wanted)
  if (ids.length === 1) return Effect.succeed(ids[0]!)
  return Effect.fail(
    badRequest(
      ids.length === 0
        ? `${where} lists no models. Name one.`
        : `${where} has ${ids.length} models (${shown}). Name one of them.`
    )
  )
}

interface Found {
  readonly kind: Kind
  readonly tokens: boolean
  readonly contextTokens: number | undefined
  readonly template: string | undefined
  readonly build: string | undefined
}

const llamaCpp = (props: Event, tokenized: Event | undefined): Found => ({
  kind: "llama.cpp",
  tokens: Array.isArray(tokenized?.["tokens"]),
  contextTokens: count(recordOf(props["default_generation_settings"])?.["n_ctx"]),
  template: word(props["chat_template"]),
  build: word(props["build_info"])
})

const look = Effect.fnUntraced(function* (
  exchange: Exchange,
  model: string,
  entry: Listed | undefined
): Effect.fn.Return<Found> {
  const { root } = exchange.address
  const none = { contextTokens: entry?.contextTokens, template: undefined, build: undefined }
  const props = yield* guess(exchange.ask(`${root}/props`))
  if (props !== undefined && recordOf(props["default_generation_settings"]) !== undefined) {
    return llamaCpp(props, yield* guess(exchange.ask(`${root}/tokenize`, { content: "a" })))
  }
  if (entry?.owner !== "vllm" && entry?.contextTokens === undefined) return { kind: "plain", tokens: false, ...none }
  const tokenized = yield* guess(exchange.ask(`${root}/tokenize`, { model, prompt: "a", add_special_tokens: false }))
  if (!Array.isArray(tokenized?.["tokens"])) return { kind: "plain", tokens: false, ...none }
  const version = word((yield* guess(exchange.ask(`${root}/version`)))?.["version"])
  const contextTokens = count(tokenized["max_model_len"]) ?? none.contextTokens
  return { ...none, kind: "vllm", tokens: true, contextTokens, build: version }
})

const familyOf = ({ template }: Found) =>
  template === undefined ? undefined : Result.getOrUndefined(Families.choose({ template }))

/** Prompts of ours where the model's language is known and the server tokenises them; else messages. */
const wayOf = (found: Found, { api, codec }: Wishes): Pick<Server, "api" | "because"> => {
  if (api !== undefined) return { api, because: "asked for" }
  if (!found.tokens) return { api: "chat", because: "the server does not say how it tokenises" }
  if (codec !== undefined)
    return { api: "completions", because: `the codec ${codec} was asked for, and the server tokenises` }
  const family = familyOf(found)
  if (family !== undefined) {
    return { api: "completions", because: `the server tokenises, and its template is known (${family.reason})` }
  }
  const because =
    found.template === undefined ? "the server does not tell its template" : "its template is of no family known here"
  return { api: "chat", because }
}

/** What is there at an address, and how it is talked to. */
export const detect = Effect.fnUntraced(function* (
  exchange: Exchange,
  wishes: Wishes
): Effect.fn.Return<Server, EngineError> {
  const { api, root } = exchange.address
  const models = listed(yield* ifThere(exchange.ask(`${api}/models`)))
  const model = yield* chosenModel(exchange.where, models, wishes.model)
  const found = yield* look(
    exchange,
    model,
    models.find(({ id }) => id === model)
  )
  const way = wayOf(found, wishes)
  if (way.api === "completions" && found.kind !== "llama.cpp" && wishes.codec === undefined) {
    return yield* badRequest(
      `${root}: prompts of ours need the model's language, which the server does not tell. Name the codec (--codec ID), or talk to it with chat (--engine-api chat).`
    )
  }
  return { ...found, ...way, model }
})
