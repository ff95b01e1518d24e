/**
 * The directory whose files tools may read. No path leads out of it (`WorkspacePath`, `OpenInside`), reads are bounded while
 * reading, and no message shows where on the machine it is.
 */

import * as fs from "node:fs"
import * as Effect from "effect/Effect"
import { decode } from "./FileText.ts"
import {
  atRoot,
  inDirectory,
  isForeign,
  leavesBy as leavesInside,
  notFound,
  type Root,
  withFile
} from "./OpenInside.ts"
import { ToolError } from "./ToolError.ts"
import { componentsOf } from "./WorkspacePath.ts"

/** Most bytes one file may have to be read. */
export const maxFileBytes = 1024 * 1024

/** Most files a listing or a search looks at, and how deep it goes. */
export const maxFiles = 200
export const maxDirectoryDepth = 16
/** Most directory entries one walk looks at, whatever they are. */
const maxEntries = 10_000

/** A listing in code-unit order; `complete` is false if one of the bounds cut it. */
export interface Listing {
  readonly paths: ReadonlyArray<string>
  readonly complete: boolean
}

/** The text of a file inside `root`. `path` is relative, with `/` between components. */
export const readText = (root: string | undefined, path: string): Effect.Effect<string, ToolError> =>
  Effect.suspend(() => {
    const parts = componentsOf(path)
    if (typeof parts === "string") return refuse("refused", path, parts)
    if (root === undefined) return refuse("refused", path, noWorkspace)
    const bytes = readBytes(root, parts)
    if (typeof bytes === "string") return refuse(bytes === notFound ? "not_found" : "refused", path, bytes)
    const text = decode(bytes)
    return typeof text === "string" ? Effect.succeed(text) : refuse("execution_failed", path, text.reason)
  })

/**
 * The regular files of the workspace, recursively. Left out: links, special files, what cannot be read, and names that
 * start with a dot (the run's own directory is one); such a file can still be read by its name.
 */
export const list = (root: string | undefined): Effect.Effect<Listing, ToolError> =>
  Effect.suspend(() => {
    if (root === undefined) return refuse("refused", "", noWorkspace)
    const listing = walk(root)
    return typeof listing === "string" ? refuse("execution_failed", "", listing) : Effect.succeed(listing)
  })

/** A file that `list` gave, if it still is readable text of bounded size. */
export const readTextIfAny = (root: string, path: string): string | undefined => {
  const bytes = readBytes(root, path.split("/"))
  if (typeof bytes === "string") return undefined
  const text = decode(bytes)
  return typeof text === "string" ? text : undefined
}

/**
 * Why a path, of a file or a directory, there or not yet, leads out of the workspace; nothing if it does not. For programs that
 * open it themselves: between this look and theirs the world may move.
 */
export const leavesBy = (root: string | undefined, path: string): string | undefined => {
  if (root === undefined) return noWorkspace
  // Here a directory is as good as a file.
  const plain = withoutEnd(path)
  if (plain === "." || (plain === "" && !path.startsWith("/"))) return undefined
  const parts = componentsOf(plain === "" ? path : plain)
  return typeof parts === "string" ? parts : leavesInside(root, parts)
}

/** Without slashes, and dots that stand alone between them, at the end. No pattern: one would try every way to part them. */
const withoutEnd = (path: string): string => {
  let end = path.length
  while (path[end - 1] === "/" || (path[end - 1] === "." && path[end - 2] === "/")) end -= 1
  return path.slice(0, end)
}

const noWorkspace = "this run has no workspace"

const refuse = (kind: ToolError["kind"], path: string, reason: string): Effect.Effect<never, ToolError> =>
  Effect.fail(
    new ToolError({
      kind,
      message: `cannot read ${path === "" ? "the workspace" : JSON.stringify(path.slice(0, 200))}: ${reason}`,
      path: path === "" ? "" : "path"
    })
  )

const readBytes = (root: string, parts: ReadonlyArray<string>): Uint8Array | string =>
  withFile<Uint8Array | string>(root, parts, readBounded)

/** Reads to the end or to the bound, whatever size the file claims to have. */
const readBounded = (descriptor: number): Uint8Array | string => {
  const buffer = Buffer.allocUnsafe(maxFileBytes + 1)
  let length = 0
  while (length <= maxFileBytes) {
    const count = fs.readSync(descriptor, buffer, length, buffer.length - length, null)
    if (count === 0) return buffer.subarray(0, length)
    length += count
  }
  return `it has more than ${maxFileBytes} bytes`
}

/** Names in a directory, at most `most`, in code-unit order. */
const namesIn = (directory: string, most: number): { readonly names: ReadonlyArray<string>; readonly all: boolean } => {
  const names: Array<string> = []
  const open = fs.opendirSync(directory)
  try {
    for (let entry = open.readSync(); entry !== null; entry = open.readSync()) {
      if (names.length >= most) return { names: names.sort(), all: false }
      names.push(entry.name)
    }
    return { names: names.sort(), all: true }
  } finally {
    open.closeSync()
  }
}

const walk = (root: string): Listing | string => {
  const paths: Array<string> = []
  let [complete, entries] = [true, 0]
  const visit = (open: Root, directory: string, prefix: string, depth: number): void => {
    const { all, names } = namesIn(directory, maxEntries - entries)
    if (!all) complete = false
    entries += names.length
    for (const name of names) {
      // What could not be asked for by this name is not listed under it.
      if (name.startsWith(".") || typeof componentsOf(name) === "string") continue
      if (paths.length >= maxFiles) {
        complete = false
        return
      }
      const stat = fs.lstatSync(`${directory}/${name}`, { throwIfNoEntry: false })
      if (stat?.isFile() === true && !isForeign(stat, open)) paths.push(`${prefix}${name}`)
      if (stat?.isDirectory() !== true) continue
      if (depth >= maxDirectoryDepth) complete = false
      else inDirectory(directory, [name], (inner) => visit(open, inner, `${prefix}${name}/`, depth + 1))
    }
  }
  const fault = atRoot(root, (open) => visit(open, open.path, "", 0))
  return fault ?? { paths: paths.sort(), complete }
}
