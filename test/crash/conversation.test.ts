/** Real processes, really killed, while they fill a conversation file: at every save and around every effect. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as ConversationText from "../../src/effects/conversation/ConversationText.ts"
import { validateFile } from "../../src/effects/trace/TraceValidator.ts"
import { bundled, child, type Said, temporary } from "../kit/crash.ts"

const start = `---
model: noop # nobody is asked
tools:
  - { name: read_note, description: Reads a note., input_schema: { type: object, properties: { name: { type: string } }, required: [name] } }
  - { name: save, description: Saves a text., input_schema: { type: object, properties: { name: { type: string }, content: { type: string } }, required: [name, content] } }
  - { name: notify, description: Tells somebody., input_schema: { type: object, properties: { to: { type: string } }, required: [to] } }
---
role: user
content: Tell everybody.
---
role: assistant
---
role: user
content: Thank you.
---
role: assistant
`

interface Left {
  readonly file: string
  readonly world: ReadonlyArray<string>
  readonly artifacts: ReadonlyArray<string>
  readonly said: Said
}

const runsIn = (directory: string): ReadonlyArray<string> => {
  const runs = join(directory, "runs")
  return existsSync(runs) ? readdirSync(runs).map((name) => join(runs, name)) : []
}

const artifactsIn = (directory: string): ReadonlyArray<string> =>
  runsIn(directory).flatMap((run) => {
    const artifacts = join(run, "artifacts")
    return existsSync(artifacts) ? readdirSync(artifacts).toSorted() : []
  })

const world = (directory: string): ReadonlyArray<string> => {
  const path = join(directory, "world.txt")
  return existsSync(path) ? readFileSync(path, "utf8").trimEnd().split("\n") : []
}

/** Processes one after another; all but the last die where they are told to, and leave a file that is whole. */
const lives = Effect.fnUntraced(function* (program: string, deaths: ReadonlyArray<string>) {
  const directory = yield* temporary("writ-conversation-")
  const path = join(directory, "c.yaml")
  writeFileSync(path, start)
  for (const where of deaths) {
    const said = yield* child(program, directory, "external", where)
    assert.strictEqual(said, "killed", `nothing died at ${where}`)
    const parsed = ConversationText.parse(readFileSync(path, "utf8"))
    assert.isTrue(Result.isSuccess(parsed), `after ${where} the file is torn`)
  }
  const said = yield* child(program, directory, "external", "never")
  if (said === "killed") return yield* Effect.die(new Error("somebody killed the last process"))
  for (const run of runsIn(directory)) {
    for (const name of readdirSync(run).filter((file) => file.endsWith(".jsonl"))) {
      const verdict = yield* Effect.orDie(
        validateFile(join(run, name), { artifacts: join(run, "artifacts"), allowStrays: true })
      )
      assert.deepStrictEqual(verdict.violations, [], `${name} after ${deaths.join(", then ")}`)
    }
  }
  assert.deepStrictEqual(
    readdirSync(directory).filter((name) => name.endsWith(".tmp")),
    [],
    `something was left after ${deaths.join(", then ")}`
  )
  const left: Left = {
    file: readFileSync(path, "utf8"),
    world: world(directory),
    artifacts: artifactsIn(directory),
    said
  }
  return left
}, Effect.scoped)

class Setting extends Context.Service<Setting, { readonly program: string; readonly whole: Left }>()(
  "effect-writ/test/ConversationCrash"
) {
  static readonly layer = Layer.effect(
    Setting,
    Effect.gen(function* () {
      const program = yield* bundled("conversationChild")
      return { program, whole: yield* lives(program, []) }
    })
  )
}

const same = (deaths: ReadonlyArray<ReadonlyArray<string>>) =>
  Effect.flatMap(Setting, ({ program, whole }) =>
    Effect.forEach(
      deaths,
      (where) =>
        Effect.map(lives(program, where), ({ artifacts, file, said, world }) => {
          const after = where.join(", then ")
          assert.strictEqual(file, whole.file, after)
          assert.deepStrictEqual([world, artifacts], [whole.world, whole.artifacts], after)
          // Where the last save had been made there was nothing left to do.
          if (said.stop !== undefined) assert.deepStrictEqual(said.stop, whole.said.stop, after)
        }),
      { concurrency: 2, discard: true }
    )
  )

const minutes = 15 * 60_000

/** Every visit of the places that an undisturbed run comes to. */
const visitsOf = ({ said }: Left, ...places: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> =>
  places.flatMap((place) => Array.from({ length: said.visits[place] ?? 0 }, (_, visit) => [`${place}:${visit + 1}`]))

layer(Setting.layer, { timeout: minutes, excludeTestServices: true })(
  "a conversation whose process is killed",
  (it) => {
    it.effect("is filled, and every effect happens once, when nobody kills it", () =>
      Effect.gen(function* () {
        const { whole } = yield* Setting
        assert.deepStrictEqual(whole.said.stop, { _tag: "Completed", text: "You are welcome." })
        assert.strictEqual(whole.world.length, 2)
        assert.strictEqual(whole.artifacts.length, 1)
        assert.isTrue(whole.file.startsWith(start.slice(0, start.indexOf("role: assistant"))))
        assert.isAtLeast(whole.said.visits["before-rename"] ?? 0, 7)
      })
    )

    it.effect(
      "comes to the same bytes from before, within and after every save",
      () => Effect.flatMap(Setting, ({ whole }) => same(visitsOf(whole, "before-rename", "torn", "after-rename"))),
      minutes
    )

    it.effect(
      "comes to the same bytes from around every effect, its intent and its settlement",
      () =>
        Effect.flatMap(Setting, ({ whole }) =>
          same(visitsOf(whole, "before-begin", "after-begin", "after-effect", "before-settle", "after-settle"))
        ),
      minutes
    )

    it.effect(
      "comes to the same bytes when it is killed again while it goes on",
      () =>
        same([
          ["after-effect:1", "before-rename:1"],
          ["after-rename:2", "line:4", "torn:1"],
          ["after-settle:1", "after-effect:1"]
        ]),
      minutes
    )
  }
)
