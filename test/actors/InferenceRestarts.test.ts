import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { afterAll, describe } from "vitest"
import { childrenOf, ended, open, shipped, strike, system, user } from "../kit/engineLife.ts"

const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-restarts-"))
afterAll(() => Fs.rmSync(directory, { recursive: true, force: true }))
const minutes = 240_000
const tooLarge = "WRIT_TEST_TOO_LARGE"
afterAll(() => {
  delete process.env[tooLarge]
})

describe("an engine that is to be opened again", () => {
  it.live(
    "and whose process the system refuses is counted like one that died, and the caller told",
    () =>
      Effect.gen(function* () {
        const worker = yield* open({ restarts: { times: 2, waitMillis: 1 } })
        const session = yield* worker.model.session
        yield* session.commit(system)
        // No system takes an environment of that size.
        process.env[tooLarge] = "x".repeat(2 ** 23)
        yield* ended(yield* strike(worker, "SIGKILL"))
        const failed = yield* Effect.flip(session.commit(user("hello")))
        delete process.env[tooLarge]
        assert.strictEqual(failed.reason, "lost")
        assert.match(failed.message, /process cannot be started.*opened again 2 times/)
      }),
    minutes
  )

  it.live(
    "and cannot be leaves no process behind that waits for nothing",
    () =>
      Effect.gen(function* () {
        const modelPath = Path.join(directory, "none.gguf")
        Fs.copyFileSync(shipped, modelPath)
        const worker = yield* open({ modelPath })
        const session = yield* worker.model.session
        yield* session.commit(system)
        Fs.rmSync(modelPath)
        yield* strike(worker, "SIGKILL")
        assert.strictEqual((yield* Effect.flip(session.commit(user("hello")))).reason, "missing_file")
        while (childrenOf(process.pid).length > 0) yield* Effect.sleep("10 millis")
        assert.strictEqual((yield* Effect.flip(session.commit(user("hello")))).reason, "missing_file")
      }),
    minutes
  )
})
