import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as RunDirectory from "../../src/effects/RunDirectory.ts"

const temporary = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "writ-run-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

describe("the directory of a run", () => {
  it("holds every part of the run under the run's own name", () => {
    const first = RunDirectory.standard("20261130-065239-d4257f")
    const third = RunDirectory.standard("20261130-065239-d4257f-r3")
    assert.strictEqual(first.trace, ".writ/runs/20261130-065239-d4257f/trace.jsonl")
    assert.strictEqual(third.trace, ".writ/runs/20261130-065239-d4257f/trace-r3.jsonl")
    assert.strictEqual(third.transcript, ".writ/runs/20261130-065239-d4257f/transcript-r3.yaml")
    assert.strictEqual(third.artifacts, first.artifacts)
  })

  it("takes only a part's own ending for one", () => {
    assert.deepStrictEqual(RunDirectory.partOf("a-r12"), { root: "a", part: 12 })
    assert.deepStrictEqual(RunDirectory.partOf("a-r2-r3"), { root: "a-r2", part: 3 })
    for (const name of ["a", "a-r0", "a-r02", "-r2", "a-r", "a-r2x"]) {
      assert.deepStrictEqual(RunDirectory.partOf(name), { root: name, part: 1 })
    }
  })

  it("names its parts in order and shows where one is missing", () => {
    const directory = mkdtempSync(join(tmpdir(), "writ-parts-"))
    try {
      for (const name of ["trace-r10.jsonl", "trace.jsonl", "trace-r2.jsonl", "other.jsonl", "trace-r02.jsonl"]) {
        writeFileSync(join(directory, name), "")
      }
      mkdirSync(join(directory, "artifacts"))
      const parts = RunDirectory.partsIn(directory)
      assert.strictEqual(parts.length, 10)
      assert.deepStrictEqual(
        parts.flatMap((path, at) => (path === undefined ? [] : [[at + 1, path]])),
        [
          [1, join(directory, "trace.jsonl")],
          [2, join(directory, "trace-r2.jsonl")],
          [10, join(directory, "trace-r10.jsonl")]
        ]
      )
    } finally {
      rmSync(directory, { recursive: true })
    }
  })

  it("is known from a trace only by that trace's name", () => {
    assert.strictEqual(RunDirectory.directoryOf("a/trace-r2.jsonl"), "a")
    assert.strictEqual(RunDirectory.directoryOf("a/copy.jsonl"), undefined)
  })

  it.effect("is tried out without being made, and made level by level", () =>
    Effect.gen(function* () {
      const place = yield* temporary
      const run = RunDirectory.at(join(place, "a/../b/c/"))
      yield* RunDirectory.check(run)
      assert.deepStrictEqual(readdirSync(place), [])
      yield* RunDirectory.prepare(run)
      yield* RunDirectory.prepare(run)
      assert.deepStrictEqual(readdirSync(place, { recursive: true }).map(String).sort(), ["b", "b/c"])
      yield* RunDirectory.check(run)
      writeFileSync(run.trace, "")
      const taken = yield* Effect.flip(RunDirectory.check(run))
      assert.include(taken.message, "already holds a run")
    })
  )

  it.effect("that cannot be made is refused with the reason and a remedy, before and when it is made", () =>
    Effect.gen(function* () {
      const place = yield* temporary
      writeFileSync(join(place, "file"), "")
      symlinkSync("loop", join(place, "loop"))
      const impossible = [
        [join(place, "file/x"), "is not a directory"],
        [join(place, "loop/x"), "ELOOP"],
        [join(place, "a".repeat(300)), "ENAMETOOLONG"],
        [join(place, "a/".repeat(60_000)), "ENAMETOOLONG"],
        ...(existsSync("/proc/self") ? [["/proc/x/y", "ENOENT"] as const] : [])
      ] as const
      for (const [directory, reason] of impossible) {
        for (const way of [RunDirectory.check, RunDirectory.prepare]) {
          const error = yield* Effect.flip(way(RunDirectory.at(directory)))
          assert.strictEqual(error._tag, "RunDirectoryError")
          assert.include(error.message, reason)
          assert.include(error.message, "Choose a directory")
        }
      }
      assert.deepStrictEqual(readdirSync(place).sort(), ["file", "loop"])
    })
  )
})
