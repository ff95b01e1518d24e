/**
 * Tools for a program that is no model. Its calls are turns of a run: schema, scopes, ledger, precondition, governor, approval,
 * intent, effect, postcondition, settlement and record are the loop's own. A run holds many calls; when it ends (an outcome
 * nobody knows, a cancelled call, enough calls) the next call begins another.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { TraceError } from "../actors/TraceWriter.ts"
import type { EngineError } from "../engine/EngineError.ts"
import { Model } from "../engine/Model.ts"
import * as PeerModel from "../engine/PeerModel.ts"
import { isObject, type JsonObject, parse } from "../tools/JsonText.ts"
import type { Registry } from "../tools/Registry.ts"
import type { Answer } from "../tools/ToolCall.ts"
import * as Agent from "./Agent.ts"
import type { InvalidOptions, RunOptions, RunServices } from "./Run.ts"
import type { Stop } from "./State.ts"
import type { Entry } from "./Transcript.ts"

export interface ServingOptions extends RunOptions {
  readonly tools: Registry
  /** Who calls, for the record. */
  readonly caller: string
}

/** A call that cannot even be begun: nothing was done. */
export class ServingError extends Schema.TaggedError<ServingError>()("ServingError", { message: Schema.String }) {}

export interface Serving {
  /** One call to its answer. Interrupting it cancels the call, and the run it is part of. */
  readonly call: (name: string, args: JsonObject) => Effect.Effect<Answer, ServingError>
}

interface Request {
  readonly text: string
  readonly done: Deferred.Deferred<Answer, ServingError>
  /** Nobody waits for it any more. */
  dropped: boolean
}

/** Calls that may wait for their turn. */
const maxWaiting = 64
/** Calls and characters of one run: its history is in memory. */
const maxCalls = 256
const maxCharacters = 32 * 1024 * 1024

/** As the family of the record writes a call. No character of it can be taken for markup. */
const turnOf = (name: string, args: JsonObject): string =>
  `<tool_call>\n${JSON.stringify({ name, arguments: args }).replaceAll("<", "\\u003c")}\n</tool_call>`

const codec = "qwen2.5"

/** The answer at the end of the history, if it is not older than the `known` first entries. */
const lastAnswer = (entries: ReadonlyArray<Entry>, known: number): Answer | undefined => {
  const last = entries.length > known ? entries.at(-1) : undefined
  if (last?.kind !== "tool" && last?.kind !== "feedback") return undefined
  const answer = Result.getOrUndefined(parse(last.content, { maxDepth: 200 }))
  return answer !== undefined && isObject(answer) ? (answer as unknown as Answer) : undefined
}

const unanswered = (stop: Stop): Answer => ({
  ok: false,
  kind: "not_executed",
  errors: [{ path: "", reason: `the run ended before this call was decided about (${stop._tag})` }]
})

/** What one run of the serving has in hand. */
interface Hand {
  current: Request | undefined
  entries: () => ReadonlyArray<Entry>
  /** Entries that were there when the last call was answered. */
  known: number
  calls: number
  characters: number
  cancel: Effect.Effect<void>
}

const newHand = (): Hand => ({
  current: undefined,
  entries: () => [],
  known: 0,
  calls: 0,
  characters: 0,
  cancel: Effect.void
})

const answer = (hand: Hand, otherwise?: Answer): void => {
  const found = lastAnswer(hand.entries(), hand.known) ?? otherwise
  if (hand.current === undefined || found === undefined) return
  hand.known = hand.entries().length
  hand.characters += JSON.stringify(found).length
  Deferred.doneUnsafe(hand.current.done, Effect.succeed(found))
  hand.current = undefined
}

/** Without limits that are about models; a program may ask as often and as much as it likes. */
const optionsOf = ({ caller: _, tools: __, ...options }: ServingOptions): RunOptions => ({
  ...options,
  limits: {
    toolCalls: Infinity,
    wallMillis: Infinity,
    repairs: Infinity,
    loopThreshold: 0,
    resultBytes: 1024 * 1024,
    ...options.limits,
    modelTurns: maxCalls + 1,
    outputTokens: 2 ** 31 - 1
  },
  calls: "single",
  constrained: false
})

interface Desk {
  readonly options: ServingOptions
  /** The next call somebody waits for; nothing when there will be none. */
  readonly take: Effect.Effect<Request | undefined>
  hand: Hand
}

/** What the peer says next: a call, or that it is done. */
const nextOf = (desk: Desk, hand: Hand, first: Request): Effect.Effect<string> =>
  Effect.gen(function* () {
    const full = hand.calls >= maxCalls || hand.characters >= maxCharacters
    const request = hand.calls === 0 ? first : full ? undefined : yield* desk.take
    if (request === undefined) return `${hand.calls} calls were answered.`
    hand.calls++
    hand.characters += request.text.length
    hand.current = request
    return request.text
  })

/** One run, begun by a call. */
const run = Effect.fnUntraced(function* (
  desk: Desk,
  first: Request
): Effect.fn.Return<void, EngineError | InvalidOptions | TraceError, Scope.Scope | RunServices> {
  const { hand, options } = desk
  const model = PeerModel.make({
    name: options.caller,
    next: nextOf(desk, hand, first),
    heard: () => answer(hand)
  })
  const session = yield* Effect.provideService(Agent.session({ tools: options.tools, codec }), Model, model)
  hand.entries = () => session.transcript.entries
  const handle = yield* Agent.startIn(session, "Calls of a program, as they come.", optionsOf(options))
  hand.cancel = handle.cancel
  const { stop } = yield* handle.outcome
  answer(hand, unanswered(stop))
})

/** Run after run, as long as there are calls. */
const serve = Effect.fnUntraced(function* (desk: Desk) {
  for (;;) {
    const first = yield* desk.take
    if (first === undefined) return
    desk.hand = newHand()
    const ended = yield* Effect.exit(Effect.scoped(run(desk, first)))
    if (Exit.isSuccess(ended)) continue
    yield* Effect.logError("a run of the serving failed", ended.cause)
    const message =
      desk.hand.calls === 0
        ? "the call could not be put on record; nothing was executed"
        : "the run failed; what became of the call is in its record"
    yield* Deferred.fail((desk.hand.current ?? first).done, new ServingError({ message }))
  }
})

/** Serves in the caller's scope. When that closes, the call that runs is waited for as long as `closeMillis` says. */
export const open = Effect.fnUntraced(function* (
  options: ServingOptions,
  closeMillis = 5_000
): Effect.fn.Return<Serving, never, Scope.Scope | RunServices> {
  const waiting = yield* Queue.dropping<Request>(maxWaiting)
  const closing = yield* Deferred.make<undefined>()
  const take: Desk["take"] = Effect.raceFirst(Queue.take(waiting), Deferred.await(closing)).pipe(
    Effect.flatMap((request) => (request?.dropped === true ? take : Effect.succeed(request)))
  )
  const desk: Desk = { options, take, hand: newHand() }
  const fiber = yield* Effect.forkScoped(serve(desk))
  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      yield* Deferred.succeed(closing, undefined)
      const ended = yield* Effect.timeoutOption(Fiber.await(fiber), closeMillis)
      if (ended._tag === "None") yield* Effect.andThen(desk.hand.cancel, Fiber.await(fiber))
    })
  )
  return {
    call: Effect.fnUntraced(function* (name, args) {
      const done = yield* Deferred.make<Answer, ServingError>()
      const request: Request = { text: turnOf(name, args), done, dropped: false }
      if (!(yield* Queue.offer(waiting, request))) {
        return yield* new ServingError({ message: `${maxWaiting} calls are waiting already; nothing was executed` })
      }
      const abandon = Effect.suspend(() => {
        request.dropped = true
        return desk.hand.current === request ? desk.hand.cancel : Effect.void
      })
      return yield* Effect.onInterrupt(Deferred.await(done), () => abandon)
    })
  }
})
