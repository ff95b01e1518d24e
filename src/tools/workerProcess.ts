/**
 * The entry of a tool process: calls arrive on standard input, replies leave on descriptor 3, one call at a time. When
 * standard input ends, whoever started this process is gone, and so is everything here, what tools have started included.
 */
import { writeFileSync } from "node:fs"
import { enableCompileCache } from "node:module"
import { Socket } from "node:net"
import { Worker } from "node:worker_threads"
import type { Json } from "./JsonText.ts"
import type { WorkerTask } from "./WorkerAnswer.ts"

// Compiled code of the program's cache, where it has one.
const [, , toolkit = "", cache] = process.argv
if (cache !== undefined) enableCompileCache(cache)
const { answer, load, prepare } = await import("./WorkerAnswer.ts")
const { encodeFrame, encodeReply, FrameReader } = await import("./WorkerFrame.ts")

/** Most bytes a call may have. It comes from the program, so this only ends what went wrong. */
const maxCallBytes = 256 * 1024 * 1024

prepare()

// On Linux: if memory runs out, this process is the one to go.
try {
  writeFileSync("/proc/self/oom_score_adj", "1000")
} catch {
  // Elsewhere the system decides.
}

/** It leads a group of its own, except where there are none. */
const end = (): void => {
  try {
    if (process.platform !== "win32") process.kill(-process.pid, "SIGKILL")
  } finally {
    process.exit()
  }
}

// A tool that computes for ever would not hear that standard input has ended. This thread does, on descriptor 4.
const guard = `const { Socket } = require("node:net")
const end = () => {
  try { process.kill(${process.platform === "win32" ? "" : "-"}${process.pid}, "SIGKILL") } catch { process.kill(${process.pid}, "SIGKILL") }
}
new Socket({ fd: 4, readable: true }).on("end", end).on("error", end).resume()`
new Worker(guard, { eval: true, env: {}, resourceLimits: { maxOldGenerationSizeMb: 16 } })
  .on("error", (error) => process.stderr.write(`a tool process runs unguarded: ${error.message}\n`))
  .unref()

const loaded = await load(toolkit)
const replies = new Socket({ fd: 3, readable: false, writable: true })
replies.on("error", end)
const reader = new FrameReader(maxCallBytes)

const take = (piece: Buffer): void => {
  for (const { json } of reader.push(piece)) {
    const { id, task } = json as unknown as { readonly id: number; readonly task: WorkerTask }
    void answer(loaded, task).then((reply) => replies.write(encodeReply(id, reply)))
  }
}

process.stdin.on("data", (piece: Buffer) => {
  try {
    take(piece)
  } catch (cause) {
    process.stderr.write(`a tool process was sent something else than a call: ${String(cause)}\n`)
    end()
  }
})
process.stdin.on("end", end)
process.stdin.on("error", end)

const hello: Json = { hello: process.pid }
replies.write(encodeFrame(hello))
