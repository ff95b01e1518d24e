import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ArtifactStore from "../../src/actors/ArtifactStore.ts"
import * as Agent from "../../src/effects/Agent.ts"
import { resume } from "../../src/effects/Resume.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import { registry as builtin } from "../../src/tools/builtin/index.ts"
import { directory, invoke } from "../kit/cli.ts"
import { corrupt, data } from "../kit/corrupt.ts"
import { emberText, recordsOf } from "../kit/records.ts"
import { call } from "../kit/script.ts"
import { good } from "../kit/traces.ts"

const turns = [
  call("calculate", { expression: "6*7" }),
  call("read_text_file", { path: "a.txt" }),
  call("read_text_file", { path: "missing.txt" }),
  call("lookup", { key: "price" }),
  call("write_artifact", { name: "r.md", content: "# hi" }),
  "done"
]

/** A run of built-in tools, and the directory it read. */
const recorded = Effect.gen(function* () {
  const path = yield* directory
  const workspace = join(path, "files")
  mkdirSync(workspace)
  writeFileSync(join(workspace, "a.txt"), "some text")
  const text = yield* Effect.gen(function* () {
    const tools = yield* builtin
    yield* Agent.run({ task: "t", tools, settings: { workspace, fixtures: { price: "12" } }, trace: { content: true } })
    return (yield* MemoryTraces).text("run-1")
  }).pipe(Effect.provide(layerScripted({ turns })))
  const trace = join(path, "trace.jsonl")
  writeFileSync(trace, text)
  return { trace, workspace, text, path }
})

const replay = (...args: ReadonlyArray<string>) => invoke(["trace", "replay", "--no-color", ...args])

describe("writ trace replay", () => {
  it.live("executes what it has everything for, and says of the rest what is missing", () =>
    Effect.gen(function* () {
      const { trace, workspace } = yield* recorded
      const bare = yield* replay(trace)
      assert.strictEqual(bare.code, 0, bare.out)
      assert.include(bare.out, "match (2 matched, 0 mismatched, 3 skipped)")
      assert.include(bare.out, "name it with --workspace")
      const whole = yield* replay("--json", trace, "--workspace", workspace, "--fixture", "price=12")
      const document = JSON.parse(whole.out)
      assert.deepInclude(document, { verdict: "match", matched: 5, mismatched: 0, skipped: 0 })
    })
  )

  it.live("ends with 3 and names the call where the files are others now", () =>
    Effect.gen(function* () {
      const { trace, workspace } = yield* recorded
      writeFileSync(join(workspace, "a.txt"), "another text")
      writeFileSync(join(workspace, "missing.txt"), "not any more")
      const { code, out } = yield* replay(trace, "--workspace", workspace, "--fixture", "price=13")
      assert.strictEqual(code, 3)
      assert.match(out, /^call-1-0 +read_text_file +MISMATCH payload/m)
      assert.match(out, /^call-2-0 +read_text_file +MISMATCH ok: recorded false, now true/m)
      assert.match(out, /^call-3-0 +lookup +MISMATCH/m)
      assert.match(out, /mismatch \(2 matched, 3 mismatched, 0 skipped\)/)
    })
  )

  it.live(
    "gives calls that read artifacts those that the run had when they began, and skips them where one is gone",
    () =>
      Effect.gen(function* () {
        const path = yield* directory
        const reading = [
          call("list_artifacts", {}),
          call("write_artifact", { name: "r.md", content: "# hi" }),
          call("list_artifacts", {}),
          call("read_artifact", { name: "r.md" }),
          "done"
        ]
        const artifacts = join(path, "artifacts")
        const store = ArtifactStore.layerDirectory(() => artifacts)
        const text = yield* Effect.gen(function* () {
          const outcome = yield* Agent.run({ task: "t", tools: yield* builtin, trace: { content: true } })
          assert.strictEqual(outcome.stop._tag, "Completed")
          return (yield* MemoryTraces).text("run-1")
        }).pipe(Effect.provide(Layer.provideMerge(store, layerScripted({ turns: reading }))))
        const trace = join(path, "trace.jsonl")
        writeFileSync(trace, text)
        const { out } = yield* replay(trace)
        assert.include(out, "match (4 matched, 0 mismatched, 0 skipped)")
        const [file] = readdirSync(artifacts)
        writeFileSync(join(artifacts, file!), "# ho")
        const other = yield* replay(trace)
        assert.include(other.out, "match (2 matched, 0 mismatched, 2 skipped)")
        assert.match(
          other.out,
          /call-2-0 .*skipped: it read the artifacts of the run, and [0-9a-f]{16}-r\.md is not beside/
        )
        assert.strictEqual(readFileSync(join(artifacts, file!), "utf8"), "# ho")
      })
  )

  it.live("takes nothing for a match", () =>
    Effect.gen(function* () {
      const path = yield* directory
      for (const [name, text] of [
        ["no calls", yield* good["final answer"]],
        ["nothing", ""]
      ] as const) {
        const trace = join(path, `${name}.jsonl`)
        writeFileSync(trace, text)
        const { code, out } = yield* replay(trace)
        assert.strictEqual(code, 3, name)
        assert.include(out, "nothing to compare")
        if (name === "nothing") assert.strictEqual((yield* replay("--full", trace)).code, 3)
      }
    })
  )

  it.live("with --full runs the run again from its turns", () =>
    Effect.gen(function* () {
      const { path, text, trace } = yield* recorded
      const same = yield* replay("--full", trace)
      assert.strictEqual(same.code, 0, same.out)
      assert.match(same.out, /match \(\d+ events came out as recorded\)/)
      const changed = join(path, "changed.jsonl")
      writeFileSync(
        changed,
        corrupt(text, (lines) => void (data(lines, "legality_checked")["schema"] = "fail"))
      )
      const other = yield* replay("--full", changed)
      assert.strictEqual(other.code, 3)
      assert.match(other.out, /legality_checked.*data\.schema: recorded fail, now pass/)
      const hidden = join(path, "hidden.jsonl")
      writeFileSync(hidden, text.replace('"content":true', '"content":false'))
      const refused = yield* replay("--full", hidden)
      assert.strictEqual(refused.code, 3)
      assert.include(refused.out, "the trace holds no content")
    })
  )

  it.live("with --full finds the parts of a resumed run beside it, and says so where they are missing", () =>
    Effect.gen(function* () {
      const path = yield* directory
      const [first, second] = yield* Effect.gen(function* () {
        const tools = yield* builtin
        const options = { tools, trace: { content: true } }
        yield* Agent.run({ task: "t", ...options, limits: { modelTurns: 1 } })
        const traces = yield* MemoryTraces
        const { runId } = yield* resume({
          ...options,
          traces: [recordsOf(traces.text("run-1"))],
          limits: { modelTurns: 4 }
        })
        return [traces.text("run-1"), traces.text(runId)] as const
      }).pipe(Effect.scoped, Effect.provide(layerScripted({ turns: [turns[0]!, "It is 42."] })))
      writeFileSync(join(path, "trace-r2.jsonl"), second)
      const alone = yield* replay("--full", join(path, "trace-r2.jsonl"))
      assert.strictEqual(alone.code, 3)
      assert.include(alone.out, "whose trace is needed too")
      writeFileSync(join(path, "trace.jsonl"), first)
      const both = yield* replay("--full", join(path, "trace-r2.jsonl"))
      assert.strictEqual(both.code, 0, both.out)
    })
  )

  it.effect("refuses tools that are not here, another schema, and options that make no sense", () =>
    Effect.gen(function* () {
      const path = yield* directory
      const [own, ember] = [join(path, "own.jsonl"), join(path, "ember.jsonl")]
      writeFileSync(own, yield* good["one tool"])
      writeFileSync(ember, emberText)
      const unknown = yield* replay("--full", own)
      assert.deepStrictEqual([unknown.code, unknown.out], [2, ""])
      assert.include(unknown.err, "is not one of Writ's own")
      assert.strictEqual((yield* replay(ember)).code, 2)
      assert.strictEqual((yield* replay(own, "--workspace", join(path, "no"))).code, 2)
      assert.strictEqual((yield* replay(own, "--fixture", "x")).code, 2)
    })
  )
})
