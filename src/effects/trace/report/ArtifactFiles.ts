/**
 * Looks at the files a trace says were written. A trace may say anything: only plain files directly in the artifacts
 * directory are opened, links are not followed, and nothing is shown whose hash is not the recorded one.
 */
import { hash } from "node:crypto"
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** Bytes of one file, and of all, that are read. */
const mostOfOne = 8 * 1024 * 1024
const mostOfAll = 64 * 1024 * 1024

export type Found =
  | { readonly state: "verified"; readonly bytes: Buffer }
  | { readonly state: "missing" | "differs" | "unchecked" }

const isPlainName = (name: string): boolean =>
  name !== "" && name !== "." && name !== ".." && name.length <= 255 && !/[/\\\u0000]/.test(name)

export class ArtifactFiles {
  readonly #directory: string
  #read = 0

  constructor(directory: string) {
    this.#directory = directory
  }

  readonly find = (name: string, sha256: string): Found => {
    if (!isPlainName(name)) return { state: "unchecked" }
    let file: number
    try {
      // Not blocking: a pipe that somebody put there must not hold the report up.
      file = openSync(join(this.#directory, name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    } catch {
      return { state: "missing" }
    }
    try {
      const stat = fstatSync(file)
      if (!stat.isFile()) return { state: "missing" }
      if (stat.size > mostOfOne || this.#read + stat.size > mostOfAll) return { state: "unchecked" }
      this.#read += stat.size
      const bytes = readFileSync(file)
      return hash("sha256", bytes, "hex") === sha256 ? { state: "verified", bytes } : { state: "differs" }
    } catch {
      return { state: "unchecked" }
    } finally {
      closeSync(file)
    }
  }
}
