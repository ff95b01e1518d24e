import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as RunDirectory from "../../src/effects/RunDirectory.ts"

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
})
