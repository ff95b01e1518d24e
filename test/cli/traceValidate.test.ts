import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestConsole from "effect/testing/TestConsole"
import { codeOf } from "../../src/cli/Ending.ts"
import { command } from "../../src/cli/Main.ts"
import { directory } from "../kit/cli.ts"
import { corrupt, data, drop } from "../kit/corrupt.ts"
import { good } from "../kit/traces.ts"

const validate = (...args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const exit = yield* Effect.exit(command(["trace", "validate", "--no-color", ...args]))
    const out = (yield* TestConsole.logLines).join("\n")
    const err = (yield* TestConsole.errorLines).join("\n")
    return { code: codeOf(exit), out, err }
  }).pipe(Effect.provide([NodeServices.layer, TestConsole.layer]))

/** Three traces: one to believe, one that was cut, one that was changed. */
const traces = Effect.gen(function* () {
  const path = yield* directory
  const text = yield* good["one tool"]
  const [whole, killed, changed] = [join(path, "whole.jsonl"), join(path, "killed.jsonl"), join(path, "changed.jsonl")]
  writeFileSync(whole, text)
  writeFileSync(killed, text.slice(0, -300))
  const edited = corrupt(text, (lines) => {
    data(lines, "tool_result_committed")["ok"] = false
  })
  writeFileSync(changed, edited)
  return { path, whole, killed, changed }
})

describe("writ trace validate", () => {
  it.effect("ends with 0 for a trace that can be believed", () =>
    Effect.gen(function* () {
      const { whole } = yield* traces
      const { code, out } = yield* validate(whole)
      assert.strictEqual(code, 0)
      assert.match(out, /whole\.jsonl: valid \(\d+ events\)$/)
    })
  )

  it.effect("names every problem by its invariant and its place, and ends with 3", () =>
    Effect.gen(function* () {
      const { changed, whole } = yield* traces
      const { code, out } = yield* validate(whole, changed)
      assert.strictEqual(code, 3)
      assert.match(out, /changed\.jsonl: 1 problem /)
      assert.match(out, /^ {2}T30 .*\(event 15, line 16\)$/m)
    })
  )

  it.effect("takes an incomplete trace only where that is asked for", () =>
    Effect.gen(function* () {
      const { killed, path } = yield* traces
      const strict = yield* validate(killed)
      assert.strictEqual(strict.code, 3)
      assert.include(strict.out, "incomplete: it ends inside a line")
      assert.strictEqual((yield* validate("--allow-incomplete", killed)).code, 0)
      const empty = join(path, "empty.jsonl")
      writeFileSync(empty, "")
      assert.strictEqual((yield* validate("--allow-incomplete", empty)).code, 3, "nothing is not a trace")
    })
  )

  it.effect("prints one document with --json", () =>
    Effect.gen(function* () {
      const { changed, whole } = yield* traces
      const { code, out } = yield* validate("--json", whole, changed)
      const document = JSON.parse(out)
      assert.strictEqual(code, 3)
      assert.deepStrictEqual(
        document.traces.map((one: { valid: boolean }) => one.valid),
        [true, false]
      )
      assert.strictEqual(document.traces[1].violations[0].invariant, "T30")
    })
  )

  it.effect("finds a run by its directory and compares its artifacts, unless told not to", () =>
    Effect.gen(function* () {
      const run = yield* directory
      writeFileSync(join(run, "trace.jsonl"), yield* good.artifact)
      const missing = yield* validate(run)
      assert.strictEqual(missing.code, 3)
      assert.include(missing.out, "T34")
      assert.strictEqual((yield* validate("--no-artifacts", run)).code, 0)
      mkdirSync(join(run, "artifacts"))
      writeFileSync(join(run, "artifacts", "8f434346648f6b96-a.txt"), "hi")
      assert.strictEqual((yield* validate(run)).code, 0)
    })
  )

  it.effect("lets the parts of a resumed run share their artifacts", () =>
    Effect.gen(function* () {
      const run = yield* directory
      mkdirSync(join(run, "artifacts"))
      writeFileSync(join(run, "artifacts", "8f434346648f6b96-a.txt"), "hi")
      writeFileSync(
        join(run, "trace.jsonl"),
        corrupt(yield* good.artifact, (lines) => drop(lines, "run_completed"))
      )
      writeFileSync(join(run, "trace-r2.jsonl"), yield* good["final answer"])
      assert.strictEqual((yield* validate(join(run, "trace-r2.jsonl"))).code, 0)
    })
  )

  it.effect("ends with 2 for what is not there, and for nothing", () =>
    Effect.gen(function* () {
      const unknown = yield* validate("no-such-run")
      assert.deepStrictEqual([unknown.code, unknown.out], [2, ""])
      assert.include(unknown.err, "there is no trace no-such-run")
      assert.strictEqual((yield* validate()).code, 2)
    })
  )
})
