/** A scripted model under `LlamaLanguageModel`, with everything that was put before it, segment by segment. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as LlamaLanguageModel from "../../src/effects/ai/LlamaLanguageModel.ts"
import type { TurnRequest } from "../../src/engine/Generation.ts"
import { Model } from "../../src/engine/Model.ts"
import type { Segment } from "../../src/engine/Prompt.ts"
import * as ScriptedModel from "../../src/engine/ScriptedModel.ts"

export interface Put {
  readonly kind: "commit" | "turn" | "keep"
  /** Which session, from 0. */
  readonly session: number
  readonly segments: ReadonlyArray<Segment>
  readonly request?: TurnRequest
}

export class Puts extends Context.Service<Puts, Array<Put>>()("effect-writ/test/Puts") {}

const recorded = Layer.effect(
  Model,
  Effect.gen(function* () {
    const inner = yield* Model
    const puts = yield* Puts
    let opened = 0
    return Model.of({
      ...inner,
      session: Effect.map(inner.session, (session) => {
        const number = opened++
        return {
          ...session,
          commit: (segments, progress) => {
            puts.push({ kind: "commit", session: number, segments })
            return session.commit(segments, progress)
          },
          turn: (opening, request) =>
            Stream.suspend(() => {
              puts.push({ kind: "turn", session: number, segments: opening, request })
              return session.turn(opening, request)
            }),
          keep: (closing) => {
            puts.push({ kind: "keep", session: number, segments: closing })
            return session.keep(closing)
          }
        }
      })
    })
  })
)

/** The language model over a script, `Puts`, and the sessions' logs. */
export const scripted = (script: ScriptedModel.Script, options?: LlamaLanguageModel.LlamaLanguageModelOptions) => {
  const engine = ScriptedModel.layer(script)
  const puts = Layer.sync(Puts, () => [])
  return LlamaLanguageModel.layer(options).pipe(Layer.provide(recorded), Layer.provideMerge(Layer.merge(engine, puts)))
}
