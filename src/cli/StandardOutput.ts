/**
 * Whether standard output arrived. Node's console says nothing of a full disk, and a process that exits at once never hears
 * of it. What a reader that went away means for a run is `StopRequests`' business.
 */
import { fstatSync, writeSync } from "node:fs"

type Written = (error?: Error | null) => void

/** Node's stream takes it for success when a file took only the beginning of a text: here the rest is written, or fails. */
export const writeWhole = (stdout: typeof process.stdout): void => {
  try {
    if (!fstatSync(stdout.fd).isFile()) return
  } catch {
    return
  }
  stdout._write = (chunk: Uint8Array | string, encoding: BufferEncoding, done: Written) => {
    try {
      let rest: Uint8Array = typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk
      while (rest.length > 0) rest = rest.subarray(writeSync(stdout.fd, rest))
    } catch (cause) {
      return done(cause as Error)
    }
    done()
  }
}

/** Calls back when everything written so far is written or has failed, and the errors were told. */
export const settled = (stdout: typeof process.stdout, then: () => void): void => {
  stdout.write("", () => setImmediate(then))
}
