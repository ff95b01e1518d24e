/** `writ eval --embedding-model`: meanings compared by the vectors of a real model, the one that ships. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { emit } from "../../src/effects/conversation/ConversationText.ts"
import * as Report from "../../src/effects/eval/Report.ts"
import { directory, invoke } from "../kit/cli.ts"
import { assistant, talk, user } from "../kit/evals.ts"

const suite = `name: meaning
cases:
  - name: said
    assertions:
      - { type: text_semantic_match, value: The answer is 5., threshold: 1 }
      - { type: text_semantic_match, value: It is 5., threshold: 0.999 }
      - { type: text_semantic_match, value: It is 5., threshold: -1 }
      - { type: text_semantic_match, value: Bananas are yellow and grow in the tropics }
  - name: endless
    assertions:
      - { type: text_semantic_match, value: It is 5. }
`

const project = Effect.tap(directory, (root) =>
  Effect.sync(() => {
    mkdirSync(join(root, "evals"))
    mkdirSync(join(root, "runs/one"), { recursive: true })
    writeFileSync(join(root, "evals/meaning.yaml"), suite)
    const say = (name: string, text: string) =>
      writeFileSync(join(root, `runs/one/${name}.yaml`), emit(talk([user("2 + 3?"), assistant(text)])))
    say("said", "The answer is 5.")
    say("endless", "word ".repeat(2000))
  })
)

const evaluate = (root: string, ...args: ReadonlyArray<string>) =>
  invoke(["eval", "meaning", "-p", root, "--over", "one", "--no-html", ...args], { PATH: process.env["PATH"]! })

const outcomes = (root: string) =>
  Result.getOrThrow(Report.parse(readFileSync(join(root, "evals/reports/one.json"), "utf8"))).cases.flatMap(
    ({ matches }) => matches.flatMap(({ assertions }) => assertions.map(({ outcome, reason }) => ({ outcome, reason })))
  )

describe("writ eval --embedding-model", () => {
  it.live(
    "decides text_semantic_match both ways; a text that is too long is an error that names model and tokens",
    () =>
      Effect.gen(function* () {
        const root = yield* project
        const done = yield* evaluate(root, "--embedding-model", "tiny")
        assert.strictEqual(done.code, 3, done.err)
        const found = outcomes(root)
        assert.deepStrictEqual(
          found.map(({ outcome }) => outcome),
          ["pass", "fail", "pass", "fail", "errored"]
        )
        assert.match(
          found[1]!.reason!,
          /^similarity 0\.\d{3} is below 0\.999: the final answer is "The answer is 5\."$/
        )
        assert.match(found[3]!.reason!, /^similarity -?0\.\d{3} is below 0\.8/)
        assert.match(
          found[4]!.reason!,
          /^tiny-tool-agent-q8_0\.gguf: Text 2 of 2 has \d+ tokens, tiny-tool-agent-q8_0\.gguf takes 2048 at a time/
        )
        yield* evaluate(root, "--embedding-model", "tiny")
        assert.deepStrictEqual(outcomes(root), found)
      }),
    240_000
  )

  it.live("without it nothing is decided, and the reason names the flag", () =>
    Effect.gen(function* () {
      const root = yield* project
      const done = yield* evaluate(root)
      assert.strictEqual(done.code, 0, done.err)
      for (const { outcome, reason } of outcomes(root)) {
        assert.strictEqual(outcome, "deferred")
        assert.include(reason, "--embedding-model")
      }
      assert.strictEqual((yield* evaluate(root, "--strict")).code, 3)
    })
  )

  it.live("a model that is not there is a mistake of the command line, by the flag's name", () =>
    Effect.gen(function* () {
      const root = yield* project
      const done = yield* evaluate(root, "--embedding-model", join(root, "nowhere.gguf"))
      assert.strictEqual(done.code, 2)
      assert.match(done.err, /--embedding-model .*nowhere\.gguf: there is no such file/)
    })
  )

  it.live("a suite that compares no meanings opens no model", () =>
    Effect.gen(function* () {
      const root = yield* project
      writeFileSync(
        join(root, "evals/meaning.yaml"),
        "name: meaning\ncases:\n  - name: said\n    assertions:\n      - { type: text_contains, value: '5' }\n"
      )
      const broken = join(root, "broken.gguf")
      writeFileSync(broken, "no model")
      const done = yield* evaluate(root, "--embedding-model", broken)
      assert.strictEqual(done.code, 0, done.err)
    })
  )
})
