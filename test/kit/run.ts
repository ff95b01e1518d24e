/** Runs scripts through the whole loop and returns what they came to: outcome, trace, what was really performed. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Agent from "../../src/effects/Agent.ts"
import type { AgentEvent } from "../../src/effects/AgentEvent.ts"
import type { RunOptions } from "../../src/effects/Run.ts"
import type { Script } from "../../src/engine/ScriptedModel.ts"
import { layerScripted, MemoryTraces, ScriptedSessions } from "../../src/testing.ts"
import { lines } from "./script.ts"
import * as TestTools from "./tools.ts"

export interface KitOptions extends RunOptions {
  readonly codec?: string
  readonly script?: Omit<Script, "turns">
  readonly task?: string
}

/** Runs `turns` to the end. */
export const play = (turns: Script["turns"], options: KitOptions = {}) =>
  Effect.gen(function* () {
    const { performed, registry } = yield* TestTools.make()
    const outcome = yield* Agent.run({
      task: options.task ?? "the task",
      tools: registry,
      system: "S",
      trace: { content: true },
      ...options
    })
    const text = (yield* MemoryTraces).text(outcome.runId)
    const context = (yield* ScriptedSessions).map((log) => log.committed())
    return { outcome, performed, text, events: lines(text), context: context.join("") }
  }).pipe(Effect.provide(layerScripted({ ...options.script, turns })))

/** Runs `turns`, cancels when `when` sees the event it waits for (after `afterwards`, which may move the clock), and waits. */
export const playUntil = (
  turns: Script["turns"],
  when: (event: AgentEvent) => boolean,
  options: KitOptions & { readonly afterwards?: Effect.Effect<void> } = {}
) =>
  Effect.gen(function* () {
    const { performed, registry } = yield* TestTools.make()
    const handle = yield* Agent.start({
      task: "the task",
      tools: registry,
      system: "S",
      trace: { content: true },
      ...options
    })
    const seen: Array<AgentEvent> = []
    yield* Stream.runForEachWhile(handle.events, (event) =>
      Effect.sync(() => {
        seen.push(event)
        return !when(event)
      })
    )
    if (options.afterwards !== undefined) yield* options.afterwards
    yield* handle.cancel
    const outcome = yield* handle.outcome
    const text = (yield* MemoryTraces).text(outcome.runId)
    const context = (yield* ScriptedSessions).map((log) => log.committed())
    return { outcome, performed, text, events: lines(text), seen, context: context.join("") }
  }).pipe(Effect.provide(layerScripted({ ...options.script, turns })))
