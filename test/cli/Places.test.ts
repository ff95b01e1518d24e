import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { noTrace, problemAt } from "../../src/cli/Places.ts"
import { directory, invoke } from "../kit/cli.ts"
import { runCli } from "../kit/cliRun.ts"

const long = "a".repeat(300)

describe("a path on the command line", () => {
  it.effect("is what was wanted, or it is said why not", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const [file, dir, loop] = [join(cwd, "file"), join(cwd, "dir"), join(cwd, "loop")]
      writeFileSync(file, "")
      mkdirSync(dir)
      symlinkSync("loop", loop)
      assert.deepStrictEqual(
        [file, dir, loop, join(cwd, long), join(cwd, "none")].map((path) => problemAt(path, "File")),
        [
          undefined,
          "it is not a file",
          "ELOOP: too many symbolic links encountered",
          "ENAMETOOLONG: name too long",
          "there is no such file"
        ]
      )
      assert.deepStrictEqual(
        [file, dir, join(file, "below")].map((path) => problemAt(path, "Directory")),
        ["it is not a directory", undefined, "there is no such directory"]
      )
      assert.include(noTrace(long), "name too long")
    })
  )

  it.effect("that the system refuses to look at is a usage error with the reason", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const loop = join(cwd, "loop")
      symlinkSync("loop", loop)
      for (const [path, reason] of [
        [long, "name too long"],
        [loop, "too many symbolic links"]
      ] as const) {
        for (const args of [
          ["run", "--model", path, "hi"],
          ["run", "--workspace", path, "hi"],
          ["run", "--resume", path],
          ["trace", "inspect", path],
          ["trace", "validate", path],
          ["trace", "stats", path]
        ]) {
          const left = yield* invoke(args)
          assert.strictEqual(left.code, 2, left.err)
          assert.include(left.err, reason)
          assert.notInclude(left.err, "bug in writ")
        }
      }
    })
  )

  it.effect("is not what a task of one long word is taken for", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const left = yield* runCli({
        cwd,
        turns: ["Hello"],
        args: ["--run-dir", join(cwd, "run"), "--tools", "add", "--quiet", long]
      })
      assert.deepStrictEqual([left.code, left.out], [0, "Hello"], left.err)
    })
  )
})
