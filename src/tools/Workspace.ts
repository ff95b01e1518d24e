/**
 * A directory no path can leave. Every component is opened without following links and the next one is looked up
 * inside what was opened, so a link swapped in between two steps gains nothing. Regular files only, bounded reads,
 * and no message that shows where on the machine the workspace is.
 */

import * as fs from "node:fs"
import * as Effect from "effect/Effect"
import { ToolError } from "./ToolError.ts"

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
    return typeof text === "string"
      ? Effect.succeed(text)
      : refuse("execution_failed", path, `it is not UTF-8 text (byte ${text})`)
  })

/**
 * The regular files of the workspace, recursively. Left out: links, special files, what cannot be opened, and names that
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

const noWorkspace = "this run has no workspace"
const notFound = "there is no such file"
const viaLink = "it leads through a symbolic link, which is not followed"

const refuse = (kind: ToolError["kind"], path: string, reason: string): Effect.Effect<never, ToolError> =>
  Effect.fail(
    new ToolError({
      kind,
      message: `cannot read ${path === "" ? "the workspace" : JSON.stringify(path.slice(0, 200))}: ${reason}`,
      path: path === "" ? "" : "path"
    })
  )

/** The components of a relative path, or why it is none. */
const componentsOf = (path: string): ReadonlyArray<string> | string => {
  if (path === "") return "the path is empty"
  if (path.includes("\0")) return "the path contains a NUL character"
  if (path.includes("\\")) return "components are separated by /, not by a backslash"
  if (path.startsWith("/") || /^[A-Za-z]:/.test(path)) return "the path must be relative to the workspace"
  if (Buffer.byteLength(path) > 4096) return "the path is too long"
  const parts = path.split("/").filter((part) => part !== "." && part !== "")
  if (parts.includes("..")) return "the path must not contain .."
  return parts.length === 0 || path.endsWith("/") ? "it names a directory, not a file" : parts
}

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = fs.constants
const hasProc = process.platform === "linux" && fs.existsSync("/proc/self/fd")

/** Runs `f` on an open descriptor and closes it. A system error becomes its reason; any other error goes on. */
const withDescriptor = <A>(path: string, flags: number, f: (descriptor: number) => A): A | string => {
  let descriptor: number
  try {
    descriptor = fs.openSync(path, flags)
  } catch (cause) {
    return reasonOf(cause)
  }
  try {
    return f(descriptor)
  } catch (cause) {
    return reasonOf(cause)
  } finally {
    fs.closeSync(descriptor)
  }
}

const reasonOf = (cause: unknown): string => {
  const code = (cause as { readonly code?: unknown } | undefined)?.code
  switch (code) {
    case "ENOENT":
      return notFound
    case "ENOTDIR":
      return "a component of the path is not a directory"
    case "ELOOP":
    case "EMLINK":
      return viaLink
    case "EACCES":
    case "EPERM":
      return "permission is denied"
    case "ENAMETOOLONG":
      return "the path is too long"
    case "ENXIO":
    case "EISDIR":
    case "EINVAL":
      return "it is not a regular file"
    default:
      if (typeof code === "string") return `the system answered ${code}`
      throw cause
  }
}

/** The directory of `parts` under an open directory, without following one link; `f` gets a path prefix that stays there. */
const inDirectory = <A>(base: string, parts: ReadonlyArray<string>, f: (directory: string) => A): A | string => {
  const [first, ...rest] = parts
  if (first === undefined) return f(base)
  const next = `${base}/${first}`
  // O_DIRECTORY and O_NOFOLLOW together report a link as "not a directory": look first, for the sake of the message.
  if (isLink(next)) return viaLink
  return withDescriptor(next, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, (descriptor) =>
    inDirectory(hasProc ? `/proc/self/fd/${descriptor}` : next, rest, f)
  )
}

const isLink = (path: string): boolean => fs.lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true

/** The root itself may be a link: it is the user's choice, not the model's. */
const atRoot = <A>(root: string, f: (directory: string) => A): A | string =>
  withDescriptor(root, O_RDONLY | O_DIRECTORY, (descriptor) =>
    f(hasProc ? `/proc/self/fd/${descriptor}` : fs.realpathSync(root))
  )

const readBytes = (root: string, parts: ReadonlyArray<string>): Uint8Array | string =>
  atRoot(root, (base) =>
    inDirectory(base, parts.slice(0, -1), (directory) => {
      const path = `${directory}/${parts.at(-1)}`
      const before = fs.lstatSync(path)
      if (before.isSymbolicLink()) return viaLink
      if (!before.isFile()) return specialReason(before)
      // Non-blocking, so that a FIFO put there meanwhile cannot hold the thread.
      return withDescriptor(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, (descriptor) => {
        const stat = fs.fstatSync(descriptor)
        if (!stat.isFile()) return specialReason(stat)
        if (stat.ino !== before.ino || stat.dev !== before.dev) return "it was replaced while it was opened"
        // Without descriptor paths a parent could have been swapped: ask where the file really is.
        if (!hasProc && fs.realpathSync(path) !== `${fs.realpathSync(root)}/${parts.join("/")}`) return viaLink
        return readBounded(descriptor)
      })
    })
  ) as Uint8Array | string

const specialReason = (stat: fs.Stats): string =>
  stat.isDirectory() ? "it is a directory" : "it is not a regular file"

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

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** The text, or the offset of the first byte that is not UTF-8. */
const decode = (bytes: Uint8Array): string | number => {
  try {
    return strictUtf8.decode(bytes)
  } catch {
    return firstInvalid(bytes)
  }
}

/** The first byte of the first sequence that is not UTF-8: found by halving, since prefixes of text are text. */
const firstInvalid = (bytes: Uint8Array): number => {
  let [low, high] = [0, bytes.length]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (decodes(bytes.subarray(0, middle + 1), true)) low = middle + 1
    else high = middle
  }
  if (decodes(bytes.subarray(0, low), false)) return low
  // The sequence before the offending byte was never finished: it starts at its lead byte.
  let start = low - 1
  while (start > 0 && (bytes[start]! & 0xc0) === 0x80) start -= 1
  return start
}

/** `open`: the last sequence may be unfinished. */
const decodes = (bytes: Uint8Array, open: boolean): boolean => {
  try {
    new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: open })
    return true
  } catch {
    return false
  }
}

const walk = (root: string): Listing | string => {
  const paths: Array<string> = []
  let [complete, entries] = [true, 0]
  const visit = (directory: string, prefix: string, depth: number): void => {
    for (const name of fs.readdirSync(directory).sort()) {
      if (name.startsWith(".")) continue
      entries += 1
      if (paths.length >= maxFiles || entries > maxEntries) {
        complete = false
        return
      }
      const stat = fs.lstatSync(`${directory}/${name}`, { throwIfNoEntry: false })
      if (stat?.isFile() === true) paths.push(`${prefix}${name}`)
      if (stat?.isDirectory() !== true) continue
      if (depth >= maxDirectoryDepth) complete = false
      else inDirectory(directory, [name], (inner) => visit(inner, `${prefix}${name}/`, depth + 1))
    }
  }
  const fault = atRoot(root, (base) => visit(base, "", 0))
  return fault ?? { paths: paths.sort(), complete }
}
