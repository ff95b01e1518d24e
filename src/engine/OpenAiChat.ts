/**
 * Messages and tools as data, over `/v1/chat/completions`: the server renders the prompt and reads the calls. Its pieces of
 * text, reasoning and calls are put together as a turn of `codecs/OpenAiChat`; arguments stay the text they came as.
 */
import * as Effect from "effect/Effect"
import { frame, plain } from "./codecs/OpenAiChat.ts"
import { sizeOf, tokensIn, unknownIds } from "./Estimate.ts"
import type { EndReason, GenerationEvent } from "./Generation.ts"
import { endReason } from "./OpenAiCompletions.ts"
import { choiceOf, type Dialect, type Ended, type Entry, type Hearing, timesOf, usageOf } from "./OpenAiDialect.ts"
import { Fault } from "./OpenAiFault.ts"
import { type Event, type Exchange, recordOf, wordOf } from "./OpenAiHttp.ts"
import { messagesOf } from "./OpenAiMessages.ts"
import type { Server } from "./OpenAiServer.ts"
import { control, type Segment } from "./Prompt.ts"

/** Is what has come of a text one whole JSON object? Followed as it comes, so that asking costs nothing. */
class Whole {
  #depth = 0
  #inString = false
  #escaped = false
  #whole = false

  get yes(): boolean {
    return this.#whole
  }

  readonly push = (piece: string): void => {
    for (const unit of piece) {
      if (this.#escaped) this.#escaped = false
      else if (this.#inString) {
        if (unit === "\\") this.#escaped = true
        else if (unit === '"') this.#inString = false
      } else if (unit === '"') this.#inString = true
      else if (unit === "{") this.#depth++
      else if (unit === "}") this.#whole = --this.#depth === 0
    }
  }
}

interface Call {
  readonly index: number
  id: string
  name: string
  readonly arguments: Array<string>
  readonly whole: Whole
}

/** Calls one turn may have, and characters of all their arguments. */
const mostCalls = 128
const mostArgumentChars = 4 * 1024 * 1024

/** What is said. Some servers have it in parts; one that is no text must not go missing unnoticed. */
const contentOf = (value: unknown, where: string): string => {
  if (value === undefined || value === null) return ""
  if (typeof value === "string") return value
  const parts = Array.isArray(value) ? value.map((part) => recordOf(part)?.["text"]) : [undefined]
  if (parts.every((part) => typeof part === "string")) return parts.join("")
  throw new Fault("failed", `${where} sends content that is no text.`)
}

class ChatHearing implements Hearing {
  readonly #where: string
  #kind: "" | "text" | "reasoning" = ""
  readonly #calls: Array<Call> = []
  /** The call that was heard of last. */
  #last: Call | undefined
  #argumentChars = 0
  #reason: EndReason | undefined
  #usage: Pick<Ended, "outputTokens" | "prefillTokens"> | undefined
  #times: Partial<Ended> = {}

  constructor(where: string) {
    this.#where = where
  }

  readonly over = (): boolean => this.#reason !== undefined && this.#usage !== undefined

  readonly take = (event: Event): ReadonlyArray<GenerationEvent> => {
    this.#usage = usageOf(event) ?? this.#usage
    this.#times = { ...this.#times, ...timesOf(event) }
    const choice = choiceOf(event)
    if (choice === undefined) return []
    const delta = recordOf(choice["delta"])
    const out: Array<GenerationEvent> = []
    if (delta !== undefined) {
      const reasoning = wordOf(delta["reasoning_content"]) || wordOf(delta["reasoning"])
      out.push(...this.#say("reasoning", reasoning))
      // A refusal is what the model says.
      out.push(...this.#say("text", contentOf(delta["content"], this.#where) + wordOf(delta["refusal"])))
      this.#hear(delta["tool_calls"])
    }
    this.#reason = endReason(choice["finish_reason"], this.#where) ?? this.#reason
    return out
  }

  readonly end = () => {
    if (this.#reason === undefined) return undefined
    const calls = this.#calls.toSorted((a, b) => a.index - b.index).map(written)
    const rest = calls.map((text): GenerationEvent => ({ _tag: "Piece", text, tokens: unknownIds(tokensIn(text)) }))
    return { rest, ended: { ...this.#usage, ...this.#times, reason: this.#reason } }
  }

  #say(kind: "text" | "reasoning", said: string): ReadonlyArray<GenerationEvent> {
    if (said === "") return []
    const begins = kind === "reasoning" ? this.#kind !== kind : this.#kind === "reasoning"
    this.#kind = kind
    const text = `${begins ? frame(kind) : ""}${plain(said)}`
    return [{ _tag: "Piece", text, tokens: unknownIds(tokensIn(said)) }]
  }

  #hear(deltas: unknown): void {
    if (!Array.isArray(deltas)) return
    for (const one of deltas.map(recordOf)) {
      if (one === undefined) continue
      const id = wordOf(one["id"])
      const named = recordOf(one["function"])
      const name = wordOf(named?.["name"])
      const call = this.#callAt(one["index"], id, name)
      this.#last = call
      call.id ||= id
      // The name comes whole, but some servers send it again with each piece.
      call.name ||= name
      const piece = named?.["arguments"]
      if (piece === undefined || piece === null) continue
      if (typeof piece !== "string") {
        throw new Fault(
          "failed",
          `${this.#where} sends arguments of a call that are no text, so they cannot be checked as written.`
        )
      }
      this.#argumentChars += piece.length
      if (this.#argumentChars > mostArgumentChars)
        throw new Fault("failed", `${this.#where} sends calls that are too long.`)
      call.arguments.push(piece)
      call.whole.push(piece)
    }
  }

  #callAt(index: unknown, id: string, name: string): Call {
    const known = this.#known(index, id)
    // Some servers give every call the same number. A whole call that is begun anew under another id is another call.
    const another = known?.whole.yes === true && name !== "" && id !== "" && known.id !== "" && known.id !== id
    if (known !== undefined && !another) return known
    if (this.#calls.length >= mostCalls)
      throw new Fault("failed", `${this.#where} sends more than ${mostCalls} calls in one turn.`)
    const next = Math.max(-1, ...this.#calls.map((call) => call.index)) + 1
    const at = typeof index === "number" ? index : next
    const made: Call = { index: at, id: "", name: "", arguments: [], whole: new Whole() }
    this.#calls.push(made)
    return made
  }

  /** The call a piece belongs to: by its number; without one by its id, where a new one is a new call; without either the last. */
  #known(index: unknown, id: string): Call | undefined {
    if (typeof index === "number") {
      const same = this.#calls.filter((call) => call.index === index)
      return same.find((call) => id !== "" && call.id === id) ?? same.at(-1)
    }
    return id === "" ? this.#last : this.#calls.find((call) => call.id === id)
  }
}

const written = ({ arguments: pieces, id, name }: Call): string =>
  `${frame("call", { ...(id === "" ? {} : { id }), name })}${plain(pieces.join(""))}`

/** What of a request the kinds of servers know: only what all do is said to all. */
const body = (server: Server, log: ReadonlyArray<Entry>, { maxTokens, sampling }: Parameters<Dialect["ask"]>[1]) => {
  const { messages, thinking, tools } = messagesOf(log.flatMap(({ segments }) => segments))
  const own = server.kind !== "plain"
  const switched = own && thinking !== undefined ? { chat_template_kwargs: { enable_thinking: thinking } } : {}
  return {
    model: server.model,
    messages,
    ...(tools.length === 0 ? {} : { tools, tool_choice: "auto" }),
    max_tokens: maxTokens,
    temperature: sampling.temperature,
    top_p: sampling.topP,
    seed: sampling.seed,
    ...(own ? { top_k: sampling.topK } : {}),
    ...switched,
    ...(server.kind === "llama.cpp" ? { samplers: ["top_k", "top_p", "temperature"], cache_prompt: true } : {}),
    stream: true,
    stream_options: { include_usage: true }
  }
}

export const make = (exchange: Exchange, server: Server): Dialect => {
  const entry = (segments: ReadonlyArray<Segment>): Entry => ({ segments, size: sizeOf(segments) })
  return {
    endsTurns: true,
    enter: (segments) => Effect.succeed(entry(segments)),
    spoken: (text) => Effect.succeed(entry([control(text)])),
    ask: (log, request) => ({
      url: `${exchange.address.api}/chat/completions`,
      body: body(server, log, request),
      hear: () => new ChatHearing(exchange.where)
    })
  }
}
