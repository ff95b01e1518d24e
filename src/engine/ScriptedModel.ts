/**
 * An engine that plays raw model text through the real codec: no thread, no clock of its own, the same each time.
 * A script says what the model writes, where its tokens end, how long they take and what goes wrong.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { badRequest, EngineError, type EngineReason } from "./EngineError.ts"
import type { EndReason, GenerationEvent, TurnRequest } from "./Generation.ts"
import { Model, type ModelIdentity, type ModelSession, type Recovery } from "./Model.ts"
import type { Segment, Span } from "./Prompt.ts"
import { type Scene, withBudget } from "./ScriptedThinking.ts"

/** What goes wrong, and before which token of the turn (0: before the first). */
export interface ScriptedFault {
  readonly before: number
  /** `hang` never answers, `defect` throws, anything else fails with that reason. */
  readonly kind: EngineReason | "hang" | "defect"
}

export interface ScriptedTurn {
  /** What the model writes once its reasoning was closed for it. Absent: the text behind the reasoning's own end. */
  readonly onceClosed?: string
  /** Raw model text, without the end-of-turn token. An array says where the tokens end. */
  readonly text: string | ReadonlyArray<string>
  /** How the turn ends if `maxTokens` does not end it first. Default `eog`. */
  readonly stop?: EndReason
  /** Milliseconds before each token. Default 0: the whole turn arrives at once. */
  readonly millisPerToken?: number
  /** Milliseconds before the first token, spent in prefill. */
  readonly prefillMillis?: number
  readonly fault?: ScriptedFault
}

export interface Script {
  readonly turns: ReadonlyArray<ScriptedTurn | string>
  /** What comes after the last turn, by its number from 0. Without it the script is over then. */
  readonly further?: (index: number) => ScriptedTurn
  /** How many turns were played before, by a script of which this is the rest: they count in numbers. */
  readonly playedBefore?: number
  /** Default 1,048,576. One token is up to four UTF-16 units of text, or what the script says. */
  readonly contextTokens?: number
  readonly name?: string
  readonly template?: string
}

/** Everything a session's log holds, for tests: committed text in order, and nothing that was rolled back. */
export interface ScriptedLog {
  readonly committed: () => string
}

/** How many sessions' logs are kept, newest last: enough for a test, and no leak for a program that opens thousands. */
const rememberedSessions = 64

export class ScriptedSessions extends Context.Service<ScriptedSessions, ReadonlyArray<ScriptedLog>>()(
  "effect-writ/engine/ScriptedSessions"
) {}

const unit = 4

/** Tokens of one segment: up to four UTF-16 units of text each, never across a surrogate pair; control text is one token. */
const pieces = (text: string): ReadonlyArray<string> => {
  const out: Array<string> = []
  for (let at = 0; at < text.length; ) {
    let end = Math.min(text.length, at + unit)
    const last = text.charCodeAt(end - 1)
    if (last >= 0xd800 && last <= 0xdbff && end < text.length) end++
    out.push(text.slice(at, end))
    at = end
  }
  return out
}

const sizeOf = (segments: ReadonlyArray<Segment>): number => {
  let size = 0
  for (const { kind, text } of segments) size += kind === "control" ? 1 : Math.ceil(text.length / unit)
  return size
}

/** Ids are a stand-in: the first UTF-16 unit of the token, or a number above all of them for control text. */
const idsOf = (segments: ReadonlyArray<Segment>): ReadonlyArray<number> =>
  segments.flatMap(({ kind, text }) =>
    kind === "control" ? [0x10000 + text.length] : pieces(text).map((piece) => piece.charCodeAt(0))
  )

interface Turn {
  readonly tokens: number
  readonly text: string
}

/** One scripted sequence. Turns are taken from the script in order, whichever session asks. */
class ScriptedSession {
  readonly #script: Script
  readonly #next: () => ScriptedTurn | undefined
  readonly #capacity: number
  readonly #log: Array<string> = []
  /** Texts in the log at each boundary, by its length. */
  readonly #boundaries = new Map<number, number>([[0, 0]])
  readonly #recoveries: Array<Recovery> = []
  #length = 0
  #turn: Turn | undefined

  constructor(script: Script, next: () => ScriptedTurn | undefined, capacity: number) {
    this.#script = script
    this.#next = next
    this.#capacity = capacity
  }

  readonly committed = (): string => this.#log.join("")

  #append(texts: ReadonlyArray<Segment>, tokens: number): Span {
    const start = this.#length
    for (const segment of texts) this.#log.push(segment.text)
    this.#length += tokens
    this.#boundaries.set(this.#length, this.#log.length)
    return { start, end: this.#length }
  }

  readonly #overflow = (tokens: number): EngineError =>
    new EngineError({
      reason: "context_overflow",
      message: `${tokens} tokens do not fit after ${this.#length} of ${this.#capacity} in the context of ${this.#script.name ?? "the script"}`
    })

  readonly commit = (segments: ReadonlyArray<Segment>): Effect.Effect<Span, EngineError> =>
    Effect.suspend(() => {
      if (this.#turn !== undefined) return Effect.fail(badRequest("a turn is open: keep it or roll it back first"))
      const tokens = sizeOf(segments)
      if (this.#length + tokens > this.#capacity) return Effect.fail(this.#overflow(tokens))
      return Effect.succeed(this.#append(segments, tokens))
    })

  readonly turn = (
    opening: ReadonlyArray<Segment>,
    request: TurnRequest
  ): Stream.Stream<GenerationEvent, EngineError> =>
    Stream.suspend(() => {
      const scripted = this.#next()
      if (scripted === undefined) return Stream.fail(badRequest(overText(this.#script)))
      const continued = this.#turn
      const size = sizeOf(opening)
      if (this.#length + size + request.maxTokens > this.#capacity) {
        return Stream.fail(this.#overflow(size + request.maxTokens))
      }
      const { shown, whole, ...closed } = sceneOf(scripted, request)
      const end = whole ? (scripted.stop ?? "eog") : "length"
      const usage = {
        prefillTokens: size,
        outputTokens: shown.length,
        prefillMillis: scripted.prefillMillis ?? 0,
        decodeMillis: (scripted.millisPerToken ?? 0) * shown.length
      }
      const before = continued ?? { tokens: 0, text: "" }
      const open = opening.map((segment) => segment.text).join("")
      this.#turn = { tokens: before.tokens + size + shown.length, text: before.text + open + shown.join("") }
      return play(scripted, shown, { _tag: "End", reason: end, usage, ...closed }).pipe(
        Stream.onExit((exit) =>
          Effect.sync(() => {
            if (Exit.isSuccess(exit)) return
            this.#turn = undefined
            if (scripted.fault?.kind === "restarted" && !Exit.hasInterrupts(exit)) this.#comeBack()
          })
        )
      )
    })

  /** A script dies only in words: what is left of it is where it was. */
  #comeBack(): void {
    this.#recoveries.push({ cause: "crashed", restarts: this.#recoveries.length + 1, tokens: this.#length })
  }

  readonly keep = (closing: ReadonlyArray<Segment>): Effect.Effect<Span, EngineError> =>
    Effect.suspend(() => {
      const turn = this.#turn
      if (turn === undefined) return Effect.fail(badRequest("there is no finished turn to keep"))
      this.#turn = undefined
      return Effect.succeed(
        this.#append([{ kind: "control", text: turn.text }, ...closing], turn.tokens + sizeOf(closing))
      )
    })

  readonly rollback: Effect.Effect<void> = Effect.sync(() => {
    this.#turn = undefined
  })

  readonly rewind = (length: number): Effect.Effect<void, EngineError> =>
    Effect.suspend(() => {
      this.#turn = undefined
      const texts = this.#boundaries.get(length)
      if (texts === undefined) return Effect.fail(badRequest(`the log has no boundary at token ${length}`))
      for (const later of this.#boundaries.keys()) if (later > length) this.#boundaries.delete(later)
      this.#log.length = texts
      this.#length = length
      return Effect.void
    })

  readonly session = (): ModelSession => ({
    commit: this.commit,
    turn: this.turn,
    keep: this.keep,
    rollback: this.rollback,
    rewind: this.rewind,
    recoveries: () => this.#recoveries,
    length: Effect.sync(() => this.#length),
    measure: (segments) => Effect.succeed(sizeOf(segments))
  })
}

/** What a turn comes to under the limits of a request. */
const sceneOf = (
  scripted: ScriptedTurn,
  { maxTokens, thinking }: TurnRequest
): { readonly shown: ReadonlyArray<string>; readonly whole: boolean; readonly thinkClosed?: number } => {
  const written = typeof scripted.text === "string" ? pieces(scripted.text) : scripted.text
  const scene: Scene =
    thinking === undefined ? { tokens: written } : withBudget(written, thinking, pieces, scripted.onceClosed)
  const { closed, tokens } = scene
  const reached = closed !== undefined && closed.from <= maxTokens
  // What closes the reasoning is written whole, even past the limit.
  const shown = tokens.slice(0, reached ? Math.max(maxTokens, closed.to) : maxTokens)
  return { shown, whole: shown.length === tokens.length, ...(reached ? { thinkClosed: closed.count } : {}) }
}

const overText = ({ playedBefore = 0, turns }: Script): string =>
  `the script has no more turns: this is call ${playedBefore + turns.length}, counting from 0`

const idOf = (piece: string): number => piece.charCodeAt(0)

/** The events of one turn. Without delays and faults all tokens are one piece, so that a test costs what the loop costs. */
const play = (
  turn: ScriptedTurn,
  tokens: ReadonlyArray<string>,
  end: GenerationEvent
): Stream.Stream<GenerationEvent, EngineError> => {
  const timed = turn.millisPerToken !== undefined || turn.prefillMillis !== undefined
  if (!timed && turn.fault === undefined && typeof turn.text === "string") {
    const piece: GenerationEvent = { _tag: "Piece", text: tokens.join(""), tokens: tokens.map(idOf) }
    return Stream.fromArray(tokens.length === 0 ? [end] : [piece, end])
  }
  return Stream.fromIterable([...tokens, undefined]).pipe(
    Stream.mapEffect((text, index) =>
      Effect.gen(function* () {
        const wait =
          (index === 0 ? (turn.prefillMillis ?? 0) : 0) + (text === undefined ? 0 : (turn.millisPerToken ?? 0))
        if (wait > 0) yield* Effect.sleep(wait)
        if (turn.fault !== undefined && turn.fault.before === index) return yield* raise(turn.fault)
        return text === undefined ? end : ({ _tag: "Piece", text, tokens: [idOf(text)] } as const)
      })
    )
  )
}

const raise = ({ kind }: ScriptedFault): Effect.Effect<never, EngineError> => {
  if (kind === "hang") return Effect.never
  if (kind === "defect") return Effect.die(new Error("scripted defect"))
  return Effect.fail(new EngineError({ reason: kind, message: `scripted fault: ${kind}` }))
}

/** The engine and what can be asked about it: the sessions' logs, and how many turns nobody has taken yet. */
export interface Scripted {
  readonly model: Model["Service"]
  readonly logs: ReadonlyArray<ScriptedLog>
  readonly left: () => number
  /** How many turns were taken. */
  readonly played: () => number
}

/** The scripted engine. */
export const make = (script: Script): Scripted => {
  const capacity = script.contextTokens ?? 1_048_576
  const logs: Array<ScriptedLog> = []
  let at = 0
  const next = (): ScriptedTurn | undefined => {
    const turn = script.turns[at] ?? script.further?.(at + (script.playedBefore ?? 0))
    // Who asks past the end is told the same each time.
    if (turn !== undefined) at++
    return typeof turn === "string" ? { text: turn } : turn
  }
  const identity: ModelIdentity = {
    engine: "scripted",
    name: script.name ?? "script",
    contextTokens: capacity,
    ...(script.template === undefined ? {} : { template: script.template })
  }
  const model = Model.of({
    identity,
    tokenize: (segments) => Effect.succeed(idsOf(segments)),
    session: Effect.sync(() => {
      const session = new ScriptedSession(script, next, capacity)
      logs.push({ committed: session.committed })
      if (logs.length > rememberedSessions) logs.shift()
      return session.session()
    })
  })
  return { model, logs, left: () => Math.max(0, script.turns.length - at), played: () => at }
}

/** The scripted engine as `Model`, with the sessions' logs for a test to read. A new layer starts the script anew. */
export const layer = (script: Script): Layer.Layer<Model | ScriptedSessions> =>
  Layer.effectContext(
    Effect.sync(() => {
      const { logs, model } = make(script)
      return Context.empty().pipe(Context.add(Model, model), Context.add(ScriptedSessions, logs))
    })
  )
