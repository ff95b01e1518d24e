/**
 * Where a session stands while a request has it, and how it is left: behind the answer, where the client will send back just
 * what the session holds; else before it. So a session never holds what no request said.
 */
import * as Effect from "effect/Effect"
import type { AssistantTurn } from "../../engine/codecs/Codec.ts"
import type { EngineError } from "../../engine/EngineError.ts"
import { assistant, keyOf } from "../ai/AiConversation.ts"
import type { Warm } from "../ai/WarmSessions.ts"
import type { InvalidOptions } from "../Run.ts"
import type { Session } from "../RunContext.ts"
import { type Boundary, rewind } from "../Session.ts"
import type { ChatPlan } from "./ChatPlan.ts"

/** Where a session was before the last thing it was told, for a request that is made again. */
const beforeLast = new WeakMap<Session, Boundary>()

/** The session's present place, in the middle of a run, too. */
const placeOf = (session: Session): Effect.Effect<Boundary> =>
  Effect.map(session.context.length, (length) => ({
    session,
    length,
    mark: session.transcript.mark(),
    opened: session.opened,
    owed: undefined
  }))

/** The place before its last `count` entries. */
const placeBefore = (session: Session, count: number): Boundary | undefined => {
  const { entries } = session.transcript
  const first = entries[entries.length - count]
  if (first?.span === undefined || entries.length === count) return undefined
  const mark = { ...session.transcript.mark(), entries: entries.slice(0, -count) }
  return { session, length: first.span.start, mark, opened: true, owed: undefined }
}

export class Seat {
  readonly #warm: Warm
  readonly #plan: ChatPlan
  readonly #start: Boundary
  readonly #startKeys: ReadonlyArray<string>
  #asked: Boundary | undefined
  #before: Boundary | undefined
  #said: Boundary | undefined
  #turns = 0

  constructor(warm: Warm, plan: ChatPlan, start: Boundary) {
    this.#warm = warm
    this.#plan = plan
    this.#start = start
    this.#startKeys = warm.keys
  }

  /** The first turn is about to be generated: all that was asked is in the context. */
  readonly ready = (session: Session, pending: number): Effect.Effect<void> =>
    this.#asked !== undefined
      ? Effect.void
      : Effect.map(placeOf(session), (place) => {
          this.#asked = place
          this.#before = placeBefore(session, pending)
        })

  /** A turn was generated. */
  readonly spoke = (session: Session): Effect.Effect<void> =>
    Effect.map(placeOf(session), (place) => {
      this.#turns += 1
      this.#said = place
    })

  /** The last turn as the client was told it; absent: it was told something else than the model has said. */
  told: AssistantTurn | undefined

  readonly #target = (): { readonly to: Boundary; readonly keys: ReadonlyArray<string> } => {
    const { keys } = this.#plan
    if (this.#asked === undefined) return { to: this.#start, keys: this.#startKeys }
    if (this.told === undefined || this.#turns !== 1 || this.#said === undefined) return { to: this.#asked, keys }
    return { to: this.#said, keys: [...keys, keyOf({ kind: "assistant", turn: this.told })] }
  }

  /** Leaves the session where it can be gone on from. One that cannot be brought there is given up by whoever lent it. */
  readonly leave: Effect.Effect<void> = Effect.suspend(() => {
    const { keys, to } = this.#target()
    const { session } = this.#warm
    const back: Effect.Effect<void, EngineError | InvalidOptions> = Effect.flatMap(session.context.length, (length) =>
      length === to.length && session.owed === undefined && session.asked === undefined && !session.turnLeft
        ? Effect.void
        : rewind(session, to)
    )
    return Effect.matchEffect(back, {
      onFailure: () => Effect.sync(() => void (this.#warm.length = -1)),
      onSuccess: () =>
        Effect.sync(() => {
          this.#warm.keys = keys
          this.#warm.length = to.length
          if (this.#before !== undefined && keys.length === this.#plan.keys.length)
            beforeLast.set(session, this.#before)
          else beforeLast.delete(session)
        })
    })
  })
}

/** Takes a seat. A session that holds the whole of the request goes back to before its last part, which is then asked anew. */
export const take = Effect.fnUntraced(function* (
  warm: Warm,
  plan: ChatPlan
): Effect.fn.Return<Seat, EngineError | InvalidOptions> {
  const { session } = warm
  if (warm.keys.length === plan.keys.length) {
    const before = beforeLast.get(session)
    // Without a way back the session is of no use for this request: it counts as holding nothing.
    yield* rewind(session, before ?? { session, length: 0, mark: emptyMark, opened: false, owed: undefined })
    warm.keys = before === undefined ? [] : warm.keys.slice(0, -1)
    warm.length = before?.length ?? 0
  }
  return new Seat(warm, plan, yield* placeOf(session))
})

const emptyMark = { entries: [], dropped: [], aside: [] }

/** A turn of the model, if the client will send it back as it is. */
export const plainTurn = ({ transcript }: Session): AssistantTurn | undefined => {
  const entry = transcript.entries.findLast(({ kind }) => kind === "assistant")
  if (entry?.kind !== "assistant" || entry.reasoning !== undefined || entry.contentAfter !== undefined) return undefined
  return entry.turn === "final" || entry.turn === "calls" ? assistant(entry.content, "", entry.calls) : undefined
}

/** What the last turn says, calls aside. */
export const proseIn = ({ transcript }: Session): string => {
  const entry = transcript.entries.findLast(({ kind }) => kind === "assistant")
  return entry?.kind === "assistant" ? entry.content : ""
}
