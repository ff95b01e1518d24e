import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { describe } from "vitest"
import { isSound, StateFiles } from "../../src/engine/LlamaState.ts"

/** Saves something and returns the file and the place its directory was made in. */
const saved = (files: StateFiles) =>
  Effect.map(
    Effect.promise(() => files.save(async (path) => Fs.writeFileSync(path, "a state"), 1)),
    (file) => {
      assert.isDefined(file)
      return { file: file!, home: Path.dirname(Path.dirname(file!.path)) }
    }
  )

/** The number of a process that has ended. */
const nobody = () => spawnSync(process.execPath, ["--version"]).pid

const made = Effect.acquireRelease(
  Effect.sync(() => new StateFiles()),
  (files) => Effect.sync(() => files.close())
)

describe("state files", () => {
  it.live("are known again as long as they are what they were, and go with their engine", () =>
    Effect.gen(function* () {
      const files = yield* made
      const { file } = yield* saved(files)
      assert.isTrue(yield* Effect.promise(() => isSound(file)))
      Fs.appendFileSync(file.path, "!")
      assert.isFalse(yield* Effect.promise(() => isSound(file)))
      files.close()
      assert.isFalse(Fs.existsSync(Path.dirname(file.path)))
    })
  )

  it.live("of a process that was killed are removed by the next one", () =>
    Effect.gen(function* () {
      const { home } = yield* saved(yield* made)
      const left = Path.join(home, `writ-state-${nobody()}-left`)
      Fs.mkdirSync(left)
      yield* saved(yield* made)
      assert.isFalse(Fs.existsSync(left))
    })
  )

  // Nothing is forbidden to the superuser.
  it.live.skipIf(process.getuid?.() === 0)("that cannot be removed, being another user's, are in nobody's way", () =>
    Effect.gen(function* () {
      const { home } = yield* saved(yield* made)
      const left = Path.join(home, `writ-state-${nobody()}-kept`)
      Fs.mkdirSync(left)
      Fs.writeFileSync(Path.join(left, "0.state"), "")
      yield* Effect.acquireRelease(
        Effect.sync(() => Fs.chmodSync(left, 0o500)),
        () =>
          Effect.sync(() => {
            Fs.chmodSync(left, 0o700)
            Fs.rmSync(left, { recursive: true })
          })
      )
      const again = yield* saved(yield* made)
      assert.strictEqual(again.home, home)
      assert.isTrue(Fs.existsSync(left))
    })
  )
})
