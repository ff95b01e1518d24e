/**
 * A process that puts many files in place together and stops for good before the nth, having said so, to be killed there.
 * Arguments: the directory to put them under, and n; none for a process that goes to its end.
 */
import { writeSync } from "node:fs"
import * as Effect from "effect/Effect"
import { putInPlace } from "../../src/effects/conversation/assemble/Staging.ts"

const [runs = "", before] = process.argv.slice(2)

const stopHere = (): void => {
  writeSync(1, "here\n")
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}

const files = Array.from({ length: 20 }, (_, n) => ({
  name: `${n}.yaml`,
  get text() {
    if (String(n) === before) stopHere()
    return `${n}`.repeat(2000)
  }
}))

await Effect.runPromise(putInPlace(runs, files, Effect.succeed(`run-${process.pid}`)))
