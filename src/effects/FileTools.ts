/**
 * The tools of a directory in a run. Their calls are processes of their own, which are started and ended here, beside the pool of
 * threads: a thread that is terminated could not end what it started.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import { noTimeLeft, startDetachable } from "../actors/Detachment.ts"
import type { ToolPool } from "../actors/ToolPool.ts"
import { ToolPoolQueue } from "../actors/ToolPoolQueue.ts"
import type { RunCall } from "../actors/ToolPoolRunner.ts"
import { execute } from "../tools/Execution.ts"
import { type FileProblem, problemText } from "../tools/files/ToolFileForm.ts"
import { load } from "../tools/files/ToolFiles.ts"
import * as Registry from "../tools/Registry.ts"
import { takingCalls } from "./OwnCalls.ts"

export interface FileTools {
  readonly registry: Registry.Registry
  /** What is wrong in the files. A tool with a problem is not in the registry. */
  readonly problems: ReadonlyArray<FileProblem>
  /** Names of those that work in the workspace of a run, or say that they touch something there. */
  readonly inWorkspace: ReadonlySet<string>
  /** The services of a run, whose pool takes the other tools, with processes for these. */
  readonly layer: <A, E, R>(services: Layer.Layer<A | ToolPool, E, R>) => Layer.Layer<A | ToolPool, E, R>
}

/** Processes at a time. Whoever waits for a turn has not begun, and its deadline has not either. */
const mostProcesses = 8

const routed = (registry: Registry.Registry): Layer.Layer<ToolPool, never, ToolPool> =>
  takingCalls((owner) => {
    const queue = new ToolPoolQueue(mostProcesses)
    for (let place = 0; place < mostProcesses; place++) queue.add()
    const own: RunCall = (call, late) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const { arguments: args, deadlineMillis, detached, ready, settings, tool } = call
          const claim = { run: call.runId ?? "", tool: tool.name }
          const returned = Effect.sync(() => queue.give(claim))
          const waited = yield* queue.take(claim, restore)
          const objection =
            waited && ready !== undefined ? yield* Effect.onError(restore(ready), () => returned) : undefined
          if (objection !== undefined) return yield* Effect.as(returned, objection)
          // A process has its place until it has ended, whenever its caller went on.
          const work = Effect.ensuring(execute(tool, args, { settings }), returned)
          // No grace: at the deadline the process is asked to end, and ended two seconds later if it has not.
          const options = { contract: tool.contract, deadlineMillis, graceMillis: 0, owner, late, detached }
          return yield* startDetachable(work, options, restore)
        })
      )
    return (call, late) => {
      // By hash: a tool of another origin that has the name is not one of these.
      if (registry.get(call.tool.name)?.hash !== call.tool.hash) return undefined
      if (call.deadlineMillis <= 0) return Effect.succeed(noTimeLeft)
      return own(call, late)
    }
  })

export interface OpenOptions {
  /** Variables that all of them see, besides those that each one names. */
  readonly env?: Readonly<Record<string, string>>
}

/** Reads the tools of `directory`. The layer can be made as often as there are runs. */
export const open = Effect.fnUntraced(function* (
  directory: string,
  options: OpenOptions = {}
): Effect.fn.Return<FileTools, Registry.RegistrationError, ChildProcessSpawner> {
  const { problems, tools } = yield* load(directory, options.env)
  const registry = yield* Registry.make(tools.map(({ registered }) => registered))
  const inWorkspace = new Set(tools.filter((tool) => tool.inWorkspace).map(({ registered: { name } }) => name))
  return { registry, problems, inWorkspace, layer: (services) => Layer.provideMerge(routed(registry), services) }
})

/** One line per problem. */
export const problemsText = (problems: ReadonlyArray<FileProblem>): string => problems.map(problemText).join("\n")
