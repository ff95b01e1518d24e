/**
 * What a run has published so far, for tools that look at it: names, sizes, texts by parts. Reads the artifact directory and
 * nothing else (`OpenInside`); writing is `ArtifactStore`'s.
 */
import * as fs from "node:fs"
import * as Effect from "effect/Effect"
import { decode } from "./FileText.ts"
import { nearest } from "./Nearest.ts"
import { atRoot, notFound, withFile } from "./OpenInside.ts"
import { ToolError } from "./ToolError.ts"

export interface Artifact {
  readonly name: string
  /** The name with the beginning of its digest before it: tells artifacts of one name apart. */
  readonly id: string
  readonly bytes: number
}

/** Most artifacts that are listed, and most directory entries that are looked at for them. */
export const maxListed = 200
const maxEntries = 10_000

export interface Listing {
  /** By name, then by id. */
  readonly artifacts: ReadonlyArray<Artifact>
  readonly complete: boolean
}

const fail = (kind: ToolError["kind"], message: string, path = "") =>
  Effect.fail(new ToolError({ kind, message, path }))

const noDirectory = "this run keeps no artifacts in files"

const byName = (left: Artifact, right: Artifact): number =>
  left.name < right.name || (left.name === right.name && left.id < right.id) ? -1 : 1

const namesIn = (directory: string): { readonly names: ReadonlyArray<string>; readonly all: boolean } => {
  const names: Array<string> = []
  const open = fs.opendirSync(directory)
  try {
    for (let entry = open.readSync(); entry !== null; entry = open.readSync()) {
      if (names.length >= maxEntries) return { names, all: false }
      names.push(entry.name)
    }
    return { names, all: true }
  } finally {
    open.closeSync()
  }
}

/** Regular files with the name of an artifact. Before the first one is published there is no directory. */
const look = (directory: string): Listing | string => {
  const found = atRoot(directory, ({ path }) => {
    const { all, names } = namesIn(path)
    const artifacts = names.flatMap((id): ReadonlyArray<Artifact> => {
      const name = /^[0-9a-f]{16}-((?!\.)[A-Za-z0-9._-]{1,128})$/.exec(id)?.[1]
      const stat = name === undefined ? undefined : fs.lstatSync(`${path}/${id}`, { throwIfNoEntry: false })
      return stat?.isFile() === true ? [{ name: name!, id, bytes: stat.size }] : []
    })
    return { artifacts: artifacts.sort(byName), complete: all }
  })
  return found === notFound ? { artifacts: [], complete: true } : found
}

const all = (directory: string | undefined): Effect.Effect<Listing, ToolError> =>
  Effect.suspend(() => {
    if (directory === undefined) return fail("refused", noDirectory)
    const found = look(directory)
    return typeof found === "string"
      ? fail("execution_failed", `cannot list the artifacts: ${found}`)
      : Effect.succeed(found)
  })

/** The artifacts of the run, as far as they fit. */
export const list = (directory: string | undefined): Effect.Effect<Listing, ToolError> =>
  Effect.map(all(directory), ({ artifacts, complete }) => ({
    artifacts: artifacts.slice(0, maxListed),
    complete: complete && artifacts.length <= maxListed
  }))

/** A part of an artifact's text. */
export interface Part {
  readonly artifact: Artifact
  readonly text: string
  /** The byte at which the rest begins; nothing where there is no rest. */
  readonly next: number | undefined
}

const shown = 20

const named = (artifacts: ReadonlyArray<Artifact>, wanted: string): Effect.Effect<Artifact, ToolError> => {
  const label = JSON.stringify(wanted.slice(0, 80))
  const found = artifacts.filter(({ id, name }) => id === wanted || name === wanted)
  if (found.length === 1) return Effect.succeed(found[0]!)
  if (found.length > 1) {
    const ids = found.slice(0, shown).map(({ id }) => id)
    return fail(
      "invalid_arguments",
      `${found.length} artifacts are called ${label}; give one of the ids ${ids.join(", ")}`,
      "name"
    )
  }
  const names = [...new Set(artifacts.map(({ name }) => name))]
  const near = nearest(wanted, names)
  const listed =
    names.length === 0
      ? "the run has none so far"
      : `artifacts: ${names.slice(0, shown).join(", ")}${names.length > shown ? ", …" : ""}`
  return fail(
    "not_found",
    `there is no artifact ${label}; ${near === undefined ? listed : `did you mean ${near}?`}`,
    "name"
  )
}

const isInside = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

/** The bytes from `offset`, `length` at most, with neither end inside a character. */
const partOf = (descriptor: number, size: number, offset: number, length: number) => {
  // Up to three more on each side: a character has at most four.
  const buffer = Buffer.alloc(Math.min(length + 6, size - offset))
  let filled = 0
  while (filled < buffer.length) {
    const count = fs.readSync(descriptor, buffer, filled, buffer.length - filled, offset + filled)
    if (count === 0) break
    filled += count
  }
  const bytes = buffer.subarray(0, filled)
  let start = 0
  while (offset > 0 && start < 3 && isInside(bytes[start])) start += 1
  let end = Math.min(start + length, bytes.length)
  for (let back = 0; back < 3 && end > start && isInside(bytes[end]); back++) end -= 1
  // One character at least, however many bytes it has.
  let least = Math.min(start + 1, bytes.length)
  while (isInside(bytes[least])) least += 1
  end = Math.max(end, least)
  return { bytes: bytes.subarray(start, end), from: offset + start, to: offset + end }
}

/** Text of the artifact with this name or id, from a byte on. */
export const read = Effect.fnUntraced(function* (
  directory: string | undefined,
  wanted: string,
  offset: number,
  length: number
): Effect.fn.Return<Part, ToolError> {
  const artifact = yield* named((yield* all(directory)).artifacts, wanted)
  const about = `cannot read ${JSON.stringify(artifact.name)}`
  const part = withFile(directory!, [artifact.id], (descriptor, { size }) =>
    offset > size ? `it has ${size} bytes` : { size, ...partOf(descriptor, size, offset, length) }
  )
  if (typeof part === "string") {
    const outside = part.startsWith("it has ")
    return yield* fail(outside ? "invalid_arguments" : "refused", `${about}: ${part}`, outside ? "offset" : "name")
  }
  const text = decode(part.bytes, part.from === 0 ? part.bytes : new Uint8Array(), part.from)
  if (typeof text !== "string") return yield* fail("execution_failed", `${about}: ${text.reason}`, "name")
  return { artifact, text, next: part.to < part.size ? part.to : undefined }
})
