/**
 * The entry of a tool thread. The toolkit is the module named by the thread's first argument; it is loaded before the thread
 * reports for work. What the thread shares with the program around it is kept out of a tool's reach where Node lets us.
 */
import { enableCompileCache } from "node:module"
import { parentPort, threadId } from "node:worker_threads"
import type { WorkerReply, WorkerTask } from "./WorkerAnswer.ts"

/** A reply from a thread that must not be used again says which one it is. */
export interface ThreadReply extends WorkerReply {
  readonly threadId?: number
}

// Compiled code of the program's cache, where it has one: most of a thread's start is compiling the same files again.
const [, , toolkit = "", cache] = process.argv
if (cache !== undefined) enableCompileCache(cache)
const { answer, load, prepare } = await import("./WorkerAnswer.ts")

prepare()

const kill = process.kill.bind(process)
process.kill = (pid, signal) => {
  // Signals go to processes, not to threads: this one would end the program and everybody's work in it.
  if (pid === process.pid || pid <= 0) throw new Error("a tool may not signal the process it runs in")
  return kill(pid, signal)
}

const loaded = await load(toolkit)

/** Answers one call. `undefined` asks only whether the thread is up. */
export default async (task: WorkerTask | undefined): Promise<ThreadReply | undefined> => {
  // The pool has heard by now that the thread is up, and talks through a port of its own: nobody should fill this one.
  parentPort?.close()
  if (task === undefined) return undefined
  const reply = await answer(loaded, task)
  return reply.spent === undefined ? reply : { ...reply, threadId }
}
