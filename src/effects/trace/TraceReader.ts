/**
 * Bytes to trace events, line by line, for traces that may have been cut anywhere, also inside a character. What cannot be
 * read is reported with its place and never ends the reading. Accepts `ember.agent.trace.v1` too. Checks envelopes only:
 * whether a trace makes sense is the validator's question.
 */

import { isAscii } from "node:buffer"
import { createReadStream } from "node:fs"
import { type FileHandle, open } from "node:fs/promises"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { schemaId } from "../../actors/TraceEvent.ts"

/** Envelopes that are read. */
export const schemas: ReadonlyArray<string> = [schemaId, "ember.agent.trace.v1"]

/** The part of a line that both schemas have. */
export interface TraceRecord {
  readonly schema: string
  readonly run_id: string
  readonly seq: number
  readonly event_type: string
  /** Milliseconds since the run began. */
  readonly t_ms: number
  readonly step: string
  readonly phase: string | null
  /** As it was written; nothing is known about it here. */
  readonly data: Readonly<Record<string, unknown>>
  /** The fields of `data` in which redaction rules replaced something, as the line says it; see `Concealed`. */
  readonly redacted?: unknown
}

/**
 * A line as it was written: its bytes without line end, which are good until the next chunk is read, and everything the
 * object on it says.
 */
export interface Source {
  readonly bytes: Uint8Array
  readonly envelope: Readonly<Record<string, unknown>>
}

export interface Event {
  readonly _tag: "Event"
  /** Counted from 1. */
  readonly line: number
  readonly record: TraceRecord
  /** Only where it was asked for: who checks the chain needs the bytes. */
  readonly source?: Source
}

export interface Unreadable {
  readonly _tag: "Unreadable"
  readonly line: number
  /** Byte offset of the line in the file. */
  readonly offset: number
  readonly bytes: number
  readonly reason: string
  /** The file ends inside this line: what a process leaves that was killed while it wrote. */
  readonly cut: boolean
}

export type Item = Event | Unreadable

export interface ReadOptions {
  /** Gives each event the line it was read from. */
  readonly sources?: boolean
}

/** A line that takes more than this is reported and skipped. */
export const maxLineBytes = 64 * 1024 * 1024

/** Bytes that are decoded at a time: of more, the text would be too large for the heap's nursery. */
const portion = 64 * 1024

const newline = 0x0a
const carriageReturn = 0x0d

/** Cuts bytes into lines and lines into items. Holds at most one line. */
export class Lines {
  readonly #limit: number
  readonly #sources: boolean
  #parts: Array<Uint8Array> = []
  /** Bytes of the open line, the dropped ones included. */
  #length = 0
  #number = 1
  #offset = 0

  constructor(limit: number = maxLineBytes, options: ReadOptions = {}) {
    this.#limit = limit
    this.#sources = options.sources === true
  }

  readonly push = (chunk: Uint8Array): ReadonlyArray<Item> => {
    const items: Array<Item> = []
    this.feed(chunk, (item) => void items.push(item))
    return items
  }

  /** Gives the items of a chunk one by one: what is not kept is forgotten before the next is read. */
  readonly feed = (chunk: Uint8Array, see: (item: Item) => void): void => {
    for (let at = 0; at < chunk.length; at += portion) this.#feed(chunk.subarray(at, at + portion), see)
  }

  #feed(chunk: Uint8Array, see: (item: Item) => void): void {
    // Nearly all text of a trace is ASCII: then it is decoded at once, and a byte is a character.
    const text = isAscii(chunk) ? ascii(chunk) : undefined
    let start = 0
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      const rest = chunk.subarray(start, end)
      // Most lines lie in one chunk: nothing of them has to be kept.
      const whole = this.#length === 0 && rest.length <= this.#limit
      if (!whole) this.#take(rest)
      const item = whole ? this.#line(rest, rest.length, false, text?.slice(start, end)) : this.#close(false)
      if (item !== undefined) see(item)
      start = end + 1
    }
    this.#take(chunk.subarray(start))
  }

  /** The rest of the file. A whole event that only lacks its newline is read; anything else is a cut line. */
  readonly end = (): ReadonlyArray<Item> => {
    const item = this.#length === 0 ? undefined : this.#close(true)
    return item === undefined ? [] : [item]
  }

  #take(bytes: Uint8Array): void {
    if (bytes.length === 0) return
    this.#length += bytes.length
    if (this.#length > this.#limit) this.#parts = []
    // Copied: the chunk's memory may be used again for the next one.
    else this.#parts.push(Buffer.from(bytes))
  }

  #close(atEnd: boolean): Item | undefined {
    const bytes = this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts)
    const length = this.#length
    this.#parts = []
    this.#length = 0
    return this.#line(bytes, length, atEnd)
  }

  /** `text`: the line, where it is decoded already. */
  #line(bytes: Uint8Array, length: number, atEnd: boolean, text?: string): Item | undefined {
    const place = { line: this.#number, offset: this.#offset, bytes: length }
    this.#number += 1
    this.#offset += length + 1
    if (length > this.#limit) {
      return { _tag: "Unreadable", ...place, reason: `it is longer than ${this.#limit} bytes`, cut: false }
    }
    const line = bytes.at(-1) === carriageReturn ? bytes.subarray(0, -1) : bytes
    if (line.length === 0) return undefined
    // White space around a value is none of its parts, so a line's carriage return may stay.
    const parsed = parse(text ?? line)
    const read = typeof parsed === "string" ? parsed : envelope(parsed.value)
    if (typeof read === "string" || typeof parsed === "string") {
      const reason = atEnd ? `the file ends inside it (${read})` : String(read)
      return { _tag: "Unreadable", ...place, reason, cut: atEnd }
    }
    if (!this.#sources) return { _tag: "Event", line: place.line, record: read }
    const source = { bytes: line, envelope: parsed.value as Source["envelope"] }
    return { _tag: "Event", line: place.line, record: read, source }
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const ascii = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1")

const parse = (line: Uint8Array | string): { readonly value: unknown } | string => {
  try {
    return { value: JSON.parse(typeof line === "string" ? line : utf8.decode(line)) }
  } catch (cause) {
    return cause instanceof SyntaxError ? "it is not JSON" : "it is not UTF-8"
  }
}

/** One line as an event, or why it is none. */
export const readLine = (bytes: Uint8Array): TraceRecord | string => {
  const parsed = parse(bytes)
  return typeof parsed === "string" ? parsed : envelope(parsed.value)
}

/** Why a line of another format is not read. */
export const unknownSchema = "it is not of a known trace schema"

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

const envelope = (value: unknown): TraceRecord | string => {
  if (!isRecord(value)) return "it is not an object"
  const { data, event_type, phase, redacted, run_id, schema, seq, step, t_ms } = value
  if (typeof schema !== "string" || !schemas.includes(schema)) return unknownSchema
  if (typeof run_id !== "string" || run_id === "") return "it has no run_id"
  if (!isCount(seq)) return "its seq is not a count"
  if (typeof event_type !== "string" || event_type === "") return "it has no event_type"
  if (typeof t_ms !== "number") return "it has no t_ms"
  if (data !== null && data !== undefined && !isRecord(data)) return "its data is not an object"
  const record = {
    schema,
    run_id,
    seq,
    event_type,
    t_ms,
    step: typeof step === "string" ? step : "",
    phase: typeof phase === "string" ? phase : null,
    data: data ?? {}
  }
  return redacted === undefined ? record : { ...record, redacted }
}

/** The items of a byte stream, in order. */
export const read = <E, R>(
  bytes: Stream.Stream<Uint8Array, E, R>,
  options: ReadOptions = {}
): Stream.Stream<Item, E, R> =>
  Stream.suspend(() => {
    const lines = new Lines(maxLineBytes, options)
    return bytes.pipe(
      Stream.flatMap((chunk) => Stream.fromIterable(lines.push(chunk))),
      Stream.concat(Stream.suspend(() => Stream.fromIterable(lines.end())))
    )
  })

/** A trace file that cannot be opened or read. */
export class TraceReadError extends Schema.TaggedError<TraceReadError>()("TraceReadError", {
  path: Schema.String,
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

const failed = (path: string, cause: unknown): TraceReadError => {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new TraceReadError({ path, message: `${path} cannot be read: ${reason}`, cause })
}

/** The bytes of a file, which may be growing: what is there now is read. */
export const readBytes = (path: string): Stream.Stream<Uint8Array, TraceReadError> =>
  Stream.fromAsyncIterable(
    {
      [Symbol.asyncIterator]: () => createReadStream(path, { highWaterMark: 256 * 1024 })[Symbol.asyncIterator]()
    } as AsyncIterable<Buffer>,
    (cause) => failed(path, cause)
  )

const readSize = 256 * 1024

/**
 * Gives the bytes of a file to `see`, chunk by chunk, in memory that is used again for the next one, and runs `between` after
 * each. For readers of long traces that keep nothing: half the time of a stream, and little memory.
 */
export const eachChunk = (
  path: string,
  see: (bytes: Uint8Array) => void,
  between: Effect.Effect<void> = Effect.void
): Effect.Effect<void, TraceReadError> => {
  const attempt = <A>(act: () => Promise<A>) => Effect.tryPromise({ try: act, catch: (cause) => failed(path, cause) })
  const chunk = Buffer.allocUnsafeSlow(readSize)
  const all = Effect.fnUntraced(function* (file: FileHandle) {
    while (true) {
      const { bytesRead } = yield* attempt(() => file.read(chunk, 0, readSize, null))
      if (bytesRead === 0) return
      see(chunk.subarray(0, bytesRead))
      yield* between
    }
  })
  return Effect.acquireUseRelease(
    attempt(() => open(path)),
    all,
    (file) => Effect.promise(() => file.close())
  )
}

/** Gives the items of a file to `see`, one by one, and runs `between` from time to time and at the end. */
export const eachItem = (
  path: string,
  see: (item: Item) => void,
  options: ReadOptions & { readonly between?: Effect.Effect<void> } = {}
): Effect.Effect<void, TraceReadError> =>
  Effect.suspend(() => {
    const lines = new Lines(maxLineBytes, options)
    const between = options.between ?? Effect.void
    const rest = Effect.sync(() => lines.end().forEach(see))
    return Effect.andThen(
      eachChunk(path, (bytes) => lines.feed(bytes, see), between),
      Effect.andThen(rest, between)
    )
  })

/** The items of a file, which may be growing. */
export const readFile = (path: string, options: ReadOptions = {}): Stream.Stream<Item, TraceReadError> =>
  read(readBytes(path), options)

/** Everything at once, for traces that fit in memory. */
export const collect = (path: string): Effect.Effect<ReadonlyArray<Item>, TraceReadError> =>
  Stream.runCollect(readFile(path))
