/**
 * Owns the artifact directory of each run. Names are content-addressed (`<first 16 hex of SHA-256>-<name>`), so writing the
 * same thing twice is one file, and a file is there whole or not at all: temporary sibling, fsync, rename.
 */

import { hash } from "node:crypto"
import {
  closeSync,
  fsyncSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  writeSync
} from "node:fs"
import { join, resolve } from "node:path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { ProducedArtifact } from "../tools/ToolCall.ts"
import { makeDirectory, syncDirectory } from "./Directories.ts"

export class ArtifactError extends Schema.TaggedError<ArtifactError>()("ArtifactError", {
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

/** A published artifact. `path` only where there is a file. */
export interface ArtifactRef {
  readonly artifactId: string
  readonly name: string
  readonly sha256: string
  readonly bytes: number
  readonly mediaType: string
  readonly path: string | undefined
}

export class ArtifactStore extends Context.Service<
  ArtifactStore,
  {
    readonly put: (runId: string, artifact: ProducedArtifact) => Effect.Effect<ArtifactRef, ArtifactError>
    /** The bytes of a published artifact. */
    readonly get: (runId: string, artifactId: string) => Effect.Effect<Uint8Array, ArtifactError>
    /** Absolute path of the run's artifacts, where they are files: what tools that read them are told. */
    readonly directory?: (runId: string) => string
  }
>()("effect-writ/actors/ArtifactStore") {}

/** 1–128 characters of letters, digits, dot, dash and underscore, not starting with a dot. */
export const artifactName = /^(?!\.)[A-Za-z0-9._-]{1,128}$/

/** What one run may keep. */
export interface ArtifactQuota {
  readonly files: number
  readonly bytes: number
}

export const standardQuota: ArtifactQuota = { files: 1000, bytes: 1024 ** 3 }

const refOf = (artifact: ProducedArtifact, path: (id: string) => string | undefined): ArtifactRef => {
  const sha256 = hash("sha256", artifact.bytes)
  const artifactId = `${sha256.slice(0, 16)}-${artifact.name}`
  return {
    artifactId,
    name: artifact.name,
    sha256,
    bytes: artifact.bytes.length,
    mediaType: artifact.mediaType,
    path: path(artifactId)
  }
}

const failure = (message: string) => (cause: unknown) =>
  new ArtifactError({ message: `${message}: ${cause instanceof Error ? cause.message : String(cause)}`, cause })

/** A name that is taken by something that is no file, by a link for instance, is nobody's artifact. */
const lookAt = (path: string): Stats | undefined => {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat !== undefined && !stat.isFile()) throw new Error("its name is taken by something that is no file")
  return stat
}

/** Exclusively: what lies under the temporary name, a link perhaps, is never written through. */
const openNew = (path: string): number => {
  rmSync(path, { force: true })
  return openSync(path, "wx")
}

/** Is the artifact there already? */
const isPublished = (target: string, sha256: string): boolean => {
  if (lookAt(target) === undefined) return false
  if (hash("sha256", readFileSync(target)) === sha256) return true
  throw new Error("another file already has this name")
}

const publish = (directory: string, id: string, bytes: Uint8Array): void => {
  const target = join(directory, id)
  const temporary = join(directory, `.${id}.tmp`)
  try {
    const fd = openNew(temporary)
    try {
      for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    renameSync(temporary, target)
    syncDirectory(directory)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}

interface Kept {
  files: number
  bytes: number
}

const keptIn = (directory: string): Kept => {
  const kept: Kept = { files: 0, bytes: 0 }
  for (const name of readdirSync(directory)) {
    const stat = lstatSync(join(directory, name), { throwIfNoEntry: false })
    if (stat?.isFile() !== true) continue
    kept.files++
    kept.bytes += stat.size
  }
  return kept
}

const checkRoom = ({ bytes, files }: Kept, more: number, quota: ArtifactQuota): void => {
  if (files + 1 > quota.files) throw new Error(`the run has ${files} artifacts, at most ${quota.files} are kept`)
  if (bytes + more > quota.bytes) {
    throw new Error(`with it the run's artifacts would have ${bytes + more} bytes, at most ${quota.bytes} are kept`)
  }
}

const checkName = (name: string) =>
  artifactName.test(name)
    ? Effect.void
    : Effect.fail(
        new ArtifactError({
          message: `${JSON.stringify(name)} is not an artifact name: use 1 to 128 of A-Z a-z 0-9 . _ - and no leading dot`
        })
      )

/** A run that has used up its quota keeps what it has; what does not fit any more fails. */
export const layerDirectory = (
  directoryOf: (runId: string) => string,
  quota: ArtifactQuota = standardQuota
): Layer.Layer<ArtifactStore> =>
  Layer.sync(ArtifactStore, () => {
    /** By directory, since the parts of a run share theirs. */
    const known = new Map<string, Kept>()
    const add = (directory: string, { artifactId, bytes: size, sha256 }: ArtifactRef, bytes: Uint8Array): void => {
      makeDirectory(directory)
      if (isPublished(join(directory, artifactId), sha256)) return
      const kept = known.get(directory) ?? keptIn(directory)
      checkRoom(kept, size, quota)
      publish(directory, artifactId, bytes)
      known.set(directory, { files: kept.files + 1, bytes: kept.bytes + size })
    }
    return ArtifactStore.of({
      put: Effect.fnUntraced(function* (runId, artifact) {
        yield* checkName(artifact.name)
        const directory = directoryOf(runId)
        const ref = refOf(artifact, (id) => join(directory, id))
        yield* Effect.try({
          try: () => add(directory, ref, artifact.bytes),
          catch: failure(`artifact ${artifact.name} could not be written`)
        })
        return ref
      }),
      get: (runId, artifactId) =>
        Effect.try({
          try: () => readFileSync(join(directoryOf(runId), artifactId)),
          catch: failure(`artifact ${artifactId} could not be read`)
        }),
      directory: (runId) => resolve(directoryOf(runId))
    })
  })

export const layerMemory: Layer.Layer<ArtifactStore> = Layer.sync(ArtifactStore, () => {
  const blobs = new Map<string, Uint8Array>()
  return ArtifactStore.of({
    put: Effect.fnUntraced(function* (runId, artifact) {
      yield* checkName(artifact.name)
      const ref = refOf(artifact, () => undefined)
      blobs.set(`${runId}/${ref.artifactId}`, artifact.bytes)
      return ref
    }),
    get: (runId, artifactId) => {
      const bytes = blobs.get(`${runId}/${artifactId}`)
      return bytes === undefined
        ? Effect.fail(new ArtifactError({ message: `run ${runId} has no artifact ${artifactId}` }))
        : Effect.succeed(bytes)
    }
  })
})
