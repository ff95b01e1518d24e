/** Whole runs on the model that ships, in a process that is killed at chosen places of its work. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { afterAll, beforeAll, describe } from "vitest"
import type { WorkerModel } from "../../src/actors/Inference.ts"
import * as Agent from "../../src/effects/Agent.ts"
import { defaultTools } from "../../src/effects/SettingFields.ts"
import { replay } from "../../src/effects/trace/Replay.ts"
import { readLine, type TraceRecord } from "../../src/effects/trace/TraceReader.ts"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import { Model, type ModelSession } from "../../src/engine/Model.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import { registry } from "../../src/tools/builtin/index.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { ended, open, strike } from "../kit/engineLife.ts"
import { types } from "../kit/script.ts"

const workspace = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-crash-"))
afterAll(() => Fs.rmSync(workspace, { recursive: true, force: true }))

// The demonstration: two files are read, something is computed, and one artifact is written.
Fs.writeFileSync(Path.join(workspace, "baseline.json"), '{"run":"baseline_q4","score":0.612}')
Fs.writeFileSync(Path.join(workspace, "tuned.json"), '{"run":"tuned_q8","score":0.744}')
const task =
  "Read baseline.json and tuned.json, compute the relative improvement of score in percent and write report.md."
const system = "You are a small local assistant. Use the tools when they help and answer briefly."
/** Those the model was trained with, in that order. */
const trained = [...defaultTools, "clarify"]

/** A place in a run: the nth operation of this kind on its session. */
type Place = readonly [kind: "commit" | "turn" | "keep", nth: number]

/** The same session, whose engine is killed at those places: before a commit or keep, in the middle of a turn. */
const struckAt = (worker: WorkerModel, session: ModelSession, places: ReadonlyArray<Place>): ModelSession => {
  const done = { commit: 0, turn: 0, keep: 0 }
  const hit = (kind: Place[0]) => {
    const nth = done[kind]++
    return places.some(([one, at]) => one === kind && at === nth)
  }
  const kill = Effect.orDie(Effect.flatMap(strike(worker, "SIGKILL"), ended))
  const before = <A, E>(kind: Place[0], effect: Effect.Effect<A, E>) =>
    Effect.suspend(() => (hit(kind) ? Effect.andThen(kill, effect) : effect))
  return {
    commit: (segments, progress) => before("commit", session.commit(segments, progress)),
    keep: (closing) => before("keep", session.keep(closing)),
    turn: (opening, request) =>
      Stream.suspend(() => {
        if (!hit("turn")) return session.turn(opening, request)
        let alive = true
        return Stream.tap(session.turn(opening, request), () => {
          if (!alive) return Effect.void
          alive = false
          return kill
        })
      }),
    rollback: Effect.suspend(() => session.rollback),
    rewind: (length) => session.rewind(length),
    length: Effect.suspend(() => session.length),
    measure: (segments) => session.measure(segments),
    recoveries: () => session.recoveries?.() ?? []
  }
}

const records = (text: string): ReadonlyArray<TraceRecord> =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => readLine(Buffer.from(line)) as TraceRecord)

const play = (worker: WorkerModel, ...places: ReadonlyArray<Place>) =>
  Effect.gen(function* () {
    const tools = yield* Effect.flatMap(registry, (all) => Registry.pick(all, trained))
    const options = { task, tools, system, trace: { content: true }, settings: { workspace } } as const
    const outcome = yield* Agent.run(options)
    const text = (yield* MemoryTraces).text(outcome.runId)
    return { outcome, text, tools }
  }).pipe(
    Effect.provide(
      Layer.merge(
        layerScripted({ turns: [] }),
        Layer.succeed(Model, {
          ...worker.model,
          session: Effect.map(worker.model.session, (session) => struckAt(worker, session, places))
        })
      )
    )
  )

describe("a run whose engine is killed", () => {
  let worker: WorkerModel
  /** The run when nothing happens to it. */
  let whole: Effect.Success<ReturnType<typeof play>> | undefined
  const scope = Scope.makeUnsafe()
  beforeAll(
    () =>
      Effect.runPromise(
        Effect.map(Scope.provide(open(), scope), (made) => {
          worker = made
        })
      ),
    240_000
  )
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)), 240_000)

  const cases: ReadonlyArray<readonly [claim: string, places: ReadonlyArray<Place>, rolledBack: number]> = [
    ["before its first message", [["commit", 0]], 0],
    [
      "in its first turn, and in the same turn again",
      [
        ["turn", 0],
        ["turn", 1]
      ],
      2
    ],
    ["when the turn that writes is to be kept", [["keep", 3]], 1],
    ["with the answer to what it wrote under way", [["commit", 5]], 0],
    ["in its last turn", [["turn", 4]], 1]
  ]

  for (const [claim, places, rolledBack] of cases) {
    it.live(
      `${claim} comes to what it would have come to, with each call once, a valid record, and a repetition like it`,
      () =>
        Effect.gen(function* () {
          whole ??= yield* play(worker)
          assert.deepStrictEqual(whole.outcome.stop, { _tag: "Completed", text: "DONE 21.57%" })
          const { outcome, text, tools } = yield* play(worker, ...places)
          assert.deepStrictEqual(outcome.stop, whole.outcome.stop)
          assert.deepStrictEqual(outcome.transcript, whole.outcome.transcript)
          const seen = types(text)
          const count = (type: string) => seen.filter((one) => one === type).length
          assert.strictEqual(count("engine_restarted"), places.length)
          assert.strictEqual(count("turn_rolled_back"), rolledBack)
          assert.strictEqual(count("tool_execution_started"), whole.outcome.toolCalls)
          assert.deepStrictEqual([outcome.turns, outcome.toolCalls], [whole.outcome.turns, whole.outcome.toolCalls])
          assert.deepStrictEqual(outcome.artifacts, whole.outcome.artifacts)
          assert.strictEqual(count("artifact_written"), 1)
          assert.deepStrictEqual(validateText(text).violations, [])
          const all = records(text)
          assert.deepStrictEqual(yield* replay(all, { tools }), { same: true, compared: all.length } as never)
        }),
      240_000
    )
  }

  it.live(
    "three times in one turn fails, and says so",
    () =>
      Effect.gen(function* () {
        const { outcome, text } = yield* play(worker, ["turn", 0], ["turn", 1], ["turn", 2])
        assert.deepInclude(outcome.stop, { _tag: "Failed", class: "engine" })
        assert.deepStrictEqual(types(text).slice(-3), ["turn_rolled_back", "engine_restarted", "run_failed"])
        assert.deepStrictEqual(validateText(text).violations, [])
      }),
    240_000
  )
})
