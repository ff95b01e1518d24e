/**
 * What the library's downloader does wrong with a file (ipull 3.9.5), put right on its objects before it begins: rejections
 * nobody hears, which end the process; notes of pieces that are not written; pieces that end too soon and count as whole; a
 * file that is called whole before it is; requests that go on after the end. Where the library is built otherwise, nothing
 * is touched. Downloads nothing itself.
 */
import type { ModelDownloader } from "node-llama-cpp"

type Chunks = { readonly done: boolean; readonly value?: Uint8Array }
type Next = () => Promise<Chunks>

/** The requests for one stretch of a file. */
interface Fetching {
  readonly aborted: boolean
  readonly state: { readonly rangeSupport?: boolean }
  readonly _startSize: number
  readonly _endSize: number
  fetchWithoutRetryChunks: (callback: unknown) => Promise<void>
  chunkGenerator: (callback: unknown, next: Next) => Promise<void>
}

/** What works on one file. */
interface Engine {
  _downloadSlice: (start: number, end: number) => Promise<void>
  _saveProgress: () => Promise<void> | undefined
  readonly options: {
    readonly fetchStream: { withSubState: (state: unknown) => Fetching }
    readonly writeStream: { write: (cursor: number, buffer: Uint8Array) => Promise<void> }
    onSaveProgressAsync: (progress: unknown) => Promise<void>
    onFinishAsync: () => Promise<void>
    onCloseAsync: () => Promise<void>
  }
}

const methods = (object: unknown, ...names: ReadonlyArray<string>): boolean =>
  typeof object === "object" &&
  object !== null &&
  names.every((name) => typeof (object as Readonly<Record<string, unknown>>)[name] === "function")

const isEngine = (engine: unknown): engine is Engine => {
  if (!methods(engine, "_downloadSlice", "_saveProgress")) return false
  const { options } = engine as Engine
  return (
    methods(options, "onSaveProgressAsync", "onFinishAsync", "onCloseAsync") &&
    methods(options.fetchStream, "withSubState") &&
    methods(options.writeStream, "write")
  )
}

/** Whoever waits for it hears of a rejection; that nobody does, here or in what is made of it, is no accident. */
const heard = <A>(promise: Promise<A>): Promise<A> => {
  const quiet = <B>(one: Promise<B>): Promise<B> => {
    one.catch(() => {})
    return one
  }
  const then = promise.then.bind(promise)
  // biome-ignore lint/suspicious/noThenProperty: it is a promise before and after
  promise.then = (onDone, onFailed) => quiet(then(onDone, onFailed))
  return quiet(promise)
}

/** A piece is there when all of it was written, and a note of it is no part of the file: it never comes after the end. */
const writesFirst = ({ options }: Engine, broken: (cause: unknown) => void): void => {
  const { writeStream } = options
  // What failed stays: nothing that follows it is noted.
  const writing = new Set<Promise<void>>()
  const write = writeStream.write.bind(writeStream)
  writeStream.write = (cursor, buffer) => {
    const one = heard(write(cursor, buffer))
    writing.add(one)
    void one.then(() => writing.delete(one), broken)
    return one
  }
  const [save, finish, close] = [options.onSaveProgressAsync, options.onFinishAsync, options.onCloseAsync]
  const noted = async (progress: unknown) => {
    await Promise.all(writing)
    await save(progress)
  }
  let saving: Promise<unknown> = Promise.resolve()
  options.onSaveProgressAsync = (progress) => {
    // What counts as there by now; more will while it waits.
    const one = noted(structuredClone(progress))
    saving = Promise.allSettled([saving, one])
    return one
  }
  let whole = false
  options.onFinishAsync = async () => {
    await saving
    await finish()
    whole = true
  }
  options.onCloseAsync = async () => {
    await Promise.allSettled([saving, ...writing])
    // It gets the name of a whole file, which the library gives it as soon as all has arrived.
    if (whole) await close()
  }
}

/** A piece that ends before its end is asked for again; after the end nothing is. */
const wholePieces = (one: Fetching): Fetching => {
  if (!methods(one, "fetchWithoutRetryChunks", "chunkGenerator")) return one
  const fetchOnce = one.fetchWithoutRetryChunks.bind(one)
  one.fetchWithoutRetryChunks = (callback) => (one.aborted ? Promise.resolve() : fetchOnce(callback))
  const generate = one.chunkGenerator.bind(one)
  one.chunkGenerator = (callback, next) => {
    const expected = one.state.rangeSupport === true ? one._endSize - one._startSize : 0
    let got = 0
    return generate(callback, async () => {
      const part = await next()
      got += part.value?.length ?? 0
      if (part.done && !one.aborted && got < expected)
        throw new Error(`a piece ended after ${got} of ${expected} bytes`)
      return part
    })
  }
  return one
}

/** @param broken told that something could not be written: what follows is in vain */
export const repair = (downloader: ModelDownloader, broken: (cause: unknown) => void): void => {
  const { _specificFileDownloaders: files = [] } = downloader as unknown as {
    readonly _specificFileDownloaders?: ReadonlyArray<{ readonly _engine?: unknown }>
  }
  for (const { _engine: engine } of files) {
    if (!isEngine(engine)) continue
    const slice = engine._downloadSlice.bind(engine)
    engine._downloadSlice = (start, end) => heard(slice(start, end))
    const saveProgress = engine._saveProgress.bind(engine)
    engine._saveProgress = () => {
      const saved = saveProgress()
      return saved === undefined ? undefined : heard(saved)
    }
    writesFirst(engine, broken)
    const { fetchStream } = engine.options
    const withSubState = fetchStream.withSubState.bind(fetchStream)
    fetchStream.withSubState = (state) => wholePieces(withSubState(state))
  }
}
