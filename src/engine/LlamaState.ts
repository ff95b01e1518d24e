/**
 * Files that hold the state of a sequence: written by native code, hashed by us, and never given back to native code before
 * length and hash are what they were. A file that was cut short would take the whole process along. Knows no tokens.
 */
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { isAlive } from "../tools/Alive.ts"

/** A state in a file, and how it is known again. */
export interface StateFile {
  readonly path: string
  readonly bytes: number
  /** SHA-256 in hex. */
  readonly sha256: string
}

const prefix = "writ-state-"

/** Length and hash of a file, read in pieces so that the thread goes on with other things between them. */
export const fingerprint = async (path: string): Promise<Omit<StateFile, "path">> => {
  const hash = createHash("sha256")
  let bytes = 0
  for await (const piece of Fs.createReadStream(path, { highWaterMark: 2 ** 20 })) {
    hash.update(piece as Buffer)
    bytes += (piece as Buffer).length
  }
  return { bytes, sha256: hash.digest("hex") }
}

/** Is the file what it was? */
export const isSound = async ({ bytes, path, sha256 }: StateFile): Promise<boolean> => {
  try {
    if (Fs.statSync(path).size !== bytes) return false
    const now = await fingerprint(path)
    return now.bytes === bytes && now.sha256 === sha256
  } catch {
    return false
  }
}

/** What processes that were killed have left behind. */
const sweep = (home: string): void => {
  for (const name of Fs.readdirSync(home)) {
    const pid = name.startsWith(prefix) ? Number(name.slice(prefix.length).split("-", 1)[0]) : Number.NaN
    if (!Number.isInteger(pid) || pid <= 0 || isAlive(pid)) continue
    try {
      Fs.rmSync(Path.join(home, name), { recursive: true, force: true })
    } catch {
      // somebody else's, and no reason to go elsewhere
    }
  }
}

/** A directory of our own where there is room for so many bytes: in memory if there is such a place. */
const place = (bytes: number): string | undefined => {
  for (const home of ["/dev/shm", Os.tmpdir()]) {
    try {
      const { bavail, bsize } = Fs.statfsSync(home)
      if (bavail * bsize < bytes * 2) continue
      sweep(home)
      return Fs.mkdtempSync(Path.join(home, `${prefix}${process.pid}-`))
    } catch {
      // not there, or not ours to write
    }
  }
  return undefined
}

/** The state files of one engine, in a directory that is made with the first and goes with the last. */
export class StateFiles {
  #directory: string | undefined
  #count = 0
  #closed = false
  readonly #atExit = () => this.close()

  /** Lets `write` write a file and takes its fingerprint. `undefined`: there is no place for it, or it could not be written. */
  async save(write: (path: string) => Promise<void>, room: number): Promise<StateFile | undefined> {
    if (this.#directory === undefined) {
      this.#directory = this.#closed ? undefined : place(room)
      if (this.#directory === undefined) return undefined
      process.on("exit", this.#atExit)
    }
    const path = Path.join(this.#directory, `${this.#count++}.state`)
    try {
      await write(path)
      return { path, ...(await fingerprint(path)) }
    } catch {
      Fs.rmSync(path, { force: true })
      return undefined
    }
  }

  remove({ path }: StateFile): void {
    Fs.rmSync(path, { force: true })
  }

  close(): void {
    this.#closed = true
    process.off("exit", this.#atExit)
    if (this.#directory !== undefined) Fs.rmSync(this.#directory, { recursive: true, force: true })
    this.#directory = undefined
  }
}
