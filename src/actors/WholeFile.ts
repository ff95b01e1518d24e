/**
 * Small files as a whole. Written so that the old one or the new one is there, never a part, also after a crash of the
 * machine. Makes no directory. A file that names who is at work beside it, or that several threads write, has rules of its own elsewhere.
 */
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs"

/** What a file says, if it can be read. */
export const textOf = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return undefined
  }
}

/** Puts `pieces`, in order, where `path` is. Throws where that cannot be done; then what was there is still there. */
export const writeWhole = (path: string, pieces: Iterable<string>): void => {
  const temporary = `${path}.${process.pid}.tmp`
  try {
    const file = openSync(temporary, "w")
    try {
      for (const piece of pieces) {
        const bytes = Buffer.from(piece)
        for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done)
      }
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}

/** A value as JSON for people, with an end of line. */
export const writeJson = (path: string, value: unknown): void =>
  writeWhole(path, [`${JSON.stringify(value, null, 2)}\n`])
