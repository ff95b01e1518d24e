/**
 * Segments to a server's own token ids, so that text stays text: control segments are parsed for special tokens, text
 * segments are not, or are cut where they spell one. Without a tokeniser: estimates, which are the same for both kinds.
 */
import * as Effect from "effect/Effect"
import type { EngineError } from "./EngineError.ts"
import { sizeOf, unknownIds } from "./Estimate.ts"
import { Fault } from "./OpenAiFault.ts"
import { cut } from "./OpenAiGuard.ts"
import type { Event, Exchange } from "./OpenAiHttp.ts"
import type { Kind } from "./OpenAiServer.ts"
import type { Segment } from "./Prompt.ts"

export interface Tokens {
  /** `first`: they begin the log. */
  readonly encode: (
    segments: ReadonlyArray<Segment>,
    first: boolean
  ) => Effect.Effect<ReadonlyArray<number>, EngineError>
}

/** As many ids as are estimated. */
export const estimated: Tokens = {
  encode: (segments) => Effect.sync(() => unknownIds(sizeOf(segments)))
}

/** Texts whose ids are remembered, and how long they may be. */
const remembered = 1024
const mostRememberedChars = 200

const idsOf = (where: string, answer: Event): Effect.Effect<ReadonlyArray<number>, Fault> => {
  const { tokens } = answer
  return Array.isArray(tokens) && tokens.every((id) => Number.isSafeInteger(id))
    ? Effect.succeed(tokens as ReadonlyArray<number>)
    : Effect.fail(new Fault("failed", `${where} answers with no token ids.`))
}

type Question = (text: string, special: boolean, whole: boolean) => unknown

/** How each kind of server is asked; `whole`: with what begins every prompt. */
const questions = {
  "llama.cpp": (): Question => (content, special, whole) => ({ content, add_special: whole, parse_special: special }),
  vllm:
    (model: string): Question =>
    (prompt, _special, whole) => ({ model, prompt, add_special_tokens: whole })
}

/** What begins every log of this server, and the ids of the line feed that keeps a text from getting a space in front. */
interface Habits {
  readonly bos: number | undefined
  readonly lead: ReadonlyArray<number> | undefined
}

/** The server's tokeniser. Asks it what it puts in front of texts. */
export const make = Effect.fnUntraced(function* (
  exchange: Exchange,
  kind: Exclude<Kind, "plain">,
  model: string
): Effect.fn.Return<Tokens, EngineError> {
  const question = questions[kind](model)
  const url = `${exchange.address.root}/tokenize`
  const ask = (text: string, special: boolean, whole = false) =>
    Effect.flatMap(exchange.ask(url, question(text, special, whole)), (answer) => idsOf(exchange.where, answer))
  const known = new Map<string, ReadonlyArray<number>>()
  const habits = yield* Effect.mapError(habitsOf(ask), ({ error }) => error)

  const fresh = (text: string, special: boolean): Effect.Effect<ReadonlyArray<number>, Fault> => {
    const { lead } = habits
    if (lead === undefined || special) return ask(text, special)
    return Effect.flatMap(ask(`\n${text}`, special), (ids) =>
      lead.every((id, at) => ids[at] === id) ? Effect.succeed(ids.slice(lead.length)) : ask(text, special)
    )
  }
  const encode = (text: string, special: boolean): Effect.Effect<ReadonlyArray<number>, Fault> => {
    const name = `${special}:${text}`
    const before = known.get(name)
    if (before !== undefined) return Effect.succeed(before)
    return Effect.tap(fresh(text, special), (ids) =>
      Effect.sync(() => {
        if (text.length > mostRememberedChars) return
        if (known.size >= remembered) known.clear()
        known.set(name, ids)
      })
    )
  }
  return {
    encode: (segments, first) =>
      Effect.forEach(partsOf(segments), ({ special, text }) => encode(text, special), { concurrency: 4 }).pipe(
        Effect.map((ids) => {
          const all = ids.flat()
          // A template may have spelled the beginning itself.
          const begins = first && habits.bos !== undefined && all.length > 0 && all[0] !== habits.bos
          return begins ? [habits.bos!, ...all] : all
        }),
        Effect.mapError(({ error }) => error)
      )
  }
})

type Ask = (text: string, special: boolean, whole?: boolean) => Effect.Effect<ReadonlyArray<number>, Fault>

const habitsOf = Effect.fnUntraced(function* (ask: Ask): Effect.fn.Return<Habits, Fault> {
  const plain = yield* ask("x", false)
  const whole = yield* ask("x", false, true)
  const bos = whole.length > plain.length && whole[whole.length - plain.length] === plain[0] ? whole[0] : undefined
  // Where "x" behind something is another token than "x" alone, a space was put in front of the one alone.
  const lead = yield* ask("\n", false)
  const behind = yield* ask("\nx", false)
  const spaced = lead.every((id, at) => behind[at] === id) && behind[lead.length] !== plain[0]
  return { bos, lead: spaced ? lead : undefined }
})

/** Texts as they are tokenised: neighbours of ours together, content in parts that spell no token. */
const partsOf = (
  segments: ReadonlyArray<Segment>
): ReadonlyArray<{ readonly text: string; readonly special: boolean }> => {
  const out: Array<{ readonly text: string; readonly special: boolean }> = []
  let ours = ""
  const flush = () => {
    if (ours !== "") out.push({ text: ours, special: true })
    ours = ""
  }
  for (const { kind, text } of segments) {
    if (kind === "control") {
      ours += text
      continue
    }
    flush()
    for (const part of cut(text)) if (part !== "") out.push({ text: part, special: false })
  }
  flush()
  return out
}
