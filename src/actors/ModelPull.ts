/**
 * Takes a model into the directory of models: asks the server, downloads, checks length, structure and hash, and puts it on
 * record. What does not fit is not kept. One at a time per model, whatever processes there are; what broke off is gone on with
 * if it is still the same file on the server.
 */
import { hash } from "node:crypto"
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { EngineError } from "../engine/EngineError.ts"
import * as GgufFile from "../engine/GgufFile.ts"
import { ask, failed, type RemoteFile, shownUri } from "../engine/RemoteFile.ts"
import { isAlive } from "../tools/Alive.ts"
import { makeClaim, takeAway } from "./ClaimFile.ts"
import { reasonOf } from "./Directories.ts"
import * as ModelHashes from "./ModelHashes.ts"
import * as ModelStore from "./ModelStore.ts"
import { textOf } from "./WholeFile.ts"

export interface PullOptions {
  readonly directory: string
  /** The name it gets. Default: that of the file. */
  readonly name?: string
  /** The hash it has to have, in hex. */
  readonly sha256?: string
  /** Where hashes are remembered, so that a run does not compute it again. */
  readonly hashes: string
  readonly onProgress?: (step: "downloading" | "checking", done: number, total: number) => void
  readonly stallSeconds?: number
}

export interface Pulled {
  readonly model: ModelStore.StoredModel
  readonly record: ModelStore.ModelRecord
  /** It was there before. */
  readonly had: boolean
}

/** What is remembered of a download while it is not finished. */
const Going = Schema.Struct({
  uri: Schema.String,
  etag: Schema.optionalKey(Schema.String),
  bytes: Schema.optionalKey(Schema.Natural),
  /** The name of the file it becomes. */
  file: Schema.String
})
type Going = typeof Going.Type
const decodeGoing = Schema.decodeUnknownOption(Schema.fromJsonString(Going))

const goingPath = (directory: string, uri: string): string =>
  join(directory, `.pull-${hash("sha256", uri).slice(0, 12)}.json`)

const readGoing = (path: string): Going | undefined => {
  try {
    return Option.getOrUndefined(decodeGoing(readFileSync(path, "utf8")))
  } catch {
    return undefined
  }
}

/** Downloads that this process has claimed. */
const claimed = new Set<string>()

interface Claim {
  /** What there is to go on with. */
  readonly going: Going | undefined
  /** Whoever had the download before was killed over it. */
  readonly killed: boolean
}

/** Claims the download for one caller. What an ended process left is taken over; a living one is left alone. */
const claim = (path: string, uri: string): Effect.Effect<Claim, EngineError> =>
  Effect.suspend(() => {
    const lock = lockOf(path)
    const left = textOf(lock)
    const owner = Number(left ?? 0)
    const others = owner > 0 && owner !== process.pid && isAlive(owner)
    if (others || claimed.has(path)) {
      const who = others ? `Another process (${owner})` : "This process"
      return Effect.fail(failed(uri, `${who} is downloading it now. Wait for it, then say the same again.`))
    }
    return Effect.try({
      try: () => {
        if (left !== undefined) takeAway(lock, left)
        if (!makeClaim(lock, String(process.pid))) return undefined
        claimed.add(path)
        return { going: readGoing(path), killed: left !== undefined }
      },
      catch: (cause) => notWritable(uri, cause)
    }).pipe(
      Effect.flatMap((made) =>
        made === undefined
          ? Effect.fail(failed(uri, "Another process has just begun to download it. Wait for it."))
          : Effect.succeed(made)
      )
    )
  })

/** What broke off is remembered, so that it is gone on with only while the server has the same file. */
const release = (path: string, done: boolean): Effect.Effect<void> =>
  Effect.sync(() => {
    claimed.delete(path)
    rmSync(lockOf(path), { force: true })
    if (done) rmSync(path, { force: true })
  })

const lockOf = (path: string): string => `${path}.lock`

/** The process that is downloading this model now; what an ended one left holds nothing. */
export const pullerOf = (directory: string, { name }: ModelStore.StoredModel): number | undefined => {
  for (const state of readdirSync(directory).filter((one) => /^\.pull-[0-9a-f]+\.json$/.test(one))) {
    const path = join(directory, state)
    const file = readGoing(path)?.file
    const owner = Number(textOf(lockOf(path)) ?? 0)
    const same = file !== undefined && ModelStore.stemOf(file) === ModelStore.stemOf(`${name}.gguf`)
    if (same && owner > 0 && isAlive(owner)) return owner
  }
  return undefined
}

const notWritable = (uri: string, cause: unknown): EngineError =>
  failed(
    uri,
    `The directory for models cannot be written: ${reasonOf(cause)}. Choose another with --models-dir.`,
    cause
  )

/** Longer names the library shortens in its own way (100), and two that differ only at their ends become one. */
const longestName = 90

/** A name for the file that can lead nowhere else. Of one that is too long the middle goes: its end says which one it is. */
const plainName = (name: string): string => {
  const stem = name
    .replace(/[^\w.+-]/g, "-")
    .replace(/^[.-]+/, "")
    .replace(/\.gguf$/i, "")
  const half = Math.floor((longestName - 1) / 2)
  const short = stem.length > longestName ? `${stem.slice(0, half)}_${stem.slice(-half)}` : stem
  return `${short || "model"}${/\.gguf$/i.exec(name)?.[0] ?? ".gguf"}`
}

/** What the file may be called: as on the server, or that and where it is from. */
const namesFor = ({ hub, url }: RemoteFile, name: string | undefined): ReadonlyArray<string> => {
  if (name !== undefined) return [plainName(name)]
  const { host, pathname } = new URL(url)
  const parts = pathname.split("/").slice(1).map(decodeURIComponent)
  const last = (parts.at(-1) ?? "").replace(/\.gguf\.part\d+of\d+$/i, ".gguf")
  return [last, `${hub ? `${parts[0]}_${parts[1]}` : host}_${last}`].map(plainName)
}

/** A name nobody has: neither a model, nor a download of something else that broke off. */
const freeName = (uri: string, names: ReadonlyArray<string>, directory: string, mine: string | undefined) => {
  const isFree = (name: string) =>
    name === mine || [name, name + ModelStore.partial].every((one) => !existsSync(join(directory, one)))
  const free = names.find(isFree)
  return free === undefined
    ? Effect.fail(
        failed(
          uri,
          `There is another model of the name ${names[0]} already. Take this one in by another name (writ models pull --name NAME), or remove that one (writ models remove).`
        )
      )
    : Effect.succeed(free)
}

const bad = (uri: string, why: string): EngineError =>
  new EngineError({ reason: "bad_file", message: `What ${shownUri(uri)} gave is not kept: ${why}` })

/** Of a single file: does it have the length and hash it is to have? */
const checkAgainst = (
  uri: string,
  { bytes, sha256: stated }: RemoteFile,
  wanted: string | undefined,
  { bytes: got, sha256 }: ModelStore.FileRecord
): Effect.Effect<void, EngineError> => {
  if (bytes !== undefined && bytes !== got) {
    return Effect.fail(bad(uri, `it has ${got} bytes, and the server said ${bytes}. Try again.`))
  }
  const expected = wanted ?? stated
  if (expected === undefined || expected === sha256) return Effect.void
  const who = wanted === undefined ? "the server states" : "you expect"
  return Effect.fail(
    bad(uri, `its SHA-256 is ${sha256}, and ${who} ${expected}. Try again; if it stays so, do not use it.`)
  )
}

/** Structure of every file, then hash; each is read once. */
const examine = Effect.fnUntraced(function* (
  uri: string,
  paths: ReadonlyArray<string>,
  { hashes, onProgress }: PullOptions
): Effect.fn.Return<ReadonlyArray<ModelStore.FileRecord>, EngineError> {
  const files: Array<ModelStore.FileRecord> = []
  for (const [index, path] of paths.entries()) {
    onProgress?.("checking", index, paths.length)
    const info = yield* Effect.mapError(GgufFile.read(path), ({ message }) =>
      bad(uri, message.replace(/ Download it again, or choose another GGUF file .*$/, " Check the address."))
    )
    files.push({ name: basename(path), bytes: info.fileBytes, sha256: yield* ModelHashes.sha256(path, hashes) })
  }
  return files
})

const discard = (paths: ReadonlyArray<string>) =>
  Effect.sync(() => {
    for (const path of paths) rmSync(path, { force: true })
  })

/** Unfinished files of a model, all parts of it. */
const unfinishedOf = (directory: string, file: string): ReadonlyArray<string> => {
  const stem = ModelStore.stemOf(file)
  return ModelStore.list(directory)
    .filter(({ name, unfinished }) => unfinished && ModelStore.stemOf(`${name}.gguf`) === stem)
    .map(({ path }) => path)
}

/** One of several files, of which only the first has a hash that somebody states. */
const isPart = (file: string): boolean => /-\d{5}-of-\d{5}\.gguf$/i.test(file)

/** Downloads and checks. What is not as it has to be is gone afterwards. */
const fetch = Effect.fnUntraced(function* (uri: string, options: PullOptions, remote: RemoteFile, fileName: string) {
  const { directory, sha256, stallSeconds } = options
  const { download } = yield* Effect.promise(() => import("../engine/LlamaDownload.ts"))
  const paths = yield* download(uri, remote, {
    directory,
    onProgress: (done, total) => options.onProgress?.("downloading", done, total),
    fileName,
    ...(stallSeconds === undefined ? {} : { stallSeconds })
  })
  const files = yield* examine(uri, paths, options).pipe(
    Effect.tap((found) => (found.length === 1 ? checkAgainst(uri, remote, sha256, found[0]!) : Effect.void)),
    Effect.tapError(() => discard(paths))
  )
  return { files, paths }
})

/** Pieces of two files are no file. Where no hash is known, the server is asked whether it still has the same one. */
const unchanged = (uri: string, before: RemoteFile): Effect.Effect<void, EngineError> =>
  Effect.flatMap(Effect.option(ask(uri)), (now) =>
    Option.isSome(now) && (now.value.etag !== before.etag || now.value.bytes !== before.bytes)
      ? Effect.fail(bad(uri, "the server has another file by now than when the download began. Try again."))
      : Effect.void
  )

const take = Effect.fnUntraced(function* (
  uri: string,
  options: PullOptions,
  { going, killed }: Claim,
  statePath: string
): Effect.fn.Return<Pulled, EngineError | ModelStore.ModelStoreError> {
  const { directory } = options
  const remote = yield* ask(uri)
  const expected = options.sha256
  const fileName = yield* freeName(uri, namesFor(remote, options.name), directory, going?.file)
  // If the server has another file by now, the two would be mixed.
  const same = going !== undefined && going.etag === remote.etag && going.bytes === remote.bytes
  // Whether all was written when the process was killed, and whether the file is still the same where the server does not say
  // which one it is, only a hash tells.
  const doubtful = (killed || remote.etag === undefined) && (expected ?? remote.sha256) === undefined
  if (!same || doubtful || (killed && isPart(fileName))) yield* discard(unfinishedOf(directory, fileName))
  const state: Going = {
    uri,
    file: fileName,
    ...(remote.etag === undefined ? {} : { etag: remote.etag }),
    ...(remote.bytes === undefined ? {} : { bytes: remote.bytes })
  }
  yield* Effect.try({
    try: () => writeFileSync(statePath, JSON.stringify(state)),
    catch: (cause) => notWritable(uri, cause)
  })
  const fetched = fetch(uri, options, remote, fileName)
  const resumed = killed && unfinishedOf(directory, fileName).length > 0
  const { files, paths } = yield* resumed
    ? Effect.catchIf(
        fetched,
        ({ reason }) => reason === "bad_file",
        () => fetched
      )
    : fetched
  if ((expected ?? remote.sha256) === undefined) yield* Effect.tapError(unchanged(uri, remote), () => discard(paths))
  const record: ModelStore.ModelRecord = {
    schema: "writ.model.v1",
    uri,
    checksum:
      expected !== undefined ? "given" : remote.sha256 !== undefined && files.length === 1 ? "server" : "computed",
    recorded_at: DateTime.formatIso(yield* DateTime.now),
    files
  }
  yield* ModelStore.record(paths[0]!, record)
  const model = ModelStore.findByUri(directory, uri)
  if (model === undefined) return yield* failed(uri, `It is not in ${directory} any more.`)
  return { model, record, had: false }
})

/** The model of a URI: the one that is here, or downloaded now. */
export const pull = (uri: string, options: PullOptions): Effect.Effect<Pulled, EngineError> =>
  Effect.gen(function* () {
    const found = ModelStore.findByUri(options.directory, uri)
    const record = found?.record
    if (found !== undefined && record !== undefined) {
      const sha256 = record.files[0]?.sha256
      if (options.sha256 !== undefined && options.sha256 !== sha256) {
        return yield* failed(
          uri,
          `It is here, with the SHA-256 ${sha256}, and you expect ${options.sha256}. Remove it first.`
        )
      }
      return { model: found, record, had: true }
    }
    yield* ModelStore.prepare(options.directory)
    const path = goingPath(options.directory, uri)
    return yield* Effect.acquireUseRelease(
      claim(path, uri),
      (claimed) => take(uri, options, claimed, path),
      (_, exit) => release(path, Exit.isSuccess(exit))
    )
  }).pipe(Effect.catchTag("ModelStoreError", ({ message }) => Effect.fail(failed(uri, `${message}.`))))
