/**
 * Owns trace files. One run, one file: opened exclusively, appended to, closed with the run's scope. `append` returns when
 * the lines are with the operating system, so a process that dies later leaves every line that was ever returned from.
 * It does not fsync: surviving a power cut is the effect ledger's business.
 */

import { hash, randomFillSync } from "node:crypto"
import { closeSync, ftruncateSync, openSync, writeSync } from "node:fs"
import { dirname } from "node:path"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { canonical, type Json } from "../tools/JsonText.ts"
import { makeDirectory } from "./Directories.ts"
import { eventRedactor, type RedactedEvent } from "./RedactedEvent.ts"
import type { Redactor } from "./Redaction.ts"
import { genesis, type Hidden, schemaId, type TraceInput } from "./TraceEvent.ts"

export class TraceError extends Schema.TaggedError<TraceError>()("TraceError", {
  operation: Schema.Literals(["open", "append"]),
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

export interface TraceOptions {
  /** Off: no text, argument, path or payload is written, only lengths and digests. */
  readonly content: boolean
  readonly tokenEvents: boolean
  /** What is replaced before a line is written. */
  readonly redact?: Redactor
}

/** The open trace of one run. */
export interface RunTrace {
  readonly options: TraceOptions
  /** Where the lines are, if they are in a file. */
  readonly path: string | undefined
  /** Appends events that belong to one moment, each a line of its own, in one write, after those that were noted. */
  readonly append: (...events: ReadonlyArray<TraceInput>) => Effect.Effect<void, TraceError>
  /**
   * Adds events that the next `append` or `flush` hands over. For what is followed at once by another event: nothing may
   * be waited for, and nothing outside may be done, in between.
   */
  readonly note: (...events: ReadonlyArray<TraceInput>) => void
  /** Hands over what was noted. To be done before anything is waited for or done outside. */
  readonly flush: Effect.Effect<void, TraceError>
  /**
   * Appends an event that arrives on its own (a late outcome). Nobody waits for it, so a failure is not reported here: the
   * next `append` tries again.
   */
  readonly offer: (event: TraceInput) => void
  /** Lines so far, those that wait for the next append included. */
  readonly length: () => number
  /** Text as the trace may hold it: itself, or its length and digest. */
  readonly text: (value: string) => string | Hidden
  /** A JSON value likewise; the digest is over its canonical form. */
  readonly json: (value: Json) => unknown
  /**
   * An unkeyed digest of content (SHA-256 in hex) as the trace may hold it. Whoever can guess the content could check the
   * guess against it, so without content it is replaced by its own digest under the run's key; so it is where `of`, which it
   * was made of, is redacted.
   */
  readonly digest: (sha256: string, of?: Json) => string
  /** Replacements so far. */
  readonly redactions: () => number
}

export class TraceWriter extends Context.Service<
  TraceWriter,
  {
    /** Opens the trace of a new run. Fails if that run already has one. */
    readonly open: (runId: string, options: TraceOptions) => Effect.Effect<RunTrace, TraceError, Scope.Scope>
  }
>()("effect-writ/actors/TraceWriter") {}

/** Where lines go. `write` throws when they could not be handed over; then nothing of them counts. */
export interface Sink {
  readonly path: string | undefined
  readonly write: (lines: string) => void
  readonly close: () => void
}

/** How many digests are remembered: the same text tends to come twice in a row (a turn's text is the run's answer). */
const rememberedDigests = 16

const blockBytes = 64

/**
 * HMAC-SHA-256 (RFC 2104) in hex. Made of one-shot hashes, which for texts of this size take a quarter of the time of Node's
 * streaming Hmac objects; a test holds it against them.
 * @param key at most 64 bytes
 */
export const makeHmac = (key: Uint8Array): ((text: string) => string) => {
  const pad = (byte: number) => Buffer.from(Uint8Array.from({ length: blockBytes }, (_, at) => (key[at] ?? 0) ^ byte))
  const inner = pad(0x36)
  const outer = Buffer.concat([pad(0x5c), Buffer.alloc(32)])
  return (text) => {
    const message = Buffer.concat([inner, Buffer.from(text)])
    outer.set(hash("sha256", message, "buffer"), blockBytes)
    return hash("sha256", outer)
  }
}

/** Hides text under a key. */
const makeHide = (key: Uint8Array): ((text: string) => Hidden) => {
  let hmac: ReturnType<typeof makeHmac> | undefined
  const known = new Map<string, Hidden>()
  return (text) => {
    const before = known.get(text)
    if (before !== undefined) return before
    hmac ??= makeHmac(key)
    const hidden = { bytes: Buffer.byteLength(text), hmac: hmac(text) }
    if (known.size >= rememberedDigests) known.clear()
    if (text.length <= 4096) known.set(text, hidden)
    return hidden
  }
}

/** An event as it may be written. */
type Redacting = (event: TraceInput) => RedactedEvent

/** Numbers, dates and chains events, and hands them to the sink. */
class Chain {
  readonly #sink: Sink
  readonly #redacted: Redacting | undefined
  readonly #clock: Clock.Clock
  readonly #startNanos: bigint
  readonly #head: string
  #seq = 0
  #redactions = 0
  #prev = genesis
  /** What was noted, and what could not be handed over: the record has no hole where one write failed. */
  readonly #waiting: Array<TraceInput> = []

  constructor(runId: string, sink: Sink, clock: Clock.Clock, redacted: Redacting | undefined) {
    this.#sink = sink
    this.#redacted = redacted
    this.#clock = clock
    this.#startNanos = clock.currentTimeNanosUnsafe()
    this.#head = `{"schema":"${schemaId}","run_id":${JSON.stringify(runId)},"seq":`
  }

  get length(): number {
    return this.#seq + this.#waiting.length
  }

  /** Replacements in what was handed over. */
  get redactions(): number {
    return this.#redactions
  }

  get waiting(): boolean {
    return this.#waiting.length > 0
  }

  readonly note = (events: ReadonlyArray<TraceInput>): void => void this.#waiting.push(...events)

  /** Throws where the sink does; then everything stays as it was and waits. */
  readonly append = (events: ReadonlyArray<TraceInput>): void => {
    this.#waiting.push(...events)
    if (this.#waiting.length === 0) return
    const micros = Number((this.#clock.currentTimeNanosUnsafe() - this.#startNanos) / 1000n)
    const at = `,"t_ms":${micros / 1000},"ts_epoch_ms":${this.#clock.currentTimeMillisUnsafe()},"step":`
    let lines = ""
    let prev = this.#prev
    let seq = this.#seq
    let redactions = this.#redactions
    for (const event of this.#waiting) {
      const phase = event.phase === undefined ? "null" : `"${event.phase}"`
      const { data, redacted } = this.#redacted?.(event) ?? { data: event.data, redacted: [] }
      const replaced = redacted.length === 0 ? "" : `,"redacted":${JSON.stringify(redacted)}`
      const line =
        `${this.#head}${seq},"event_type":"${event.type}"${at}"${event.step}","phase":${phase}` +
        `,"data":${JSON.stringify(data)}${replaced},"prev":"${prev}"}`
      for (const { count } of redacted) redactions += count
      prev = hash("sha256", line)
      seq++
      lines += `${line}\n`
    }
    this.#sink.write(lines)
    this.#waiting.length = 0
    this.#seq = seq
    this.#prev = prev
    this.#redactions = redactions
  }
}

const makeRunTrace = (
  runId: string,
  options: TraceOptions,
  sink: Sink,
  key: Uint8Array,
  clock: Clock.Clock
): RunTrace => {
  const hide = makeHide(key)
  const { content, redact } = options
  const redacting = redact === undefined ? undefined : eventRedactor(redact, hide, content)
  const chain = new Chain(runId, sink, clock, redacting)
  const written = (events: ReadonlyArray<TraceInput>): Effect.Effect<void, TraceError> =>
    Effect.try({
      try: () => chain.append(events),
      catch: (cause) =>
        new TraceError({
          operation: "append",
          message: `the trace of run ${runId} could not be written: ${reasonOf(cause)}`,
          cause
        })
    })
  return {
    options,
    path: sink.path,
    append: (...events) => written(events),
    note: (...events) => chain.note(events),
    flush: Effect.suspend(() => (chain.waiting ? written([]) : Effect.void)),
    offer: (event) => {
      try {
        chain.append([event])
      } catch {
        // It waits for the next append.
      }
    },
    length: () => chain.length,
    text: content ? (value) => value : hide,
    json: content ? (value) => value : (value) => hide(canonical(value)),
    digest: (sha256, of) =>
      !content || (of !== undefined && (redact?.json(of).count ?? 0) > 0) ? hide(sha256).hmac : sha256,
    redactions: () => chain.redactions
  }
}

const reasonOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** Makes the key of a run's digests. By default nobody keeps it: equal content has equal digests inside one run only. */
export const TraceKey = Context.Reference<() => Uint8Array>("effect-writ/actors/TraceKey", {
  defaultValue: () => freshKey
})

const keyBytes = 32
const pool = Buffer.alloc(128 * keyBytes)
let taken = pool.length

/** 32 random bytes. Asking the system for many at a time costs a run a tenth of asking for its own. */
const freshKey = (): Uint8Array => {
  if (taken === pool.length) {
    randomFillSync(pool)
    taken = 0
  }
  const key = Uint8Array.prototype.slice.call(pool, taken, taken + keyBytes)
  taken += keyBytes
  return key
}

/** Opens a new file; its directory is made only when it is missing, which a busy program pays for once. */
const create = (path: string): number => {
  try {
    return openSync(path, "ax")
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error
    makeDirectory(dirname(path))
    return openSync(path, "ax")
  }
}

const writeRest = (fd: number, bytes: Uint8Array): void => {
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done)
}

/** A new file as a sink; throws where there is one already. */
export const fileSink = (path: string): Sink => {
  const fd = create(path)
  let good = 0
  return {
    path,
    write: (lines) => {
      try {
        const size = Buffer.byteLength(lines)
        // Almost always one call takes the whole string, and a string is cheaper to hand over than a buffer.
        const written = writeSync(fd, lines)
        if (written < size) writeRest(fd, Buffer.from(lines).subarray(written))
        good += size
      } catch (error) {
        // Half a line must not be continued by the next append.
        ftruncateSync(fd, good)
        throw error
      }
    },
    close: () => closeSync(fd)
  }
}

const openWith = (make: (runId: string) => Sink) =>
  TraceWriter.of({
    open: Effect.fnUntraced(function* (runId, options) {
      const sink = yield* Effect.acquireRelease(
        Effect.try({
          try: () => make(runId),
          catch: (cause) =>
            new TraceError({
              operation: "open",
              message: `the trace of run ${runId} could not be opened: ${reasonOf(cause)}`,
              cause
            })
        }),
        (opened) => Effect.sync(opened.close)
      )
      return makeRunTrace(runId, options, sink, (yield* TraceKey)(), yield* Clock.Clock)
    })
  })

/** Lines go where `make` says, which throws where a run cannot have a record. The other layers are this one with a sink of ours. */
export const layerSink = (make: (runId: string) => Sink): Layer.Layer<TraceWriter> =>
  Layer.succeed(TraceWriter, openWith(make))

/** One file per run, at the path named for it; a run that already has a file is refused. */
export const layerFile = (pathOf: (runId: string) => string): Layer.Layer<TraceWriter> =>
  layerSink((runId) => fileSink(pathOf(runId)))

/** Traces kept in memory, by run id. */
export class MemoryTraces extends Context.Service<
  MemoryTraces,
  {
    /** The lines of one run so far, as a file would hold them. */
    readonly text: (runId: string) => string
    readonly runs: () => ReadonlyArray<string>
  }
>()("effect-writ/actors/MemoryTraces") {}

export const layerMemory: Layer.Layer<TraceWriter | MemoryTraces> = Layer.effectContext(
  Effect.sync(() => {
    const traces = new Map<string, Array<string>>()
    const writer = openWith((runId) => {
      if (traces.has(runId)) throw new Error("a trace of this run is already there")
      const lines: Array<string> = []
      traces.set(runId, lines)
      return { path: undefined, write: (text) => void lines.push(text), close: () => {} }
    })
    const memory = MemoryTraces.of({
      text: (runId) => traces.get(runId)?.join("") ?? "",
      runs: () => [...traces.keys()]
    })
    return Context.empty().pipe(Context.add(TraceWriter, writer), Context.add(MemoryTraces, memory))
  })
)

const silent: RunTrace = {
  options: { content: true, tokenEvents: false },
  path: undefined,
  append: () => Effect.void,
  note: () => {},
  flush: Effect.void,
  offer: () => {},
  length: () => 0,
  text: () => "",
  json: () => null,
  digest: (sha256) => sha256,
  redactions: () => 0
}

/** No record at all. For measuring what a record costs; a run without one cannot be checked, resumed or replayed. */
export const layerNone: Layer.Layer<TraceWriter> = Layer.succeed(
  TraceWriter,
  TraceWriter.of({ open: () => Effect.succeed(silent) })
)
