/**
 * Listens to what an MCP server writes to its standard output, before the protocol does: lines that are no messages are
 * dropped, notifications are noted, floods end the conversation. Messages pass in the strict form the protocol reads.
 */
import type { McpReason } from "./McpError.ts"

export interface StdoutLimits {
  /** Bytes of one message. */
  readonly messageBytes: number
  /** Bytes that are no answers between two answers: notifications and whatever else a server prints. */
  readonly strayBytes: number
  /** Requests of the server between two answers. */
  readonly requests: number
}

export interface Fault {
  readonly reason: McpReason
  readonly detail: string
}

const newline = 0x0a
const nothing = new Uint8Array(0)

type Message = Readonly<Record<string, unknown>>

const isId = (id: unknown): id is string | number => typeof id === "string" || typeof id === "number"

/** `undefined` for what is not JSON. */
const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** One direction of one server. `push` gives what passes; after a fault nothing does. */
export class McpStdout {
  readonly #limits: StdoutLimits
  readonly #onChanged: () => void
  #parts: Array<Uint8Array> = []
  #size = 0
  #stray = 0
  #requests = 0
  /** Our requests that have no answer yet. */
  readonly #open = new Set<string | number>()
  /** Lines that were no messages. */
  dropped = 0
  fault: Fault | undefined

  constructor(limits: StdoutLimits, onChanged: () => void) {
    this.#limits = limits
    this.#onChanged = onChanged
  }

  /** Our request of this id is about to be sent. What answers none of ours is no answer. */
  readonly expect = (id: string | number): void => void this.#open.add(id)

  readonly push = (chunk: Uint8Array): Uint8Array => {
    if (this.fault !== undefined) return nothing
    const passing: Array<string> = []
    let start = 0
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      this.#keep(chunk.subarray(start, end))
      start = end + 1
      if (this.fault !== undefined) break
      this.#line(Buffer.concat(this.#parts).toString("utf8"), this.#size, passing)
      this.#parts = []
      this.#size = 0
    }
    if (this.fault === undefined) this.#keep(chunk.subarray(start))
    return passing.length === 0 ? nothing : Buffer.from(`${passing.join("\n")}\n`)
  }

  #keep(bytes: Uint8Array): void {
    this.#size += bytes.byteLength
    if (this.#size > this.#limits.messageBytes) {
      this.#parts = []
      this.#fail(`sent a message of more than ${this.#limits.messageBytes} bytes`)
    } else if (bytes.byteLength > 0) this.#parts.push(bytes)
  }

  #fail(detail: string): void {
    this.fault ??= { reason: "limit", detail }
  }

  #line(text: string, bytes: number, passing: Array<string>): void {
    const value = parsed(text)
    // Older revisions send several messages in one line.
    for (const one of Array.isArray(value) ? value : [value]) this.#message(one, bytes, passing)
  }

  #noise(bytes: number, dropped: boolean): void {
    if (dropped) this.dropped++
    // An empty line costs something as well.
    this.#stray += bytes + 1
    if (this.#stray > this.#limits.strayBytes) {
      this.#fail(`sent more than ${this.#limits.strayBytes} bytes that are no answers`)
    }
  }

  #message(value: unknown, bytes: number, passing: Array<string>): void {
    const { error, id, method, params, result } = (typeof value === "object" && value !== null ? value : {}) as Message
    if (typeof method === "string" && (id === undefined || isId(id))) {
      this.#noise(bytes, false)
      this.#spontaneous(method, id, params, passing)
      return
    }
    const isAnswer = result !== undefined || error !== undefined
    // An error without an id is about a message of ours that could not be read: nobody knows which.
    if (!isAnswer || !(id === null ? error !== undefined : isId(id) && this.#open.delete(id))) {
      this.#noise(bytes, true)
      return
    }
    this.#stray = 0
    this.#requests = 0
    this.#pass({ jsonrpc: "2.0", id, ...(error === undefined ? { result } : { error }) }, passing)
  }

  #spontaneous(method: string, id: unknown, params: unknown, passing: Array<string>): void {
    if (id === undefined) {
      if (method === "notifications/tools/list_changed") this.#onChanged()
      return
    }
    if (++this.#requests > this.#limits.requests) {
      this.#fail(`sent more than ${this.#limits.requests} requests without answering ours`)
    }
    // Each is answered: pings are, all others are told that they are not supported.
    else this.#pass({ jsonrpc: "2.0", id, method, ...(params === undefined ? {} : { params }) }, passing)
  }

  #pass(message: Message, passing: Array<string>): void {
    try {
      passing.push(JSON.stringify(message))
    } catch {
      this.fault ??= { reason: "protocol", detail: "sent a message that is nested too deep" }
    }
  }
}
