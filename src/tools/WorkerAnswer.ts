/**
 * What a tool thread and a tool process have in common: load the toolkit, find the tool by name, check its arguments again,
 * execute, answer. An error that nobody caught is told apart by the call it comes from. How calls arrive is not known here.
 */
import { AsyncLocalStorage } from "node:async_hooks"
import * as Effect from "effect/Effect"
import { crashReason, execute, failed, unseenEffect } from "./Execution.ts"
import type { JsonObject } from "./JsonText.ts"
import type { RegisteredTool, Registry } from "./Registry.ts"
import type { ToolOutcome } from "./ToolCall.ts"
import type { ToolSettings } from "./ToolContext.ts"

/** One call on its way to where it is executed. Plain data. */
export interface WorkerTask {
  readonly tool: string
  /** Hash of the tool that was admitted: the other side must have the same one. */
  readonly hash: string
  /** The raw arguments; the other side does its own check and fills in defaults itself. */
  readonly arguments: JsonObject
  readonly settings: ToolSettings
  readonly maxResultBytes: number
}

/** Its outcome. `spent`: a tool left something here that no other call should meet. */
export interface WorkerReply {
  readonly outcome: ToolOutcome
  readonly spent?: true
}

/** Most bytes one call may print; the rest is dropped. */
const maxPrintedBytes = 64 * 1024

/** One call under way. */
interface Ongoing {
  readonly name: string
  printed: number
  /** Ends the call with an error nobody caught. */
  fail: ((error: unknown) => void) | undefined
}

const ongoing = new AsyncLocalStorage<Ongoing>()
let spent = false

/** Errors that reach nobody: of this call, they end it; of an earlier one, they end nothing but the trust in this place. */
const heardOf = (error: unknown): void => {
  spent = true
  const owner = ongoing.getStore()
  if (owner?.fail !== undefined) owner.fail(error)
  else process.stderr.write(`${owner?.name ?? "a tool"} left work behind that failed: ${crashReason(error)}\n`)
}

/** What every call relies on, and any tool can replace. */
const commons = (): ReadonlyArray<unknown> => [
  JSON.parse,
  JSON.stringify,
  Promise.prototype.then,
  Array.prototype[Symbol.iterator],
  Reflect.ownKeys(Object.prototype).length,
  Reflect.ownKeys(Array.prototype).length,
  process.listeners("uncaughtException").includes(heardOf),
  process.listeners("unhandledRejection").includes(heardOf)
]

const same = (one: ReadonlyArray<unknown>, other: ReadonlyArray<unknown>): boolean =>
  one.every((value, index) => value === other[index])

type Write = typeof process.stderr.write

/** What a tool prints is a diagnostic: it goes to standard error, and there is not much of it. */
const bounded =
  (write: Write): Write =>
  (chunk: string | Uint8Array, encodingOrDone?: unknown, done?: unknown): boolean => {
    const owner = ongoing.getStore()
    const size = typeof chunk === "string" ? Buffer.byteLength(chunk) : chunk.byteLength
    const before = owner?.printed ?? 0
    if (owner !== undefined) owner.printed += size
    if (before + size <= maxPrintedBytes) return write(chunk, encodingOrDone as never, done as never)
    if (before <= maxPrintedBytes) write(`[${owner?.name ?? "a tool"} printed more than is shown]\n`)
    const tell = typeof encodingOrDone === "function" ? encodingOrDone : done
    if (typeof tell === "function") queueMicrotask(() => tell())
    return true
  }

/** To be called once, before any code of a tool is loaded. Standard output belongs to the program, in one piece. */
export const prepare = (): void => {
  const write = bounded(process.stderr.write.bind(process.stderr) as Write)
  process.stdout.write = write
  process.stderr.write = write
  process.on("uncaughtException", heardOf)
  process.on("unhandledRejection", heardOf)
}

/** The toolkit of a module, or why there is none. */
export const load = async (url: string): Promise<Registry | string> => {
  try {
    const { registry } = await import(url)
    return await Effect.runPromise(registry as Effect.Effect<Registry, Error>)
  } catch (cause) {
    return `the toolkit cannot be loaded: ${cause instanceof Error ? cause.message : String(cause)}`
  }
}

const notRun = (reason: string): ToolOutcome => failed("not_executed", "none", reason, 0)

/** Runs one call. Never rejects. */
export const answer = async (loaded: Registry | string, task: WorkerTask): Promise<WorkerReply> => {
  if (typeof loaded === "string") return { outcome: notRun(loaded) }
  const tool = loaded.get(task.tool)
  if (tool === undefined) return { outcome: notRun(`the toolkit of the tool threads has no ${task.tool}`) }
  if (tool.hash !== task.hash) {
    const reason = `the ${task.tool} of the tool threads has another schema or contract than the one that was advertised`
    return { outcome: failed("stale_contract", "none", reason, 0) }
  }
  const before = commons()
  const outcome = await outcomeOf(tool, task)
  if (!same(before, commons())) spent = true
  return spent ? { outcome, spent } : { outcome }
}

const outcomeOf = (tool: RegisteredTool, task: WorkerTask): Promise<ToolOutcome> => {
  const checked = tool.check(task.arguments)
  if (checked._tag === "Failure") {
    const errors = checked.failure
    return Promise.resolve({ _tag: "Failed", kind: "invalid_arguments", errors, effect: "none", millis: 0 })
  }
  const call: Ongoing = { name: tool.name, printed: 0, fail: undefined }
  const start = performance.now()
  return ongoing.run(call, () =>
    new Promise<ToolOutcome>((resolve) => {
      const crash = (error: unknown): void =>
        resolve(failed("crashed", unseenEffect(tool.contract), crashReason(error), performance.now() - start))
      call.fail = crash
      Effect.runPromise(execute(tool, checked.success, task)).then(resolve, crash)
    }).finally(() => {
      call.fail = undefined
    })
  )
}
