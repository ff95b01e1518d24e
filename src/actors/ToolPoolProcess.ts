/**
 * One tool process: started, asked one call at a time, ended with everything it started. It speaks when it is spoken to; one
 * that says anything else, or too much, is ended. Callbacks, not effects: who waits, and how long, is `ToolPoolProcesses`'s.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import type { Readable, Writable } from "node:stream"
import { fileURLToPath } from "node:url"
import type { Json } from "../tools/JsonText.ts"
import type { WorkerReply, WorkerTask } from "../tools/WorkerAnswer.ts"
import { decodeReply, encodeFrame, type Frame, FrameReader } from "../tools/WorkerFrame.ts"

export interface ProcessOptions {
  /** The process's entry: `tools/workerProcess`. */
  readonly entry: URL
  /** What the entry is given: the toolkit, and where compiled code is kept. */
  readonly arguments: ReadonlyArray<string>
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>
  readonly heapMb: number
  /** Most bytes one reply may have. */
  readonly maxReplyBytes: number
}

interface Pending {
  readonly id: number
  readonly done: (reply: WorkerReply) => void
  readonly lost: (error: Error) => void
}

const hasGroups = process.platform !== "win32"

export class ToolPoolProcess {
  readonly #child: ChildProcess
  readonly #input: Writable
  readonly #output: Readable
  /** Says nothing: that it is open says that this program is there. */
  readonly #lifeline: Readable
  readonly #reader: FrameReader
  readonly #onUp: () => void
  readonly #onExit = new Set<() => void>()
  #pending: Pending | undefined
  #calls = 0
  #up = false
  #over = false
  #gone = false
  #reason: string | undefined

  /** `onUp` is called once, when it can take calls. Throws where the system has no room for a process. */
  constructor(options: ProcessOptions, onUp: () => void) {
    const { entry, env, heapMb, maxReplyBytes } = options
    this.#reader = new FrameReader(maxReplyBytes)
    this.#onUp = onUp
    const args = [`--max-old-space-size=${heapMb}`, fileURLToPath(entry), ...options.arguments]
    // Standard output belongs to the program; the group is what is ended with it.
    this.#child = spawn(process.execPath, args, { env, stdio: ["pipe", 2, 2, "pipe", "pipe"], detached: hasGroups })
    // Where not even its pipes could be opened there are no streams, and the error is said later, to whoever listens.
    if ((this.#child.stdin ?? null) === null) {
      this.#child.on("error", () => {})
      throw new Error("too many files are open")
    }
    this.#input = this.#child.stdin!
    this.#output = this.#child.stdio[3] as Readable
    this.#lifeline = this.#child.stdio[4] as Readable
    this.#lifeline.on("error", () => {})
    this.#input.on("error", () => this.end("its input was closed"))
    this.#output.on("error", () => this.end("its output was closed"))
    this.#output.on("data", (piece: Buffer) => this.#hear(piece))
    this.#output.on("end", () => this.end("its output was closed"))
    this.#child.once("error", (error) => this.#exited(`its process cannot be started: ${error.message}`))
    this.#child.once("exit", (code, signal) =>
      this.#exited(signal === null ? `its process exited with code ${code}` : `its process was ended by ${signal}`)
    )
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** It can take no more calls. */
  get isOver(): boolean {
    return this.#over
  }

  /** It has exited. */
  get isGone(): boolean {
    return this.#gone
  }

  /** Why it is over. */
  get reason(): string {
    return this.#reason ?? "it was ended"
  }

  /** Bytes of memory it holds, where the system says so. */
  get residentBytes(): number | undefined {
    if (process.platform !== "linux" || this.#over) return undefined
    try {
      return Number(readFileSync(`/proc/${this.pid}/statm`, "latin1").split(" ")[1]) * 4096
    } catch {
      return undefined
    }
  }

  /** Asks one call. Nothing is told after `forget`. */
  ask(task: WorkerTask, done: (reply: WorkerReply) => void, lost: (error: Error) => void): void {
    const id = ++this.#calls
    if (this.#over) {
      lost(new Error(this.reason))
      return
    }
    this.#pending = { id, done, lost }
    this.#input.write(encodeFrame({ id, task: task as unknown as Json }))
  }

  forget(): void {
    this.#pending = undefined
  }

  /** Keeps this program alive, or does not. */
  hold(held: boolean): void {
    for (const one of [this.#child, this.#input, this.#output, this.#lifeline] as ReadonlyArray<{
      ref?(): void
      unref?(): void
    }>) {
      if (held) one.ref?.()
      else one.unref?.()
    }
  }

  /** Ends it and its group. Safe to repeat. */
  end(reason: string): void {
    if (this.#over) return
    this.#close(reason)
    this.#kill()
  }

  /** Calls `then` when it has exited; the returned function takes that back. */
  whenGone(then: () => void): () => void {
    if (this.#gone) then()
    else this.#onExit.add(then)
    return () => void this.#onExit.delete(then)
  }

  #kill(): void {
    const { pid } = this.#child
    try {
      if (hasGroups && pid !== undefined) process.kill(-pid, "SIGKILL")
      else this.#child.kill("SIGKILL")
    } catch {
      // Nothing of it is left.
    }
  }

  #close(reason: string): void {
    this.#over = true
    this.#reason ??= reason
    for (const pipe of [this.#input, this.#output, this.#lifeline]) pipe.destroy()
    const pending = this.#pending
    this.#pending = undefined
    pending?.lost(Object.assign(new Error(this.reason), { name: "Ended" }))
  }

  #exited(reason: string): void {
    // What it started, and did not end, is ended now: its number names the group as long as somebody is in it.
    this.#kill()
    this.#gone = true
    // What it said before it went may still be on its way, and is not worth waiting for: a call has one answer.
    if (!this.#over) this.#close(reason)
    for (const then of this.#onExit) then()
    this.#onExit.clear()
  }

  #hear(piece: Buffer): void {
    if (this.#over) return
    try {
      for (const frame of this.#reader.push(piece)) this.#take(frame)
    } catch (error) {
      this.end(`it sent ${error instanceof Error ? error.message : "nonsense"}`)
    }
  }

  #take(frame: Frame): void {
    if (!this.#up) {
      this.#up = true
      this.#onUp()
      return
    }
    const pending = this.#pending
    const reply = decodeReply(frame)
    if (pending === undefined || reply.id !== pending.id) {
      this.end("it answered what it was not asked")
      return
    }
    this.#pending = undefined
    pending.done(reply)
  }
}
