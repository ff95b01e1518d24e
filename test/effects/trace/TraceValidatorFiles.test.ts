import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { readFile } from "../../../src/effects/trace/TraceReader.ts"
import { type Verdict, validate, validateFile, validateText } from "../../../src/effects/trace/TraceValidator.ts"
import { directory } from "../../kit/cli.ts"
import { corrupt, drop, parse } from "../../kit/corrupt.ts"
import { good } from "../../kit/traces.ts"

const ids = (verdict: Verdict) => [...new Set(verdict.violations.map(({ invariant }) => invariant))]

/** A run's directory: the trace of a run that wrote `a.txt` with the content `hi`, and that file. */
const runDirectory = (name: "artifact" | "artifact, no content") =>
  Effect.gen(function* () {
    const path = yield* directory
    const text = yield* good[name]
    const { sha256 } = parse(text).find(({ event_type }) => event_type === "artifact_written")!.data as {
      sha256: string
    }
    const trace = join(path, "trace.jsonl")
    const artifacts = join(path, "artifacts")
    const file = join(artifacts, `${sha256.slice(0, 16)}-a.txt`)
    mkdirSync(artifacts)
    writeFileSync(trace, text)
    writeFileSync(file, "hi")
    return { trace, artifacts, file, sha256, judge: validateFile(trace, { artifacts }) }
  })

describe("T34: artifacts are the files beside the trace", () => {
  for (const name of ["artifact", "artifact, no content"] as const) {
    it.effect(`${name}: files with their hashes are what the trace says`, () =>
      Effect.gen(function* () {
        const { judge } = yield* runDirectory(name)
        const verdict = yield* judge
        assert.deepStrictEqual([verdict.violations, verdict.unjudged], [[], []])
      })
    )

    it.effect(`${name}: a file that is gone is noticed`, () =>
      Effect.gen(function* () {
        const { file, judge } = yield* runDirectory(name)
        rmSync(file)
        assert.deepStrictEqual(ids(yield* judge), ["T34"])
      })
    )

    it.effect(`${name}: a file that was changed is noticed`, () =>
      Effect.gen(function* () {
        const { file, judge } = yield* runDirectory(name)
        writeFileSync(file, "ho")
        assert.deepStrictEqual(ids(yield* judge), ["T34"])
      })
    )
  }

  it.effect("a link in its place is not the file", () =>
    Effect.gen(function* () {
      const { artifacts, file, judge } = yield* runDirectory("artifact")
      writeFileSync(join(artifacts, "../elsewhere"), "hi")
      rmSync(file)
      symlinkSync("../elsewhere", file)
      assert.deepStrictEqual(ids(yield* judge), ["T34"])
    })
  )

  it.effect("a file nobody mentions is noticed, unless another trace does or it was asked not to", () =>
    Effect.gen(function* () {
      const { artifacts, judge, trace } = yield* runDirectory("artifact")
      writeFileSync(join(artifacts, "stray.txt"), "?")
      assert.deepStrictEqual(ids(yield* judge), ["T34"])
      assert.isTrue((yield* validateFile(trace, { artifacts, allowStrays: true })).ok)
      const other = "8a8de823d5ed3e12746a62ef169bcf372be0ca44f0a1236abc35df05d96928e1"
      assert.isTrue((yield* validateFile(trace, { artifacts, mentionedElsewhere: new Set([other]) })).ok)
    })
  )

  it.effect("a run that was killed may have left a file it did not come to mention", () =>
    Effect.gen(function* () {
      const { artifacts, judge, trace } = yield* runDirectory("artifact")
      writeFileSync(join(artifacts, "stray.txt"), "?")
      writeFileSync(
        trace,
        corrupt(readFileSync(trace, "utf8"), (lines) => drop(lines, "run_completed"))
      )
      const verdict = yield* judge
      assert.deepStrictEqual([verdict.ok, verdict.complete], [true, false])
    })
  )
})

describe("an incomplete trace", () => {
  it.effect("cut at any byte is incomplete, and what is there is still good", () =>
    Effect.gen(function* () {
      const text = yield* good["cancelled in a tool"]
      const bytes = Buffer.from(text)
      const end = text.lastIndexOf("\n", text.length - 2) + 1
      for (let cut = 0; cut < bytes.length; cut += 7) {
        const verdict = validateText(bytes.subarray(0, cut))
        assert.deepStrictEqual(verdict.violations, [], `cut at byte ${cut}`)
        // Without its newline the last line may be whole all the same.
        assert.strictEqual(verdict.complete, cut >= bytes.length - 1)
        if (cut > end && cut < bytes.length - 1) assert.isTrue(verdict.cut)
      }
    })
  )

  it.effect("is judged by every other invariant", () =>
    Effect.gen(function* () {
      const text = corrupt(yield* good["one tool"], (lines) => {
        drop(lines, "run_completed")
        drop(lines, "tool_call_validated")
      })
      const verdict = validateText(text)
      assert.isFalse(verdict.complete)
      assert.deepStrictEqual(ids(verdict), ["T24"])
    })
  )
})

describe("judging", () => {
  it.effect("from a file, from a stream and from memory is the same", () =>
    Effect.gen(function* () {
      const { artifacts, trace } = yield* runDirectory("artifact")
      const fromFile = yield* validateFile(trace, { artifacts })
      const fromItems = yield* validate(readFile(trace, { sources: true }), { artifacts })
      assert.deepStrictEqual(fromItems, fromFile)
      assert.deepStrictEqual(validateText(readFileSync(trace), { artifacts }), fromFile)
    })
  )

  it.effect("says what it could not judge", () =>
    Effect.gen(function* () {
      const { trace } = yield* runDirectory("artifact")
      assert.deepStrictEqual((yield* validate(readFile(trace))).unjudged, ["T05", "T34"])
      assert.deepStrictEqual((yield* validate(Stream.empty)).unjudged, ["T34"])
    })
  )

  it.effect("keeps the first hundred problems and counts the rest", () =>
    Effect.gen(function* () {
      const text = corrupt(yield* good["one tool"], (lines) => {
        for (let extra = 0; extra < 250; extra++)
          lines.splice(6, 0, { ...structuredClone(lines[5]!), event_type: "moon" })
      })
      const verdict = validateText(text)
      assert.deepStrictEqual([verdict.violations.length, verdict.violationCount], [100, 250])
    })
  )
})
