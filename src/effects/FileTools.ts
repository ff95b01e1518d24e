/**
 * The tools of a directory in a run. Their calls are processes of their own, which are started and ended here, beside the pool of
 * threads: a thread that is terminated could not end what it started.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Semaphore from "effect/Semaphore"
import { noTimeLeft, runDetachable } from "../actors/Detachment.ts"
import { type AdmittedCall, ToolPool } from "../actors/ToolPool.ts"
import { execute } from "../tools/Execution.ts"
import { type FileProblem, problemText } from "../tools/files/ToolFileForm.ts"
import { load } from "../tools/files/ToolFiles.ts"
import * as Registry from "../tools/Registry.ts"

export interface FileTools {
  readonly registry: Registry.Registry
  /** What is wrong in the files. A tool with a problem is not in the registry. */
  readonly problems: ReadonlyArray<FileProblem>
  /** The services of a run, whose pool takes the other tools, with processes for these. */
  readonly layer: <A, E, R>(services: Layer.Layer<A | ToolPool, E, R>) => Layer.Layer<A | ToolPool, E, R>
}

/** Processes at a time. Whoever waits for a turn has not begun, and its deadline has not either. */
const mostProcesses = 8

const routed = (registry: Registry.Registry): Layer.Layer<ToolPool, never, ToolPool> =>
  Layer.effect(
    ToolPool,
    Effect.gen(function* () {
      const others = yield* ToolPool
      const owner = yield* Effect.scope
      const turns = yield* Semaphore.make(mostProcesses)
      const started = (call: AdmittedCall, late: Parameters<(typeof others)["run"]>[1]) => {
        const { arguments: args, deadlineMillis, settings, tool } = call
        // No grace: at the deadline the process is asked to end, and ended two seconds later if it has not.
        const options = { contract: tool.contract, deadlineMillis, graceMillis: 0, owner, late }
        return runDetachable(execute(tool, args, { settings }), options)
      }
      return ToolPool.of({
        run: (call, late) => {
          // By hash: a tool of another origin that has the name is not one of these.
          if (registry.get(call.tool.name)?.hash !== call.tool.hash) return others.run(call, late)
          if (call.deadlineMillis <= 0) return Effect.succeed(noTimeLeft)
          const { ready = Effect.succeed(undefined) } = call
          const afterWaiting = Effect.flatMap(ready, (outcome) =>
            outcome === undefined ? started(call, late) : Effect.succeed(outcome)
          )
          return Effect.flatMap(turns.withPermitsIfAvailable(1)(started(call, late)), (outcome) =>
            outcome._tag === "Some" ? Effect.succeed(outcome.value) : turns.withPermit(afterWaiting)
          )
        }
      })
    })
  )

/** Reads the tools of `directory`. The layer can be made as often as there are runs. */
export const open = Effect.fnUntraced(function* (
  directory: string
): Effect.fn.Return<FileTools, Registry.RegistrationError, ChildProcessSpawner> {
  const { problems, tools } = yield* load(directory)
  const registry = yield* Registry.make(tools.map(({ registered }) => registered))
  return { registry, problems, layer: (services) => Layer.provideMerge(routed(registry), services) }
})

/** One line per problem. */
export const problemsText = (problems: ReadonlyArray<FileProblem>): string => problems.map(problemText).join("\n")
