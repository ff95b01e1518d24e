/** Files that say who is at work on something, made with `wx` so that one only can. What an ended process left is taken away here. */
import { renameSync, rmSync, writeFileSync } from "node:fs"
import { textOf } from "./WholeFile.ts"

/**
 * Removes a claim that says `left`, and no other: of two that come at once, the later one must not remove what the other has
 * just made. So it is moved away first, which happens to one of them only, and looked at then. Throws as the file system does.
 */
export const takeAway = (path: string, left: string): void => {
  const moved = `${path}.${process.pid}`
  try {
    renameSync(path, moved)
  } catch (cause) {
    if ((cause as { readonly code?: unknown }).code === "ENOENT") return
    throw cause
  }
  try {
    const found = textOf(moved)
    if (found !== left) writeFileSync(path, found ?? "", { flag: "wx" })
  } finally {
    rmSync(moved, { force: true })
  }
}
