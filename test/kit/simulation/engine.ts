/** The scripted engine with faults in every operation, and codecs that break. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Codec } from "../../../src/engine/codecs/Codec.ts"
import { EngineError } from "../../../src/engine/EngineError.ts"
import type { ModelSession } from "../../../src/engine/Model.ts"
import { type Death, type EngineLives, mortal } from "./life.ts"
import type { CodecFault, EngineFault, EngineOperation } from "./scenario.ts"
import type { RunSeen, World } from "./world.ts"

/** What a session's engine and codec have to know: which run they work for, and whether the engine is still there. */
export interface SessionState {
  readonly id: string
  readonly lives: EngineLives
  current: RunSeen | undefined
  lost: boolean
}

const isDeath = (kind: EngineFault["kind"]): kind is Death => kind === "restarted" || kind === "reopened"

const slowMillis = 250

const gone = new EngineError({ reason: "lost", message: "the engine is gone" })

/** A session whose n-th operations go wrong, and whose engine dies now and then. Once lost, it stays lost. */
export const faulty = (
  world: World,
  state: SessionState,
  faults: ReadonlyArray<EngineFault>,
  inner: ModelSession
): ModelSession => {
  const spared = () => state.current?.probe === true || state.lost
  const session = mortal(state.lives, inner, (on) => {
    const deaths = spared() ? [] : faults.filter((fault) => fault.on === on && isDeath(fault.kind))
    return world.fault(`${state.id}.life.${on}`, deaths)?.kind as Death | undefined
  })
  const guard = <A>(on: EngineOperation, effect: Effect.Effect<A, EngineError>): Effect.Effect<A, EngineError> =>
    Effect.suspend(() => {
      if (state.lost) return Effect.fail(gone)
      const own = spared() ? [] : faults.filter((fault) => fault.on === on && !isDeath(fault.kind))
      const fault = world.fault(`${state.id}.${on}`, own)
      switch (fault?.kind) {
        case undefined:
        case "restarted":
        case "reopened":
          return effect
        case "slow":
          return Effect.andThen(Effect.sleep(slowMillis), effect)
        case "hang":
          return Effect.never
        case "lost":
          state.lost = true
          return Effect.fail(gone)
        case "failed":
          return Effect.fail(new EngineError({ reason: "failed", message: `${on} failed` }))
        case "defect":
          if (state.current !== undefined) state.current.defects++
          return Effect.die(new Error(`${on} broke`))
      }
    })
  return {
    ...session,
    commit: (segments) => guard("commit", session.commit(segments)),
    turn: (opening, request) =>
      state.lost
        ? Stream.fail(gone)
        : session.turn(opening, request).pipe(
            Stream.tapCause((cause) =>
              Effect.sync(() => {
                for (const reason of cause.reasons) {
                  if (reason._tag === "Fail" && reason.error.reason === "lost") state.lost = true
                  if (reason._tag === "Die" && state.current !== undefined) state.current.defects++
                }
              })
            )
          ),
    keep: (closing) => guard("keep", session.keep(closing)),
    rollback: guard("rollback", session.rollback),
    rewind: (length) => guard("rewind", session.rewind(length)),
    measure: (segments) => guard("measure", session.measure(segments))
  }
}

/** A codec that throws the n-th time it is asked for something. */
export const breaking = (world: World, state: SessionState, fault: CodecFault | undefined, codec: Codec): Codec => {
  if (fault === undefined) return codec
  const check = (kind: CodecFault["kind"]): void => {
    if (kind !== fault.kind || state.current?.probe === true || world.fault(`${state.id}.codec`, [fault]) === undefined)
      return
    if (state.current !== undefined) state.current.defects++
    throw new Error(`the codec broke in ${kind}`)
  }
  return {
    ...codec,
    user: (content) => {
      check("user")
      return codec.user(content)
    },
    answers: (list) => {
      check("answers")
      return codec.answers(list)
    },
    opening: (options) => {
      check("opening")
      return codec.opening(options)
    },
    parser: (options) => {
      check("parser")
      const parser = codec.parser(options)
      return {
        push: (text, tokens) => {
          check("push")
          return parser.push(text, tokens)
        },
        end: (reason) => parser.end(reason)
      }
    }
  }
}
