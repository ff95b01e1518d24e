/**
 * An engine without a model: what it writes comes from somebody else, turn by turn, through the same seam. It lets a program
 * that is not a model make calls that pass every gate a model's calls pass, on one record.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { badRequest } from "./EngineError.ts"
import { sizeOf, tokensIn, unknownIds } from "./Estimate.ts"
import { Model, type ModelSession } from "./Model.ts"

export interface Peer {
  /** Who it is, for the record. */
  readonly name: string
  /** The text of the next turn, whenever it comes; interrupted when the run stops. */
  readonly next: Effect.Effect<string>
  /** Called when something was put before the peer: answers above all. */
  readonly heard: () => void
}

/** Nobody has to keep it in mind, so there is room for everything. */
const contextTokens = 2 ** 50

const session = (peer: Peer): ModelSession => {
  let length = 0
  let turn: number | undefined
  let boundaries = [0]
  const grow = (by: number) => {
    const start = length
    length += by
    boundaries.push(length)
    return { start, end: length }
  }
  return {
    commit: (segments) =>
      Effect.sync(() => {
        const span = grow(sizeOf(segments))
        peer.heard()
        return span
      }),
    turn: (opening) =>
      Stream.fromEffect(peer.next).pipe(
        Stream.flatMap((text) => {
          const [prefillTokens, outputTokens] = [sizeOf(opening), tokensIn(text)]
          turn = prefillTokens + outputTokens
          const usage = { prefillTokens, outputTokens, prefillMillis: 0, decodeMillis: 0 }
          const tokens = unknownIds(outputTokens)
          return Stream.make({ _tag: "Piece", text, tokens } as const, { _tag: "End", reason: "eog", usage } as const)
        })
      ),
    keep: (closing) =>
      Effect.suspend(() => {
        if (turn === undefined) {
          return Effect.fail(badRequest("There is no finished turn to keep."))
        }
        const span = grow(turn + sizeOf(closing))
        turn = undefined
        return Effect.succeed(span)
      }),
    rollback: Effect.sync(() => {
      turn = undefined
    }),
    rewind: (to) =>
      Effect.suspend(() => {
        turn = undefined
        if (!boundaries.includes(to)) {
          return Effect.fail(badRequest(`The log has no boundary at token ${to}.`))
        }
        boundaries = boundaries.filter((boundary) => boundary <= to)
        length = to
        return Effect.void
      }),
    length: Effect.sync(() => length),
    measure: (segments) => Effect.succeed(sizeOf(segments))
  }
}

/** The peer as a model. */
export const make = (peer: Peer): Model["Service"] =>
  Model.of({
    // It plays what it is given, as a script does; a replay of its record plays the record.
    identity: { engine: "scripted", name: peer.name, contextTokens },
    tokenize: (segments) => Effect.succeed(unknownIds(sizeOf(segments))),
    session: Effect.sync(() => session(peer))
  })
