/**
 * Where the runs of one session take place: its engine, its tools, its conversation; and the further conversations that a run
 * has which is routed first.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { Ids } from "../../../src/actors/Ids.ts"
import { ToolPool } from "../../../src/actors/ToolPool.ts"
import { asTool } from "../../../src/effects/AgentTool.ts"
import type { Outcome } from "../../../src/effects/Outcome.ts"
import * as Router from "../../../src/effects/Router.ts"
import { type Control, execute, type RunOptions, type RunServices } from "../../../src/effects/Run.ts"
import type { Session } from "../../../src/effects/RunContext.ts"
import { open } from "../../../src/effects/Session.ts"
import type { Codec } from "../../../src/engine/codecs/Codec.ts"
import { Model, type ModelSession } from "../../../src/engine/Model.ts"
import * as ScriptedModel from "../../../src/engine/ScriptedModel.ts"
import * as Registry from "../../../src/tools/Registry.ts"
import { breaking, faulty, type SessionState } from "./engine.ts"
import { codecOf, type EngineFault, type SessionScenario } from "./scenario.ts"
import { registry } from "./tools.ts"
import { type Helper, helperName, secret } from "./turns.ts"
import type { World } from "./world.ts"

/** Text of every task; the secret is in it. */
export const task = `the task of the ${secret}`

export interface Conversation {
  readonly session: Session
  /** It is a chat, in which nobody reasons. */
  readonly talk: boolean
  /** What is in the context, by the engine's own log. */
  readonly committed: () => string
}

export interface Table {
  readonly state: SessionState
  /** The session's own first. */
  readonly conversations: ReadonlyArray<Conversation>
  /** Runs the task: in the session, or in sessions of its own where it is routed. */
  readonly run: (
    route: Router.Route | undefined,
    options: RunOptions,
    control: Control
  ) => Effect.Effect<Outcome, unknown, RunServices | Scope.Scope>
}

/** The scripted engine, its sessions with faults, and what is in each of them. */
const engineOf = Effect.fnUntraced(function* (
  world: World,
  contextTokens: number,
  turns: ScriptedModel.Script["turns"]
) {
  const context = yield* Layer.build(ScriptedModel.layer({ turns, contextTokens }))
  const base = Context.get(context, Model)
  const logs = Context.get(context, ScriptedModel.ScriptedSessions)
  const held = new Map<ModelSession, ScriptedModel.ScriptedLog>()
  const model = (state: SessionState, faults: ReadonlyArray<EngineFault>) =>
    Model.of({
      ...base,
      session: Effect.map(base.session, (inner) => {
        const outer = faulty(world, state, faults, inner)
        const session = world.mutant.engine?.(outer) ?? outer
        held.set(session, logs.at(-1)!)
        return session
      })
    })
  const committed = ({ context: session }: Session) => held.get(session)?.committed() ?? ""
  return { model, committed }
})

const helperTools: Readonly<Record<Helper, ReadonlyArray<string>>> = {
  reading: ["add", "wait", "long"],
  acting: ["add", "save", "send", "wait", "broken"]
}

/** A tool that is a run, and the pool that takes its calls. */
const helperOf = Effect.fnUntraced(function* (world: World, helper: Helper, codec: Codec) {
  const tools = yield* Registry.pick(registry, helperTools[helper])
  const agent = yield* asTool({
    name: helperName,
    description: "Does a task.",
    tools,
    codec,
    limits: { modelTurns: 3, outputTokens: 64, wallMillis: 20_000 }
  })
  const pool = world.poolOver!
  const layer = (base: ToolPool["Service"]) => Layer.provide(agent.layer, Layer.succeed(ToolPool, base))
  const taken = yield* Effect.map(Effect.context<Scope.Scope>(), (context) =>
    pool((base) => Context.get(Effect.runSyncWith(context)(Layer.build(layer(base))), ToolPool))
  )
  return { tools: yield* Registry.merge(registry, agent.registry), pool: taken }
})

const routed = Effect.fnUntraced(function* (
  route: Router.Route,
  { asking, codec, tools }: { readonly asking: Codec; readonly codec: Codec; readonly tools: Registry.Registry },
  options: RunOptions,
  control: Control,
  opened: (session: Session, talk: boolean) => void
) {
  const decided = yield* Router.routedBy({ ...options, task, tools, route, codec: asking })
  const session = yield* open({ tools, codec })
  opened(session, false)
  if (decided.route === "task") return yield* execute(session, task, options, { ...control, routed: decided })
  const chat = yield* open({ tools: Registry.none, system: Router.chatSystem, codec })
  opened(chat, true)
  return yield* execute(session, task, options, { ...control, routed: decided, chat })
})

export const layTable = Effect.fnUntraced(function* (
  world: World,
  id: string,
  scenario: SessionScenario,
  turns: ScriptedModel.Script["turns"]
) {
  const lives = { restarts: 0 }
  const state: SessionState = { id, lives, current: undefined, lost: false }
  const { committed, model } = yield* engineOf(world, scenario.contextTokens, turns)
  const whole = codecOf(scenario.codec)
  const breakable = breaking(world, state, scenario.codecFault, whole)
  const codec = world.mutant.codec?.(breakable) ?? breakable
  const own = model(state, scenario.engine)
  // What goes wrong in a run inside another is not that one's.
  const inside: SessionState = { id: `${id}.inside`, lives, current: undefined, lost: false }
  const helper =
    scenario.helper === undefined
      ? undefined
      : yield* helperOf(world, scenario.helper, world.mutant.codec?.(whole) ?? whole).pipe(
          Effect.provideService(Model, model(inside, scenario.engine)),
          Effect.provideService(Ids, Ids.of({ run: Effect.die(new Error("a run inside another has its name")) }))
        )
  const tools = helper?.tools ?? registry
  const { system } = scenario
  const session = yield* open({ tools, codec, ...(system === undefined ? {} : { system }) }).pipe(
    Effect.provideService(Model, own)
  )
  const conversations: Array<Conversation> = []
  const opened = (session: Session, talk: boolean) =>
    void conversations.push({ session, talk, committed: () => committed(session) })
  opened(session, false)
  // While it is asked where to go there is no record yet that could tell of a defect, and nobody to end a commit that hangs.
  const patient = model(
    state,
    scenario.engine.filter(({ kind }) => kind !== "hang" && kind !== "defect")
  )
  const table: Table = {
    state,
    conversations,
    run: (route, options, control) => {
      const running =
        route === undefined
          ? execute(session, task, options, control)
          : Effect.provideService(
              routed(route, { asking: whole, codec, tools }, options, control, opened),
              Model,
              patient
            )
      return helper === undefined ? running : Effect.provideService(running, ToolPool, helper.pool)
    }
  }
  return table
})
