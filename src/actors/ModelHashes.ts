/**
 * Owns the file that remembers SHA-256 hashes of model files by path, size, modification time and inode, so that gigabytes
 * are not read again for each run. A file that changed in any of these is hashed again; the cache is never trusted over it,
 * and whatever is wrong with the cache only costs the time of a hash.
 */

import { readFileSync, statSync } from "node:fs"
import { dirname, resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { EngineError } from "../engine/EngineError.ts"
import * as GgufFile from "../engine/GgufFile.ts"
import { makeDirectory } from "./Directories.ts"
import { writeJson } from "./WholeFile.ts"

/** What tells one content of a path from another. Times and inodes are text: they do not fit a number. */
const Known = Schema.Struct({
  path: Schema.String,
  bytes: Schema.String,
  mtime_ns: Schema.String,
  inode: Schema.String,
  sha256: Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/))
})
type Known = typeof Known.Type
type Mark = Omit<Known, "sha256">

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Array(Known)))

/** Files that are remembered at most; the ones hashed last stay. */
const maxKnown = 64

const read = (cache: string): ReadonlyArray<Known> => {
  try {
    return Option.getOrElse(decode(readFileSync(cache, "utf8")), () => [])
  } catch {
    return []
  }
}

/** Two runs may write at a time, and the later one wins. */
const write = (cache: string, known: ReadonlyArray<Known>): void => {
  try {
    makeDirectory(dirname(cache))
    writeJson(cache, known)
  } catch {
    // It is hashed again next time.
  }
}

const markOf = (path: string): Mark | undefined => {
  try {
    const stat = statSync(path, { bigint: true })
    return { path, bytes: String(stat.size), mtime_ns: String(stat.mtimeNs), inode: String(stat.ino) }
  } catch {
    return undefined
  }
}

const same = (a: Mark, b: Mark | undefined): boolean =>
  b !== undefined && a.path === b.path && a.bytes === b.bytes && a.mtime_ns === b.mtime_ns && a.inode === b.inode

/**
 * SHA-256 of a model file in hex, from `cache` where that knows this very file. Interruptible; fails as reading the file does.
 */
export const sha256 = (file: string, cache: string): Effect.Effect<string, EngineError> =>
  Effect.gen(function* () {
    const path = resolve(file)
    const before = yield* Effect.sync(() => markOf(path))
    const found = before === undefined ? undefined : read(cache).find((known) => same(before, known))
    if (found !== undefined) return found.sha256
    const digest = yield* GgufFile.sha256(path)
    yield* Effect.sync(() => {
      // A file that changed while it was read has a hash of nothing in particular.
      if (before === undefined || !same(before, markOf(path))) return
      const others = read(cache).filter((known) => known.path !== path)
      write(cache, [...others, { ...before, sha256: digest }].slice(-maxKnown))
    })
    return digest
  })
