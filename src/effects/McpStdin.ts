/**
 * What a client of ours writes, before the protocol reads it: the library's server stops listening at the first line that is no
 * message, so such lines are dropped, and so is a line that does not end. What is dropped gets no answer.
 */
import { isWithinDepth } from "../tools/JsonText.ts"

const newline = 0x0a

/** Bytes one message may have. */
const maxMessageBytes = 16 * 1024 * 1024

/** How deep one may be nested: the library calls itself for each level, and ends where the stack does. */
const maxDepth = 1_000

const isMessage = (value: unknown): boolean => {
  if (typeof value !== "object" || value === null) return false
  const { id, method } = value as { readonly id?: unknown; readonly method?: unknown }
  return typeof method === "string" && (id === undefined || typeof id === "string" || Number.isFinite(id))
}

const isReadable = (text: string): boolean => {
  try {
    const value: unknown = JSON.parse(text)
    if (!isWithinDepth(value, maxDepth)) return false
    // A batch is the protocol's business, if it is one.
    return Array.isArray(value) ? value.length > 0 && value.every(isMessage) : isMessage(value)
  } catch {
    return false
  }
}

/** The lines of one client. `push` gives the messages among what has arrived whole. */
export class McpStdin {
  readonly #maxBytes: number
  #parts: Array<Uint8Array> = []
  #size = 0

  constructor(maxBytes: number = maxMessageBytes) {
    this.#maxBytes = maxBytes
  }

  readonly push = (chunk: Uint8Array): Uint8Array => {
    const passing: Array<string> = []
    let start = 0
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      this.#keep(chunk.subarray(start, end))
      start = end + 1
      const text = this.#size > this.#maxBytes ? "" : Buffer.concat(this.#parts).toString("utf8")
      if (isReadable(text)) passing.push(text)
      this.#parts = []
      this.#size = 0
    }
    this.#keep(chunk.subarray(start))
    return Buffer.from(passing.map((line) => `${line}\n`).join(""))
  }

  #keep(bytes: Uint8Array): void {
    this.#size += bytes.byteLength
    if (this.#size > this.#maxBytes) this.#parts = []
    else if (bytes.byteLength > 0) this.#parts.push(bytes)
  }
}
