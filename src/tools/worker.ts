/**
 * The entry of a tool thread: find the tool by name, check its arguments again, execute, answer. Nothing else lives here.
 * The toolkit is the module named by the thread's first argument; it is loaded before the thread reports for work.
 */
import * as Effect from "effect/Effect"
import { execute, failed } from "./Execution.ts"
import type { JsonObject } from "./JsonText.ts"
import type { Registry } from "./Registry.ts"
import type { ToolOutcome } from "./ToolCall.ts"
import type { ToolSettings } from "./ToolContext.ts"

/** One call on its way into a thread. Plain data. */
export interface WorkerTask {
  readonly tool: string
  /** Hash of the tool that was admitted: the thread must have the same one. */
  readonly hash: string
  /** The raw arguments; the thread does its own check and fills in defaults itself. */
  readonly arguments: JsonObject
  readonly settings: ToolSettings
  readonly maxResultBytes: number
}

// Standard output belongs to the program, in one piece; what a tool prints is a diagnostic.
process.stdout.write = process.stderr.write.bind(process.stderr) as typeof process.stdout.write

const load = async (url: string): Promise<Registry | string> => {
  try {
    const { registry } = await import(url)
    return await Effect.runPromise(registry as Effect.Effect<Registry, Error>)
  } catch (cause) {
    return `the toolkit cannot be loaded: ${cause instanceof Error ? cause.message : String(cause)}`
  }
}

const loaded = await load(process.argv[2] ?? "")

const answer = (task: WorkerTask): Effect.Effect<ToolOutcome> => {
  const notRun = (reason: string): Effect.Effect<ToolOutcome> =>
    Effect.succeed(failed("not_executed", "none", reason, 0))
  if (typeof loaded === "string") return notRun(loaded)
  const tool = loaded.get(task.tool)
  if (tool === undefined || tool.hash !== task.hash)
    return notRun(`the toolkit of the tool threads has no such ${task.tool}`)
  const checked = tool.check(task.arguments)
  return checked._tag === "Success"
    ? execute(tool, checked.success, task)
    : Effect.succeed({ _tag: "Failed", kind: "invalid_arguments", errors: checked.failure, effect: "none", millis: 0 })
}

/** Answers one call. `undefined` asks only whether the thread is up. */
export default (task: WorkerTask | undefined): Promise<ToolOutcome> | undefined =>
  task === undefined ? undefined : Effect.runPromise(answer(task))
