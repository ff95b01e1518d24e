/** Runs that are routed, that talk, ask and are answered, on scripts. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Agent from "../../src/effects/Agent.ts"
import * as Router from "../../src/effects/Router.ts"
import type { RunOptions } from "../../src/effects/Run.ts"
import type { TurnRequest } from "../../src/engine/Generation.ts"
import { Model } from "../../src/engine/Model.ts"
import { flatten } from "../../src/engine/Prompt.ts"
import type { Script } from "../../src/engine/ScriptedModel.ts"
import { layerScripted, MemoryTraces, ScriptedSessions } from "../../src/testing.ts"
import { lines } from "./script.ts"
import * as TestTools from "./tools.ts"

const content = { trace: { content: true } } as const

/** What a turn was asked for: how it opens, and the rest. */
export interface AskedTurn {
  readonly opening: string
  readonly request: TurnRequest
}

/** The engine, with somebody beside it who writes down what it is asked for. */
export const spying = (asked: Array<AskedTurn>): Layer.Layer<Model, never, Model> =>
  Layer.effect(
    Model,
    Effect.map(Model, (model) => ({
      ...model,
      session: Effect.map(model.session, (real) => ({
        ...real,
        turn: (...[opening, request]: Parameters<typeof real.turn>) => {
          asked.push({ opening: flatten(opening), request })
          return real.turn(opening, request)
        }
      }))
    }))
  )

/** A routed run, to its end. `contexts`: what each session held in the end, in the order in which they were opened. */
export const routed = (
  turns: Script["turns"],
  options: Partial<Router.RoutedOptions> = {},
  script: Omit<Script, "turns"> = {}
) =>
  Effect.gen(function* () {
    const asked: Array<AskedTurn> = []
    const engine = Layer.provideMerge(spying(asked), layerScripted({ ...script, turns }))
    const ran = routedWith(options)
    return { ...(yield* Effect.provide(ran, engine)), asked }
  })

const routedWith = (options: Partial<Router.RoutedOptions>) =>
  Effect.gen(function* () {
    const { performed, registry } = yield* TestTools.make()
    const outcome = yield* Router.run({ task: "the task", tools: registry, system: "S", ...content, ...options })
    const text = (yield* MemoryTraces).text(outcome.runId)
    const contexts = (yield* ScriptedSessions).map((log) => log.committed())
    return { outcome, performed, text, events: lines(text), contexts }
  })

/** A task, and then an answer to what it asked, in one session. */
export const answered = (turns: Script["turns"], said: string, options: RunOptions = {}) =>
  Effect.gen(function* () {
    const { performed, registry } = yield* TestTools.make()
    const session = yield* Agent.session({ tools: registry, system: "S" })
    const first = yield* Agent.runIn(session, "the task", { ...content, ...options })
    const second = yield* Agent.answer(session, said, { ...content, ...options })
    const memory = yield* MemoryTraces
    const texts = [memory.text(first.runId), memory.text(second.runId)] as const
    const context = (yield* ScriptedSessions)[0]!.committed()
    return { first, second, performed, texts, events: texts.map(lines), context, session }
  }).pipe(Effect.scoped, Effect.provide(layerScripted({ turns })))
