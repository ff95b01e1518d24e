/** What the two ways to talk to a server have in common: entries of a log, a turn's request, and what is heard of it. */
import type * as Effect from "effect/Effect"
import type { EngineError } from "./EngineError.ts"
import type { EndReason, GenerationEvent, TurnRequest } from "./Generation.ts"
import { Fault } from "./OpenAiFault.ts"
import { type Event, recordOf } from "./OpenAiHttp.ts"
import type { Segment } from "./Prompt.ts"

/** A part of a session's log. */
export interface Entry {
  readonly segments: ReadonlyArray<Segment>
  /** Token ids, where the server's own are known. */
  readonly ids?: ReadonlyArray<number>
  /** Tokens, counted or estimated. */
  readonly size: number
}

/** How a turn ended, as far as the server says. */
export interface Ended {
  readonly reason: EndReason
  readonly prefillTokens?: number | undefined
  readonly outputTokens?: number | undefined
  readonly prefillMillis?: number | undefined
  readonly decodeMillis?: number | undefined
  /** The ids of the whole turn, where all of them were told. */
  readonly ids?: ReadonlyArray<number> | undefined
  /** The turn's text in parts, where it is known which of them were control tokens. */
  readonly parts?: ReadonlyArray<Segment> | undefined
}

/** Hears one attempt at a turn. */
export interface Hearing {
  /** What an event of the server's means. Throws a `Fault`. */
  readonly take: (event: Event) => ReadonlyArray<GenerationEvent>
  /** Nothing more is wanted. */
  readonly over: () => boolean
  /** What was still held back, and how the turn ended; `undefined`: it was never said. */
  readonly end: () => { readonly rest: ReadonlyArray<GenerationEvent>; readonly ended: Ended } | undefined
}

export interface Dialect {
  /** The server begins a turn of the model's with each request, so none goes on. */
  readonly endsTurns?: true
  /** `first`: the log is empty. */
  readonly enter: (segments: ReadonlyArray<Segment>, first: boolean) => Effect.Effect<Entry, EngineError>
  /** The text of a turn as a part of the log. */
  readonly spoken: (text: string, ended: Ended) => Effect.Effect<Entry, EngineError>
  readonly ask: (
    log: ReadonlyArray<Entry>,
    request: TurnRequest
  ) => { readonly url: string; readonly body: unknown; readonly hear: () => Hearing }
}

const at = (value: unknown, path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>((within, key) => recordOf(within)?.[key], value)

/** A time a server gives. */
const millisIn = (value: unknown, ...path: ReadonlyArray<string>): number | undefined => {
  const found = at(value, path)
  return typeof found === "number" && found >= 0 && found <= mostMillis ? found : undefined
}

/** A day; no turn takes longer, and what is said to be more is no time. */
const mostMillis = 86_400_000

/** A count of tokens a server gives. What could not be one is taken for none: limits and records count with it. */
export const countIn = (value: unknown, ...path: ReadonlyArray<string>): number | undefined => {
  const found = at(value, path)
  return typeof found === "number" && Number.isInteger(found) && found >= 0 && found <= mostTokens ? found : undefined
}

/** More than any context holds. */
const mostTokens = 2 ** 31

/** What `usage` says: tokens that were evaluated, and generated. */
export const usageOf = (event: Event): Pick<Ended, "outputTokens" | "prefillTokens"> | undefined => {
  const prompt = countIn(event, "usage", "prompt_tokens")
  const outputTokens = countIn(event, "usage", "completion_tokens")
  if (prompt === undefined && outputTokens === undefined) return undefined
  const cached = countIn(event, "usage", "prompt_tokens_details", "cached_tokens") ?? 0
  return { outputTokens, prefillTokens: prompt === undefined ? undefined : Math.max(0, prompt - cached) }
}

/** llama.cpp's own times, which it adds to the end of any stream. */
export const timesOf = (event: Event): Partial<Ended> => {
  const prefillMillis = millisIn(event, "timings", "prompt_ms")
  const decodeMillis = millisIn(event, "timings", "predicted_ms")
  const prefillTokens = countIn(event, "timings", "prompt_n")
  return prefillMillis === undefined || decodeMillis === undefined ? {} : { prefillTokens, prefillMillis, decodeMillis }
}

/** The only one of `choices` that is asked for: a server that gives others besides is not to mix them. */
export const choiceOf = (event: Event): Event | undefined =>
  Array.isArray(event["choices"])
    ? event["choices"].map(recordOf).find((choice) => choice !== undefined && (choice["index"] ?? 0) === 0)
    : undefined

/** Token ids a server tells; throws where they are none, since a later prompt is made of them. */
export const tokenIds = (value: ReadonlyArray<unknown>, where: string): ReadonlyArray<number> => {
  if (value.every((id) => Number.isSafeInteger(id) && (id as number) >= 0)) return value as ReadonlyArray<number>
  throw new Fault("failed", `${where} sends token ids that are none.`)
}
