/**
 * Prompts of ours: the codec's segments as they are, continued by the server. To llama.cpp as token ids over its own
 * `/completion`, to vLLM as token ids, to others as text in which content is kept from spelling a control token. Where a
 * server would swallow what ends a turn, it is not told of it: the stream is left when it was written.
 */
import * as Effect from "effect/Effect"
import { tokensIn, unknownIds } from "./Estimate.ts"
import type { EndReason, GenerationEvent, TurnRequest } from "./Generation.ts"
import {
  choiceOf,
  countIn,
  type Dialect,
  type Ended,
  type Entry,
  type Hearing,
  timesOf,
  tokenIds,
  usageOf
} from "./OpenAiDialect.ts"
import { Fault } from "./OpenAiFault.ts"
import { visible } from "./OpenAiGuard.ts"
import { type Event, type Exchange, wordOf } from "./OpenAiHttp.ts"
import type { Server } from "./OpenAiServer.ts"
import type { Tokens } from "./OpenAiTokens.ts"
import { control, type Segment } from "./Prompt.ts"
import { upToStop } from "./StopScan.ts"

/** Texts of ours that may be one token each, which a server shows only if it is told to. */
const marks = /<[^<>\s"]{2,80}>|\[\/?[A-Z_]{3,40}\]/g

const marksIn = (log: ReadonlyArray<Entry>, { stops }: TurnRequest): ReadonlyArray<string> => {
  const found = new Set(stops)
  for (const { segments } of log) {
    for (const { kind, text } of segments) {
      if (kind === "control") for (const [mark] of text.matchAll(marks)) found.add(mark)
    }
  }
  return [...found]
}

const idsOf = (log: ReadonlyArray<Entry>): ReadonlyArray<number> => log.flatMap(({ ids }) => ids ?? [])

const textOf = (log: ReadonlyArray<Entry>): string =>
  log
    .flatMap(({ segments }) => segments)
    .map(({ kind, text }) => (kind === "text" ? visible(text) : text))
    .join("")

/** llama.cpp's own stream: each token as it comes, the end with everything about it. */
class LlamaCppHearing implements Hearing {
  readonly #where: string
  readonly #marks: ReadonlySet<string>
  /** Tokens that may be the end itself, or that show nothing yet. */
  #held: Array<{ readonly text: string; readonly ids: ReadonlyArray<number> }> = []
  #ids: Array<number> = []
  #parts: Array<Segment> = []
  #rest: ReadonlyArray<GenerationEvent> = []
  #ended: Ended | undefined

  constructor(where: string, shown: ReadonlyArray<string>) {
    this.#where = where
    this.#marks = new Set(shown)
  }

  readonly over = (): boolean => this.#ended !== undefined

  readonly take = (event: Event): ReadonlyArray<GenerationEvent> => {
    const total = countIn(event, "prompt_progress", "total")
    if (total !== undefined) {
      const cached = countIn(event, "prompt_progress", "cache") ?? 0
      const done = (countIn(event, "prompt_progress", "processed") ?? 0) - cached
      return [{ _tag: "Prefill", done: Math.max(0, done), total: Math.max(0, total - cached) }]
    }
    if (event["stop"] === true) {
      this.#finish(event)
      return []
    }
    if (typeof event["content"] !== "string") throw new Fault("failed", `${this.#where} sends an event without text.`)
    const ids = Array.isArray(event["tokens"]) ? tokenIds(event["tokens"], this.#where) : []
    const text = event["content"]
    this.#held.push({ text, ids })
    return text === "" || this.#marks.has(text) ? [] : this.#release()
  }

  readonly end = () => (this.#ended === undefined ? undefined : { rest: this.#rest, ended: this.#ended })

  #release(more = ""): ReadonlyArray<GenerationEvent> {
    const text = this.#held.map((one) => one.text).join("") + more
    const tokens = this.#held.flatMap((one) => one.ids)
    // A mark that came as one token is one; spelled out, it is content that the model repeats.
    for (const one of this.#held) {
      this.#parts.push({ kind: one.ids.length === 1 && this.#marks.has(one.text) ? "control" : "text", text: one.text })
    }
    if (more !== "") this.#parts.push(control(more))
    this.#held = []
    for (const id of tokens) this.#ids.push(id)
    return text === "" ? [] : [{ _tag: "Piece", text, tokens }]
  }

  #finish(event: Event): void {
    const kind = wordOf(event["stop_type"])
    const heard = this.#ids.length + this.#held.reduce((sum, { ids }) => sum + ids.length, 0)
    const predicted = countIn(event, "tokens_predicted")
    const reason: EndReason = kind === "word" ? "stop" : kind === "limit" ? "length" : "eog"
    // The model's own end is no part of the turn.
    if (reason === "eog") this.#held.pop()
    const stop = reason === "stop" ? wordOf(event["stopping_word"]) : ""
    this.#rest = this.#release(stop)
    this.#ended = {
      reason,
      ...timesOf(event),
      outputTokens: predicted === undefined || reason !== "eog" ? predicted : Math.max(0, predicted - 1),
      // A character of several tokens hides all but the last of them, and a stop may end inside a token.
      ids: heard === predicted && reason !== "stop" ? this.#ids : undefined,
      parts: this.#parts
    }
  }
}

/** A stream of texts. Ends the turn itself where a stop was written. */
export class TextHearing implements Hearing {
  readonly #where: string
  readonly #request: TurnRequest
  #said = ""
  #stopped = false
  #reason: EndReason | undefined
  #usage: Pick<Ended, "outputTokens" | "prefillTokens"> = {}
  #counted = false
  /** What the server tells of token ids, as long as it tells it of every text. */
  #ids: Array<number> | undefined = []

  constructor(where: string, request: TurnRequest) {
    this.#where = where
    this.#request = request
  }

  readonly over = (): boolean => this.#stopped || (this.#reason !== undefined && this.#counted)

  readonly take = (event: Event): ReadonlyArray<GenerationEvent> => {
    const usage = usageOf(event)
    if (usage !== undefined) {
      this.#usage = usage
      this.#counted = true
    }
    const choice = choiceOf(event)
    if (choice === undefined) return []
    const text = wordOf(choice["text"])
    const ids = choice["token_ids"]
    if (Array.isArray(ids)) for (const id of tokenIds(ids, this.#where)) this.#ids?.push(id)
    else if (text !== "") this.#ids = undefined
    const out = this.#say(text)
    if (!this.#stopped) this.#reason = endReason(choice["finish_reason"], this.#where) ?? this.#reason
    return out
  }

  readonly end = () =>
    this.#reason === undefined
      ? undefined
      : {
          rest: [],
          ended: { ...this.#usage, reason: this.#reason, ids: this.#reason === "length" ? this.#ids : undefined }
        }

  #say(text: string): ReadonlyArray<GenerationEvent> {
    if (text === "" || this.#stopped) return []
    const before = this.#said.length
    const stopped = upToStop(this.#said, text, this.#request.stops)
    if (stopped !== undefined) {
      this.#stopped = true
      this.#reason = "stop"
    }
    this.#said = stopped ?? this.#said + text
    const piece = this.#said.slice(before)
    return piece === "" ? [] : [{ _tag: "Piece", text: piece, tokens: unknownIds(tokensIn(piece)) }]
  }
}

/** What `finish_reason` says. Nothing yet: `undefined`. Throws where the turn must not be used. */
export const endReason = (said: unknown, where: string): EndReason | undefined => {
  if (said === undefined || said === null || said === "") return undefined
  if (said === "length" || said === "max_tokens" || said === "model_length") return "length"
  if (said === "content_filter")
    throw new Fault("failed", `${where} withheld the turn: its content filter took offence.`)
  if (said === "error" || said === "abort" || said === "insufficient_system_resource")
    throw new Fault("lost", `${where} gave the turn up.`)
  return "eog"
}

const native =
  (exchange: Exchange, { model }: Server): Dialect["ask"] =>
  (log, request) => {
    const { maxTokens, sampling, stops } = request
    const shown = marksIn(log, request)
    return {
      url: `${exchange.address.root}/completion`,
      hear: () => new LlamaCppHearing(exchange.where, shown),
      body: {
        model,
        prompt: idsOf(log),
        n_predict: maxTokens,
        stop: stops,
        stream: true,
        cache_prompt: true,
        return_tokens: true,
        return_progress: true,
        preserved_tokens: shown,
        // As this engine's own sampling: nothing else has a say.
        samplers: ["top_k", "top_p", "temperature"],
        temperature: sampling.temperature,
        top_k: sampling.topK,
        top_p: sampling.topP,
        seed: sampling.seed,
        response_fields: ["content", "tokens", "stop", "stop_type", "stopping_word", "tokens_predicted", "timings"]
      }
    }
  }

const common =
  (exchange: Exchange, { kind, model, tokens }: Server): Dialect["ask"] =>
  (log, request) => {
    const { maxTokens, sampling } = request
    // vLLM hides special tokens, and what follows top_k is its own.
    const more =
      kind === "vllm"
        ? {
            top_k: sampling.topK || -1,
            skip_special_tokens: false,
            spaces_between_special_tokens: false,
            return_token_ids: true
          }
        : {}
    return {
      url: `${exchange.address.api}/completions`,
      hear: () => new TextHearing(exchange.where, request),
      body: {
        model,
        prompt: tokens ? idsOf(log) : textOf(log),
        max_tokens: maxTokens,
        temperature: sampling.temperature,
        top_p: sampling.topP,
        seed: sampling.seed,
        stream: true,
        stream_options: { include_usage: true },
        ...more
      }
    }
  }

export const make = (exchange: Exchange, server: Server, tokens: Tokens): Dialect => {
  const entry = (segments: ReadonlyArray<Segment>, ids: ReadonlyArray<number>): Entry => ({
    segments,
    size: ids.length,
    ...(server.tokens ? { ids } : {})
  })
  const enter: Dialect["enter"] = (segments, first) =>
    Effect.map(tokens.encode(segments, first), (ids) => entry(segments, ids))
  return {
    enter,
    spoken: (text, { ids, parts }) =>
      ids === undefined ? enter(parts ?? [control(text)], false) : Effect.succeed(entry([control(text)], ids)),
    ask: server.kind === "llama.cpp" && server.tokens ? native(exchange, server) : common(exchange, server)
  }
}
