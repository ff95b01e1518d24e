import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { afterAll, describe } from "vitest"
import { makeWorker } from "../../src/actors/Inference.ts"
import * as Agent from "../../src/effects/Agent.ts"
import { bringState } from "../../src/effects/KeptState.ts"
import { resume } from "../../src/effects/Resume.ts"
import { readLine, type TraceRecord } from "../../src/effects/trace/TraceReader.ts"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import { EngineError, type EngineReason } from "../../src/engine/EngineError.ts"
import { Model, type ModelSession } from "../../src/engine/Model.ts"
import * as ScriptedModel from "../../src/engine/ScriptedModel.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import { registry } from "../../src/tools/builtin/index.ts"
import { shipped } from "../kit/speaking.ts"

const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-kept-"))
afterAll(() => Fs.rmSync(directory, { recursive: true, force: true }))
const minutes = 240_000
const state = { path: Path.join(directory, "context.state"), keep: true }

/** A session that holds what `load` says, and tells how it was taken back. */
const holding = (load: NonNullable<ModelSession["load"]>) =>
  Effect.gen(function* () {
    const session = yield* ScriptedModel.make({ turns: [] }).model.session
    const back: Array<number> = []
    const rewind = (length: number) => Effect.sync(() => void back.push(length))
    return { back, session: { ...session, load, rewind } }
  })
const saved = (label: string, boundaries: ReadonlyArray<number>) => () =>
  Effect.succeed({ label, boundaries, tokens: Array.from({ length: boundaries.at(-1)! }, () => 1) })
const failing = (reason: EngineReason) => () => Effect.fail(new EngineError({ reason, message: reason }))

const read = (text: string): ReadonlyArray<TraceRecord> =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => readLine(Buffer.from(line)) as TraceRecord)

type Services = Layer.Success<ReturnType<typeof layerScripted>> | Model

describe("a kept state", () => {
  it.effect("is used where it is of the run that is continued and has a place for each of its messages", () =>
    Effect.gen(function* () {
      const { session } = yield* holding(saved("one", [0, 4, 9]))
      const brought = yield* bringState(session, state, "one", 2)
      const spans = [
        { start: 0, end: 4 },
        { start: 4, end: 9 }
      ]
      assert.deepStrictEqual(brought, { _tag: "Loaded", spans })
    })
  )

  it.effect("of another run, or of more or fewer messages, is taken out again", () =>
    Effect.gen(function* () {
      for (const [label, messages] of [
        ["other", 2],
        ["one", 1],
        ["one", 3]
      ] as const) {
        const { back, session } = yield* holding(saved(label, [0, 4, 9]))
        assert.deepStrictEqual(yield* bringState(session, state, "one", messages), { _tag: "Refused" })
        assert.deepStrictEqual(back, [0])
      }
    })
  )

  it.effect(
    "that is not there is no news, one that is damaged, too long or an engine's end is, and a lost engine fails",
    () =>
      Effect.gen(function* () {
        const seen: Array<string> = []
        for (const reason of ["missing_file", "bad_file", "context_overflow", "restarted", "lost"] as const) {
          const { session } = yield* holding(failing(reason))
          seen.push(
            yield* bringState(session, state, "one", 2).pipe(
              Effect.map(({ _tag }) => _tag),
              Effect.catch((error) => Effect.succeed(error.reason))
            )
          )
        }
        assert.deepStrictEqual(seen, ["None", "Refused", "Refused", "Refused", "lost"])
        const { session } = yield* holding(saved("one", [0, 4, 9]))
        assert.deepStrictEqual(yield* bringState(session, undefined, "one", 2), { _tag: "None" })
      })
  )

  it.live(
    "spares a run that goes on the evaluation of all that came before, and changes nothing of what it comes to",
    () =>
      Effect.gen(function* () {
        const options = {
          modelPath: shipped,
          sequences: 1,
          threads: 1,
          gpu: false,
          verify: true,
          reuse: "never"
        } as const
        const worker = yield* makeWorker(options)
        // Each part has memories of its own: no two have the same name.
        const alone = <A, E>(part: Effect.Effect<A, E, Services>) =>
          Effect.provide(part, Layer.merge(layerScripted({ turns: [] }), Layer.succeed(Model, worker.model)))
        const trace = { content: true }
        const first = yield* Effect.gen(function* () {
          const tools = yield* registry
          const task = "What is 17.5% of 240?"
          const { runId, stop } = yield* Agent.run({ task, tools, trace, state, limits: { modelTurns: 1 } })
          assert.strictEqual(stop._tag, "Limit")
          assert.isTrue(Fs.existsSync(state.path))
          return read((yield* MemoryTraces).text(runId))
        }).pipe(alone)
        const goOn = (more: { readonly state?: typeof state }) =>
          Effect.gen(function* () {
            const before = yield* worker.stats
            const outcome = yield* resume({ traces: [first], tools: yield* registry, trace, ...more })
            const after = yield* worker.stats
            const text = (yield* MemoryTraces).text(outcome.runId)
            assert.deepStrictEqual(validateText(text).violations, [])
            return {
              stop: outcome.stop,
              kept: read(text).find(({ event_type }) => event_type === "run_resumed")?.data["kept_state"],
              evaluated: after.evaluatedTokens - before.evaluatedTokens,
              reused: after.reusedTokens - before.reusedTokens
            }
          }).pipe(alone)
        const plain = yield* goOn({})
        const loaded = yield* goOn({ state: { ...state, keep: false } })
        assert.strictEqual(plain.stop._tag, "Completed")
        assert.deepStrictEqual(loaded.stop, plain.stop)
        assert.deepStrictEqual([plain.kept, loaded.kept], [undefined, "loaded"])
        assert.isAbove(loaded.reused, 100)
        assert.strictEqual(loaded.evaluated + loaded.reused, plain.evaluated)
        const bytes = Fs.readFileSync(state.path)
        Fs.writeFileSync(state.path, bytes.subarray(0, 100))
        const refused = yield* goOn({ state: { ...state, keep: false } })
        assert.deepStrictEqual([refused.kept, refused.stop], ["refused", plain.stop])
        assert.strictEqual(refused.evaluated, plain.evaluated)
      }),
    minutes
  )
})
