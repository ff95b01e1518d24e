/**
 * Files that say who is at work on something: made whole, by one only. What an ended process left is taken away by one at a
 * time, who looks once more, so that a claim that is alive is never lost. Who is alive is the caller's to say.
 */
import { randomBytes } from "node:crypto"
import { linkSync, rmSync, writeFileSync } from "node:fs"
import { isAlive } from "../tools/Alive.ts"
import { textOf } from "./WholeFile.ts"

/** File systems that know no links, as on sticks. */
const noLinks: ReadonlySet<unknown> = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"])

const codeOf = (cause: unknown): unknown => (cause as { readonly code?: unknown }).code

/** Makes a claim; false where there is one. It has its text from the beginning. Throws as the file system does. */
export const makeClaim = (path: string, text: string): boolean => {
  // Two machines, or containers, can have the same number at work in one directory.
  const own = `${path}.${process.pid}.${randomBytes(6).toString("hex")}`
  try {
    writeFileSync(own, text, { flag: "wx" })
    try {
      linkSync(own, path)
    } catch (cause) {
      if (!noLinks.has(codeOf(cause))) throw cause
      writeFileSync(path, text, { flag: "wx" })
    }
    return true
  } catch (cause) {
    if (codeOf(cause) === "EEXIST") return false
    throw cause
  } finally {
    rmSync(own, { force: true })
  }
}

/** Removes a claim that says `left`, and no other; it may be there still where somebody else is at that. */
export const takeAway = (path: string, left: string): void => {
  const taking = `${path}.taking`
  const me = String(process.pid)
  if (!makeClaim(taking, me)) {
    const other = Number(textOf(taking) ?? 0)
    // Nothing comes between these lines here: under this process's number it is another's too, which had it before.
    if (other > 0 && other !== process.pid && isAlive(other)) return
    // Left by one that was ended within these few lines.
    rmSync(taking, { force: true })
    if (!makeClaim(taking, me)) return
  }
  try {
    if (textOf(path) === left) rmSync(path, { force: true })
  } finally {
    rmSync(taking, { force: true })
  }
}
