/** Real processes, really killed, at every event boundary of a run and around its effects. */
import { assert, layer } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type Lives, lives, type Mode, makeProgram } from "../kit/crash.ts"

interface Undisturbed {
  readonly program: string
  readonly external: Lives
  readonly none: Lives
}

/** The program, and what it comes to when nobody kills it. */
class Setting extends Context.Service<Setting, Undisturbed>()("effect-writ/test/CrashSetting") {
  static readonly layer = Layer.effect(
    Setting,
    Effect.gen(function* () {
      const program = yield* makeProgram
      const [external, none] = yield* Effect.all([lives(program, "external", []), lives(program, "none", [])], {
        concurrency: 2
      })
      return { program, external, none }
    })
  )
}

/** All the ways to die, two processes at a time. */
const each = <A>(
  mode: Mode,
  deaths: ReadonlyArray<ReadonlyArray<string>>,
  check: (after: Lives, where: string) => A
): Effect.Effect<void, never, Setting> =>
  Effect.flatMap(Setting, ({ program }) =>
    Effect.forEach(
      deaths,
      (where) => Effect.map(lives(program, mode, where), (after) => check(after, where.join(", then "))),
      { concurrency: 2, discard: true }
    )
  )

const valid = ({ verdicts }: Lives, where: string): void => {
  for (const [at, verdict] of verdicts.entries()) {
    assert.deepStrictEqual(verdict.violations, [], `trace ${at} after ${where}`)
    if (at < verdicts.length - 1) assert.isFalse(verdict.complete, `trace ${at} after ${where}`)
  }
  assert.isTrue(verdicts.at(-1)?.complete, `the last trace after ${where}`)
}

const same = (undisturbed: Lives) => (after: Lives, where: string) => {
  assert.deepStrictEqual(after.left, undisturbed.left, where)
  valid(after, where)
}

const range = (from: number, to: number, step = 1): ReadonlyArray<number> =>
  Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, at) => from + at * step)

/** Every visit of every place that an undisturbed run comes to. */
const placesOf = ({ said }: Lives): ReadonlyArray<string> =>
  Object.entries(said.visits).flatMap(([place, count]) => range(1, count).map((visit) => `${place}:${visit}`))

const minutes = 5 * 60_000

layer(Setting.layer, { timeout: minutes, excludeTestServices: true })("a run that is killed and resumed", (it) => {
  it.effect("is whole when nobody kills it: every effect once, and a valid record", () =>
    Effect.gen(function* () {
      const { external, none } = yield* Setting
      assert.deepStrictEqual(external.left.stop, { _tag: "Completed", text: "Everybody was told." })
      assert.strictEqual(external.left.world.length, 2)
      assert.deepStrictEqual(none.left.world, ["ann", "bob"])
      assert.strictEqual(external.left.artifacts.length, 2)
      valid(external, "nothing")
    })
  )

  it.effect(
    "comes to the same history, answer, artifacts and effects from every event boundary",
    () =>
      Effect.gen(function* () {
        const { external } = yield* Setting
        const deaths = range(2, external.said.lines - 1).map((line) => [`line:${line}`])
        yield* each("external", deaths, same(external))
      }),
    minutes
  )

  it.effect(
    "comes to the same from around every effect, its intent and its settlement",
    () =>
      Effect.gen(function* () {
        const { external } = yield* Setting
        yield* each(
          "external",
          placesOf(external).map((place) => [place]),
          same(external)
        )
      }),
    minutes
  )

  it.effect(
    "comes to the same when it died inside a line",
    () =>
      Effect.gen(function* () {
        const { external } = yield* Setting
        const deaths = range(2, external.said.lines - 1, 7).map((line) => [`half:${line}`])
        yield* each("external", deaths, same(external))
      }),
    minutes
  )

  it.effect(
    "comes to the same when it is killed again while it resumes",
    () =>
      Effect.gen(function* () {
        const { external } = yield* Setting
        const first = range(8, external.said.lines - 4, 13)
        const deaths = first.map((line, at) => [`line:${line}`, at % 2 === 0 ? `line:${at + 1}` : `half:${at}`])
        yield* each("external", deaths, same(external))
      }),
    minutes
  )

  it.effect("is refused where it had not begun or was over, and nothing happens", () =>
    Effect.gen(function* () {
      const { external } = yield* Setting
      yield* each("external", [["half:0"], ["line:1"]], ({ left, said }, where) => {
        assert.match(said.refused ?? "", /begin|begun/, where)
        assert.deepStrictEqual([left.world, left.artifacts], [[], []], where)
      })
      yield* each("external", [[`line:${external.said.lines}`]], ({ left, said }, where) => {
        assert.match(said.refused ?? "", /completed/, where)
        assert.deepStrictEqual([left.world, left.artifacts], [external.left.world, external.left.artifacts], where)
      })
    })
  )

  it.effect(
    "escalates, and never acts twice, where nothing makes a repeat harmless and nobody knows whether it acted",
    () =>
      Effect.gen(function* () {
        // The second and third effect are the ones that tell somebody; the others are files.
        const deaths = [
          "before-effect:1",
          "after-effect:1",
          "after-begin:2",
          "before-settle:2",
          "before-effect:2",
          "before-settle:3"
        ]
        yield* each(
          "none",
          deaths.map((place) => [place]),
          (after, where) => {
            assert.strictEqual(after.left.stop?._tag, "Escalated", where)
            assert.strictEqual(new Set(after.left.world).size, after.left.world.length, where)
            valid(after, where)
          }
        )
      }),
    minutes
  )

  it.effect(
    "comes to the same without any such help where the effect had settled or had not begun",
    () =>
      Effect.gen(function* () {
        const { none } = yield* Setting
        const deaths = [
          "before-begin:2",
          "after-settle:2",
          "before-begin:3",
          "after-settle:3",
          "before-settle:1",
          "after-put:2"
        ]
        yield* each(
          "none",
          deaths.map((place) => [place]),
          same(none)
        )
      }),
    minutes
  )
})
