/**
 * Owns the artifact directory of each run. Names are content-addressed (`<first 16 hex of SHA-256>-<name>`), so writing the
 * same thing twice is one file, and a file is there whole or not at all: temporary sibling, fsync, rename.
 */

import { hash } from "node:crypto"
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync
} from "node:fs"
import { join } from "node:path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { ProducedArtifact } from "../tools/ToolCall.ts"

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
  }
>()("effect-writ/actors/ArtifactStore") {}

/** 1–128 characters of letters, digits, dot, dash and underscore, not starting with a dot. */
export const artifactName = /^(?!\.)[A-Za-z0-9._-]{1,128}$/

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

const publish = (directory: string, id: string, bytes: Uint8Array, sha256: string): void => {
  mkdirSync(directory, { recursive: true })
  const target = join(directory, id)
  if (existsSync(target)) {
    if (hash("sha256", readFileSync(target)) === sha256) return
    throw new Error("another file already has this name")
  }
  const temporary = join(directory, `.${id}.tmp`)
  try {
    const fd = openSync(temporary, "w")
    try {
      for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    renameSync(temporary, target)
    const parent = openSync(directory, "r")
    try {
      fsyncSync(parent)
    } finally {
      closeSync(parent)
    }
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
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

export const layerDirectory = (directoryOf: (runId: string) => string): Layer.Layer<ArtifactStore> =>
  Layer.succeed(
    ArtifactStore,
    ArtifactStore.of({
      put: Effect.fnUntraced(function* (runId, artifact) {
        yield* checkName(artifact.name)
        const directory = directoryOf(runId)
        const ref = refOf(artifact, (id) => join(directory, id))
        yield* Effect.try({
          try: () => publish(directory, ref.artifactId, artifact.bytes, ref.sha256),
          catch: failure(`artifact ${artifact.name} could not be written`)
        })
        return ref
      }),
      get: (runId, artifactId) =>
        Effect.try({
          try: () => readFileSync(join(directoryOf(runId), artifactId)),
          catch: failure(`artifact ${artifactId} could not be read`)
        })
    })
  )

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
