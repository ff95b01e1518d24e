/**
 * Brings a model file from a server into a directory, and goes on where an earlier download broke off. The inference library
 * does it in pieces, several at a time; where a server gives no pieces it is read in one go here, because the library then
 * puts bytes in the wrong place after a break (3.21.1). Checks no content: `actors/ModelStore.ts` does.
 */
import * as Fs from "node:fs"
import * as Path from "node:path"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Stream from "effect/Stream"
import type { ModelDownloader } from "node-llama-cpp"
import { EngineError } from "./EngineError.ts"
import { repair } from "./LlamaDownloadEngine.ts"
import { importLibrary } from "./LlamaLibrary.ts"
import { failed, type RemoteFile } from "./RemoteFile.ts"

/** Told how many bytes of how many have arrived; the total is 0 where nobody knows it. */
export type Arriving = (done: number, total: number) => void

export interface DownloadOptions {
  /** Where models are kept. */
  readonly directory: string
  /** What the file is to be called. */
  readonly fileName: string
  readonly onProgress?: Arriving
  /** Nothing new for so long means that the download broke off. Default 60. */
  readonly stallSeconds?: number
}

/** What an unfinished file's name ends with, as the library has it. */
const partial = ".ipull"

const partOfModel = /(?:-\d{5}-of-\d{5}\.gguf|\.gguf\.part\d+of\d+)$/

/** The library repeats for a quarter of an hour what does not work; who waits wants to know sooner. */
const stallSeconds = 60

const codeOf = (cause: unknown): string | undefined => {
  for (let at: unknown = cause; at instanceof Error; at = at.cause) {
    const { code } = at as { readonly code?: unknown }
    if (typeof code === "string") return code
  }
  return undefined
}

const explain = (uri: string, cause: unknown): EngineError => {
  if (cause instanceof EngineError) return cause
  const code = codeOf(cause)
  if (code === "ENOSPC")
    return failed(uri, "The disk is full. What has arrived is kept; make room and say the same again.", cause)
  if (code === "EACCES" || code === "EROFS" || code === "EPERM") {
    return failed(uri, `The directory for models cannot be written (${code}): choose another with --models-dir.`, cause)
  }
  const status = (cause as { readonly statusCode?: unknown } | null | undefined)?.statusCode
  if (typeof status === "number") {
    return failed(
      uri,
      `The server answers ${status} for a part of it. Say the same again: what has arrived is kept.`,
      cause
    )
  }
  if (cause instanceof Error && /^Expected \d+ bytes, but got /.test(cause.message)) {
    return failed(
      uri,
      "The server sends something else than the part it was asked for: a page that asks for a name, perhaps. Say the same again later.",
      cause
    )
  }
  // The library repeats addresses, and a query may hold a key.
  const said = (cause instanceof Error ? cause.message : String(cause)).replace(/(https?:\/\/[^\s?]*)\?\S*/gi, "$1")
  return failed(uri, `${said.replace(/\.$/, "")}. Say the same again: what has arrived is kept.`, cause)
}

/** Fails once nothing new has arrived for too long. Bytes that had arrived before a break, and come again, are not new. */
class Watch {
  #most = -1
  #total = 0
  #since: number
  readonly #now: () => number
  readonly #tell: Arriving

  constructor(now: () => number, tell: Arriving) {
    this.#now = now
    this.#tell = tell
    this.#since = now()
  }

  readonly arrived: Arriving = (done, total) => {
    this.#total = total
    if (done > this.#most) {
      this.#most = done
      this.#since = this.#now()
    }
    this.#tell(Math.max(0, this.#most), total)
  }

  stalled(uri: string, millis: number): EngineError | undefined {
    if (this.#now() - this.#since < millis) return undefined
    const of = this.#total > 0 ? ` of ${this.#total}` : ""
    const why = `Nothing more arrives after ${Math.max(0, this.#most)}${of} bytes: the server or the connection is gone.`
    return failed(uri, `${why} Say the same again later: what has arrived is kept.`)
  }
}

const watched = Effect.fnUntraced(function* <A>(
  uri: string,
  options: DownloadOptions,
  run: (arrived: Arriving) => Effect.Effect<A, EngineError>
): Effect.fn.Return<A, EngineError> {
  const clock = yield* Clock.Clock
  const watch = new Watch(() => clock.currentTimeMillisUnsafe(), options.onProgress ?? (() => {}))
  const millis = (options.stallSeconds ?? stallSeconds) * 1000
  const look = Effect.suspend(() => {
    const problem = watch.stalled(uri, millis)
    return problem === undefined ? Effect.void : Effect.fail(problem)
  })
  const looking = Effect.forever(Effect.andThen(Effect.sleep(Math.min(1000, Math.max(10, millis / 4))), look))
  return yield* Effect.raceFirst(run(watch.arrived), looking)
})

/** What an ended downloader still has open is closed, and the unfinished file stays. */
const closed = (downloader: ModelDownloader) =>
  Effect.ignore(
    Effect.timeoutOption(
      Effect.tryPromise(() => downloader.cancel({ deleteTempFile: false })),
      "5 seconds"
    )
  )

/** In pieces, by the library. What has arrived stays, whatever ends it. */
const inPieces = (
  uri: string,
  { directory, fileName }: DownloadOptions,
  arrived: Arriving
): Effect.Effect<ReadonlyArray<string>, EngineError> =>
  Effect.gen(function* () {
    const library = yield* importLibrary
    const made = Effect.tryPromise({
      try: () =>
        library.createModelDownloader({
          modelUri: uri,
          dirPath: directory,
          showCliProgress: false,
          deleteTempFileOnCancel: false,
          fileName,
          onProgress: ({ downloadedSize, totalSize }) => arrived(downloadedSize, totalSize)
        }),
      catch: (cause) => explain(uri, cause)
    })
    const downloader = yield* Effect.acquireRelease(made, closed, { interruptible: true })
    const paths = downloader.filesInfo.map(({ filePath }) => filePath)
    yield* piecesOf(uri, downloader)
    return paths
  }).pipe(Effect.scoped)

const piecesOf = (uri: string, downloader: ModelDownloader): Effect.Effect<void, EngineError> =>
  Effect.callback<void, EngineError>((resume) => {
    const fail = (cause: unknown) => resume(Effect.fail(explain(uri, cause)))
    repair(downloader, fail)
    downloader.download().then(() => resume(Effect.void), fail)
  })

/** In one go: the server has to send all of it without a break. */
const inOneGo = (
  uri: string,
  remote: RemoteFile,
  path: string,
  arrived: Arriving
): Effect.Effect<ReadonlyArray<string>, EngineError> => {
  const tried = <A>(run: () => A) => Effect.try({ try: run, catch: (cause) => explain(uri, cause) })
  let done = 0
  const writeTo = (fd: number) => (chunk: Uint8Array) =>
    tried(() => {
      for (let at = 0; at < chunk.length; ) at += Fs.writeSync(fd, chunk, at)
      done += chunk.length
      arrived(done, remote.bytes ?? 0)
    })
  const broken = () =>
    failed(
      uri,
      `The connection broke off after ${done} bytes, and the server gives no pieces: it has to be done in one go. Try again.`
    )
  const received = (fd: number) =>
    HttpClient.execute(HttpClientRequest.get(remote.url, { headers: { "accept-encoding": "identity" } })).pipe(
      Effect.flatMap(({ status, stream }) =>
        status === 200
          ? Stream.runForEach(stream, writeTo(fd))
          : Effect.fail(failed(uri, `The server answers ${status}. Try again later.`))
      ),
      Effect.mapError((error) => (error instanceof EngineError ? error : broken())),
      Effect.provide(FetchHttpClient.layer)
    )
  return Effect.acquireUseRelease(
    tried(() => Fs.openSync(path + partial, "w")),
    received,
    (fd) => Effect.sync(() => Fs.closeSync(fd))
  ).pipe(Effect.andThen(tried(() => Fs.renameSync(path + partial, path))), Effect.as([path]))
}

/**
 * Downloads the file, or files, of a model and returns their paths, the one to load first. Files that are there already are
 * not looked at. Interruption keeps what has arrived.
 */
export const download = (
  uri: string,
  remote: RemoteFile,
  options: DownloadOptions
): Effect.Effect<ReadonlyArray<string>, EngineError> => {
  if (remote.ranges) return watched(uri, options, (arrived) => inPieces(uri, options, arrived))
  if (partOfModel.test(new URL(remote.url).pathname)) {
    return Effect.fail(
      failed(uri, "It is in several files, and the server gives no pieces of them. Download them by hand.")
    )
  }
  const path = Path.join(options.directory, options.fileName)
  return watched(uri, options, (arrived) => inOneGo(uri, remote, path, arrived))
}
