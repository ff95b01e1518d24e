/** OpenAI-compatible servers on loopback: one of each kind that plays turns, and a bare one that misbehaves as a test says. */
import type { IncomingMessage, ServerResponse } from "node:http"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { HttpClient } from "effect/http/HttpClient"
import type { Layer } from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { Patience } from "../../src/engine/OpenAiHttp.ts"
import { serving } from "./web.ts"

/** One request as it came. */
export interface Asked {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage["headers"]
  // biome-ignore lint/suspicious/noExplicitAny: whatever the request holds
  readonly body: any
  /** Done when the connection is gone before the answer is whole. */
  readonly left: Effect.Effect<void>
}

export type Answering = (asked: Asked, response: ServerResponse, nth: number) => void

export interface Fake {
  readonly url: string
  readonly asked: Array<Asked>
}

/** Node's own connections. */
export const transport: Layer<HttpClient> = NodeHttpClient.layerNodeHttp

/** No test waits for a pause. */
export const hasty: Partial<Patience> = { delayMillis: 1, pauseMillis: 2000 }

/** A server that answers as it is told, by the path without `/v1`; what it is not told of is not there. */
export const fake = (paths: Readonly<Record<string, Answering>>): Effect.Effect<Fake, never, Scope.Scope> =>
  Effect.gen(function* () {
    const asked: Array<Asked> = []
    const counts = new Map<string, number>()
    const port = yield* serving((request, response) => {
      const parts: Array<Buffer> = []
      request.on("data", (part: Buffer) => parts.push(part))
      request.on("end", () => {
        const path = (request.url ?? "").replace(/^\/v1(?=\/)/, "")
        const left = Deferred.makeUnsafe<void>()
        response.on("close", () => {
          if (!response.writableFinished) Deferred.doneUnsafe(left, Effect.void)
        })
        const text = Buffer.concat(parts).toString("utf8")
        const one: Asked = {
          method: request.method ?? "",
          path,
          headers: request.headers,
          body: text === "" ? undefined : JSON.parse(text),
          left: Deferred.await(left)
        }
        asked.push(one)
        const nth = (counts.get(path) ?? 0) + 1
        counts.set(path, nth)
        const answering = paths[path]
        if (answering === undefined) response.writeHead(404, { "content-type": "text/plain" }).end("File Not Found")
        else answering(one, response, nth)
      })
    })
    return { url: `http://127.0.0.1:${port}`, asked }
  })

export const json =
  (value: unknown, status = 200): Answering =>
  (_asked, response) => {
    response.writeHead(status, { "content-type": "application/json; charset=utf-8" }).end(JSON.stringify(value))
  }

export const stream = { "content-type": "text/event-stream" } as const

/** Events as a stream, with `[DONE]` behind them. */
export const sse =
  (events: ReadonlyArray<unknown>, done = true): Answering =>
  (_asked, response) => {
    response.writeHead(200, stream)
    for (const event of events) response.write(`data: ${JSON.stringify(event)}\n\n`)
    response.end(done ? "data: [DONE]\n\n" : "")
  }

/** One after the other; the last one again and again. */
export const inTurn =
  (...answers: ReadonlyArray<Answering>): Answering =>
  (asked, response, nth) =>
    answers[Math.min(nth, answers.length) - 1]!(asked, response, nth)

export const models = (...ids: ReadonlyArray<string>) => json({ object: "list", data: ids.map((id) => ({ id })) })

/** A delta of a chat. */
export const delta = (value: unknown, finish: string | null = null) => ({
  choices: [{ index: 0, delta: value, finish_reason: finish }]
})
export const usage = { choices: [], usage: { prompt_tokens: 40, completion_tokens: 7 } }

const special = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
/** Recognised even in texts that are not to be parsed for special tokens. */
const always = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"]
const named = [...special, ...always]
const firstNamed = 200_000

/** One token per mark, else one per UTF-16 unit. */
export const tokenize = (text: string, parseSpecial: boolean): ReadonlyArray<number> => {
  const out: Array<number> = []
  for (let at = 0; at < text.length; ) {
    const mark = (parseSpecial ? named : always).find((one) => text.startsWith(one, at))
    out.push(mark === undefined ? text.charCodeAt(at) : firstNamed + named.indexOf(mark))
    at += mark?.length ?? 1
  }
  return out
}

export const textOf = (ids: ReadonlyArray<number>): string =>
  ids.map((id) => named[id - firstNamed] ?? String.fromCharCode(id)).join("")

/** The marks in a prompt that are one token each: what stands there as structure. */
export const structure = (ids: ReadonlyArray<number>): ReadonlyArray<string> =>
  ids.flatMap((id) => named[id - firstNamed] ?? [])

const chatMl = `{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{%- endfor %}<tools></tools>{"name": <function-name>, "arguments": <args-json-object>}<tool_call></tool_call>`

const end = firstNamed + special.indexOf("<|im_end|>")

/** What llama.cpp's own completion streams for a text. */
export const llamaEvents = (text: string, { max = Infinity, stops = [] as ReadonlyArray<string> } = {}) => {
  const ids = tokenize(text, true)
  const shown = ids.slice(0, max)
  const events: Array<unknown> = [{ prompt_progress: { total: 30, cache: 10, processed: 30, time_ms: 1 } }]
  let said = ""
  for (const [at, id] of shown.entries()) {
    said += textOf([id])
    const stop = stops.find((one) => said.endsWith(one))
    const held = stops.some((one) => one !== stop && [...one].some((_, n) => n > 0 && said.endsWith(one.slice(0, n))))
    events.push({ index: 0, content: stop === undefined && !held ? textOf([id]) : "", tokens: [id], stop: false })
    if (stop !== undefined) return [...events, finalOf("word", at + 1, stop)]
  }
  if (shown.length < ids.length) return [...events, finalOf("limit", shown.length)]
  return [...events, { index: 0, content: "<|im_end|>", tokens: [end], stop: false }, finalOf("eos", shown.length + 1)]
}

const finalOf = (kind: string, predicted: number, word = "") => ({
  content: "",
  tokens: [],
  stop: true,
  stop_type: kind,
  stopping_word: word,
  tokens_predicted: predicted,
  timings: { prompt_n: 20, prompt_ms: 5, predicted_n: predicted, predicted_ms: 9 }
})

export interface Kind {
  readonly context?: number
  readonly template?: string
}

/** llama.cpp's server, which plays turns. */
export const llamaCpp = (turns: ReadonlyArray<string>, { context = 4096, template = chatMl }: Kind = {}) =>
  fake({
    "/models": models("tiny.gguf"),
    "/props": json({
      default_generation_settings: { n_ctx: context },
      chat_template: template,
      build_info: "b1-abc",
      total_slots: 1
    }),
    "/tokenize": (asked, response, nth) =>
      json({ tokens: tokenize(asked.body.content, asked.body.parse_special !== false) })(asked, response, nth),
    "/completion": (asked, response, nth) => {
      const { n_predict: max, stop: stops } = asked.body
      sse(llamaEvents(turns[nth - 1] ?? "", { max, stops }), false)(asked, response, nth)
    }
  })

const piecesOf = (text: string): ReadonlyArray<string> => text.match(/.{1,3}/gs) ?? []

/** vLLM's, which takes special tokens in texts for what they spell. */
export const vllm = (turns: ReadonlyArray<string>) =>
  fake({
    "/models": json({ data: [{ id: "org/model", owned_by: "vllm", max_model_len: 2048 }] }),
    "/version": json({ version: "0.9.1" }),
    "/tokenize": (asked, response, nth) => {
      const tokens = tokenize(asked.body.prompt, true)
      json({ count: tokens.length, max_model_len: 2048, tokens })(asked, response, nth)
    },
    "/completions": (asked, response, nth) =>
      sse([
        ...piecesOf(turns[nth - 1] ?? "").map((text) => ({ choices: [{ index: 0, text, finish_reason: null }] })),
        { choices: [{ index: 0, text: "", finish_reason: "stop" }] },
        usage
      ])(asked, response, nth)
  })

/** A call as a chat streams it: its name, then its arguments in pieces. */
export const calling = (index: number, id: string, name: string, args: string): ReadonlyArray<unknown> => [
  delta({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }),
  ...piecesOf(args).map((piece) => delta({ tool_calls: [{ index, function: { arguments: piece } }] }))
]

/** A server of which nothing but the two ways to talk is known; plays what its turns say. */
export const plain = (turns: ReadonlyArray<ReadonlyArray<unknown>>) =>
  fake({
    "/models": models("some-model"),
    "/chat/completions": (asked, response, nth) => sse(turns[nth - 1] ?? [])(asked, response, nth)
  })

/** An answer in a chat. */
export const saying = (text: string, finish = "stop"): ReadonlyArray<unknown> => [
  delta({ role: "assistant", content: "" }),
  ...piecesOf(text).map((content) => delta({ content })),
  delta({}, finish),
  usage
]
