/**
 * Looks at paths, makes directories and puts the names in them on disk. Node's own `mkdir` with `recursive` never returns in a
 * file system that makes no directories (/proc), so everything here that makes one goes level by level. Opens and reads no
 * file.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, statSync } from "node:fs"
import { dirname, normalize } from "node:path"

/** What the system said, without the call and the path that Node puts behind it. */
export const reasonOf = (cause: unknown): string =>
  cause instanceof Error ? cause.message.replace(/, \w+ '.*'$/s, "") : String(cause)

/** What lies at a path, links followed. `Unknown` where the system does not say: a loop of links, a name too long. */
export type Place =
  | { readonly _tag: "File" | "Directory" | "Other" | "Nothing" }
  | { readonly _tag: "Unknown"; readonly reason: string }

/** Looks at a path and never throws. */
export const look = (path: string): Place => {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    if (found === undefined) return { _tag: "Nothing" }
    return { _tag: found.isFile() ? "File" : found.isDirectory() ? "Directory" : "Other" }
  } catch (cause) {
    return { _tag: "Unknown", reason: reasonOf(cause) }
  }
}

/** With a code, like every other error of the file system. */
const impossible = (message: string): Error => Object.assign(new Error(message), { code: "ENOTDIR" })

/** The directories that are missing on the way to `directory`, outermost first, and the one that holds them all. */
export const missingOf = (directory: string): { readonly base: string; readonly missing: ReadonlyArray<string> } => {
  const missing: Array<string> = []
  let base = normalize(directory)
  for (let place = look(base); place._tag !== "Directory"; place = look(base)) {
    if (place._tag === "Unknown") throw impossible(place.reason)
    if (place._tag !== "Nothing") throw impossible(`${base} is not a directory`)
    missing.unshift(base)
    base = dirname(base)
  }
  return { base, missing }
}

/** Makes `directory` and what is missing above it. Throws where that cannot be done; it being there is fine. */
export const makeDirectory = (directory: string): void => {
  for (const level of missingOf(directory).missing) {
    try {
      mkdirSync(level)
    } catch (cause) {
      // Another process may have been faster.
      if (look(level)._tag !== "Directory") throw cause
    }
  }
}

/** A name that is new in `directory` survives a crash of the machine once this returns. Throws where that cannot be had. */
export const syncDirectory = (directory: string): void => {
  const fd = openSync(directory, "r")
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
