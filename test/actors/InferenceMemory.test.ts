import { execFile, execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { promisify } from "node:util"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { describe } from "vitest"
import type { WorkerModel } from "../../src/actors/Inference.ts"
import { closing, log, open, speak, system, user } from "../kit/engineLife.ts"

/** Where a process can be held to the memory it has. */
const canStarve = Fs.existsSync("/usr/bin/prlimit")

/** From now on the engine's process gets this much more address space from the system, and then none. */
const starve = (worker: WorkerModel, moreBytes: number) =>
  Effect.map(worker.host, ({ pid }) => {
    const pages = Number(Fs.readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[0])
    execFileSync("/usr/bin/prlimit", ["--pid", String(pid), `--as=${pages * 4096 + moreBytes}`])
  })

describe("an engine in a process of its own that gets no more memory", () => {
  it.live.skipIf(!canStarve)(
    "ends as that and not as a crash, is opened again, and the session goes on from its boundary",
    () =>
      Effect.gen(function* () {
        const worker = yield* open()
        const session = yield* worker.model.session
        yield* session.commit([...system, ...user("hello")])
        const said = yield* speak(session)
        yield* session.rollback
        const before = yield* log(worker, session)
        yield* starve(worker, 4 * 1024 * 1024)
        const failed = yield* Effect.flip(session.commit(user("many words ".repeat(1_000_000))))
        assert.strictEqual(failed.reason, "restarted", failed.message)
        assert.match(failed.message, /memory|alloc/i)
        assert.deepInclude(session.recoveries?.().at(-1), { cause: "out_of_memory", tokens: before.length })
        assert.deepStrictEqual(yield* log(worker, session), before)
        assert.strictEqual(yield* speak(session), said)
        yield* session.keep(closing)
      }),
    240_000
  )
})

describe("an engine in a thread that fills its heap", () => {
  it.live(
    "ends as that, the program lives, and the session goes on from its boundary on another",
    () =>
      Effect.gen(function* () {
        const program = Path.resolve(import.meta.dirname, "../kit/engineMemory.ts")
        const { stdout } = yield* Effect.promise(() =>
          promisify(execFile)(process.execPath, ["--max-old-space-size=80", program])
        )
        const { after, again, before, message, reason, recoveries, said } = JSON.parse(stdout)
        assert.strictEqual(reason, "restarted", message)
        assert.include(message, "memory limit")
        assert.deepStrictEqual(recoveries, [{ cause: "out_of_memory", restarts: 1, tokens: before.length }])
        assert.deepStrictEqual([after, again], [before, said])
      }),
    240_000
  )
})
