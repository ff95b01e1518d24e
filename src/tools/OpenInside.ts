/**
 * Opens what is inside a directory and nothing else. Every name is opened without following links, and the next one is looked up
 * inside what was opened, so a link swapped in between two steps gains nothing; what is open at the end is asked where it is.
 * Names have been checked before (`WorkspacePath`). Answers are values, or reasons in words without a path of this machine.
 */
import * as fs from "node:fs"
import { isMisspelt } from "./WorkspacePath.ts"

export const notFound = "there is no such file"
const viaLink = "it leads through a symbolic link, which is not followed"
const misspelt = "no file is spelled exactly like that"
const elsewhere = "it was moved while it was opened"
const foreign = "it has several names and belongs to somebody else: it may be a file from outside"

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = fs.constants
const hasProc = process.platform === "linux" && fs.existsSync("/proc/self/fd")

/** An open root. */
export interface Root {
  /** A prefix for names in it, good as long as it is open. */
  readonly path: string
  /** Where it is, as the system says; empty where the system does not. */
  readonly real: Buffer
  readonly uid: number
}

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

const reasons: ReadonlyMap<string, string> = new Map([
  ["ENOENT", notFound],
  ["ENOTDIR", "a component of the path is not a directory"],
  ["ELOOP", viaLink],
  ["EMLINK", viaLink],
  ["EACCES", "permission is denied"],
  ["EPERM", "permission is denied"],
  ["ENAMETOOLONG", "the path is too long"],
  ["ENXIO", "it is not a regular file"],
  ["EISDIR", "it is not a regular file"],
  ["EINVAL", "it is not a regular file"]
])

const reasonOf = (cause: unknown): string => {
  const code = (cause as { readonly code?: unknown } | undefined)?.code
  if (typeof code !== "string") throw cause
  return reasons.get(code) ?? `the system answered ${code}`
}

const whereIs = (descriptor: number): Buffer =>
  hasProc ? fs.readlinkSync(`/proc/self/fd/${descriptor}`, { encoding: "buffer" }) : Buffer.alloc(0)

/** The root itself may be a link: it is the user's choice, not the model's. */
export const atRoot = <A>(root: string, f: (root: Root) => A): A | string =>
  withDescriptor(root, O_RDONLY | O_DIRECTORY, (descriptor) =>
    f({
      path: hasProc ? `/proc/self/fd/${descriptor}` : fs.realpathSync(root),
      real: whereIs(descriptor),
      uid: fs.fstatSync(descriptor).uid
    })
  )

const sameFile = (left: fs.Stats, right: fs.Stats | undefined): boolean =>
  right !== undefined && left.ino === right.ino && left.dev === right.dev

const statOf = (path: string): fs.Stats | undefined => fs.lstatSync(path, { throwIfNoEntry: false })

/** What lies under this name, by exactly this spelling, and is no link. */
const looked = (directory: string, name: string): fs.Stats | string => {
  const stat = statOf(`${directory}/${name}`)
  if (stat === undefined) return notFound
  if (stat.isSymbolicLink()) return viaLink
  const isSame = (other: string) => sameFile(stat, statOf(`${directory}/${other}`))
  return isMisspelt(name, isSame, () => fs.readdirSync(directory)) ? misspelt : stat
}

/** The directory of `parts` under an open directory, without following one link; `f` gets a path prefix that stays there. */
export const inDirectory = <A>(base: string, parts: ReadonlyArray<string>, f: (directory: string) => A): A | string => {
  const [first, ...rest] = parts
  if (first === undefined) return f(base)
  // O_DIRECTORY and O_NOFOLLOW together report a link as "not a directory": look first, for the sake of the message.
  const stat = looked(base, first)
  if (typeof stat === "string") return stat
  const next = `${base}/${first}`
  return withDescriptor(next, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, (descriptor) =>
    sameFile(stat, fs.fstatSync(descriptor))
      ? inDirectory(hasProc ? `/proc/self/fd/${descriptor}` : next, rest, f)
      : elsewhere
  )
}

/** A file with several names may be one from outside. One's own is one's own under every name; somebody else's is not. */
export const isForeign = (stat: fs.Stats, { uid }: Root): boolean => stat.nlink > 1 && stat.uid !== uid

const isInside = (descriptor: number, { real }: Root): boolean => {
  const prefix = real.at(-1) === 0x2f ? real : Buffer.concat([real, Buffer.from("/")])
  return whereIs(descriptor).subarray(0, prefix.length).equals(prefix)
}

const specialReason = (stat: fs.Stats): string | undefined => {
  if (stat.isFile()) return undefined
  return stat.isDirectory() ? "it is a directory, not a file" : "it is not a regular file"
}

/** Runs `f` on the open regular file of `parts` inside `root`. */
export const withFile = <A>(
  root: string,
  parts: ReadonlyArray<string>,
  f: (descriptor: number, stat: fs.Stats) => A
): A | string =>
  atRoot(root, (open) =>
    inDirectory(open.path, parts.slice(0, -1), (directory) => {
      const before = looked(directory, parts.at(-1)!)
      if (typeof before === "string") return before
      const path = `${directory}/${parts.at(-1)}`
      const special = specialReason(before)
      if (special !== undefined) return special
      // Non-blocking, so that a FIFO put there meanwhile cannot hold the thread.
      return withDescriptor(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, (descriptor) => {
        const stat = fs.fstatSync(descriptor)
        if (!sameFile(stat, before)) return "it was replaced while it was opened"
        if (isForeign(stat, open)) return foreign
        // Without descriptor paths a parent could have been swapped: ask where the file really is.
        const inside = hasProc
          ? isInside(descriptor, open)
          : fs.realpathSync(path) === `${fs.realpathSync(root)}/${parts.join("/")}`
        return inside ? f(descriptor, stat) : elsewhere
      })
    })
  ) as A | string

/** Why what lies at `parts`, or will, is not plainly inside `root`. What is not there yet is inside. */
export const leavesBy = (root: string, parts: ReadonlyArray<string>): string | undefined => {
  const follow = (base: string, [first, ...rest]: ReadonlyArray<string>): string | undefined => {
    if (first === undefined) return undefined
    const stat = looked(base, first)
    if (typeof stat === "string") return stat === notFound ? undefined : stat
    if (stat.isDirectory()) return inDirectory(base, [first], (inner) => follow(inner, rest))
    return rest.length > 0 ? "a component of the path is not a directory" : specialReason(stat)
  }
  return atRoot(root, ({ path }) => follow(path, parts))
}
