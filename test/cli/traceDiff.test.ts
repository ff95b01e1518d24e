import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, invoke } from "../kit/cli.ts"
import { emberText, rekeyed } from "../kit/records.ts"
import { play } from "../kit/run.ts"
import { call } from "../kit/script.ts"
import { good } from "../kit/traces.ts"

const add = call("add", { a: 1, b: 1 })

/** The files hold these texts. */
const files = (...texts: ReadonlyArray<string>) =>
  Effect.map(directory, (path) =>
    texts.map((text, at) => {
      const file = join(path, `${at}.jsonl`)
      writeFileSync(file, text)
      return file
    })
  )

const diff = (...args: ReadonlyArray<string>) => invoke(["trace", "diff", "--no-color", ...args])

describe("writ trace diff", () => {
  it.effect("ends with 0 whatever it finds, and with 3 if that was asked for and the runs differ", () =>
    Effect.gen(function* () {
      const two = yield* play([add, "It is 2."])
      const three = yield* play([add, "It is \u001b[31m3."])
      const [a, b] = (yield* files(two.text, three.text)) as [string, string]
      assert.strictEqual((yield* diff(a, a, "--fail-on-diff")).code, 0)
      assert.strictEqual((yield* diff(a, b)).code, 0)
      const { code, out } = yield* diff(a, b, "--fail-on-diff")
      assert.strictEqual(code, 3)
      assert.match(out, /^answers {5}different$/m)
      assert.match(out, /they part at event \d+ of A, event \d+ of B: the model wrote something else in turn 2/)
      assert.include(out, "the runs differ")
      assert.notInclude(out, "\u001b", "control characters are shown, not sent")
    })
  )

  it.effect("says what cannot be compared without content, and does not call it a difference", () =>
    Effect.gen(function* () {
      const text = yield* good["one tool, no content"]
      const [a, b] = (yield* files(text, rekeyed(text))) as [string, string]
      const { code, out } = yield* diff(a, b, "--fail-on-diff")
      assert.strictEqual(code, 0)
      assert.include(out, "A and B were recorded without content")
      assert.include(out, "digests are made under different keys")
      assert.include(out, "nothing differs in what can be compared")
    })
  )

  it.effect("says of content that only one of the records has whose it is", () =>
    Effect.gen(function* () {
      const [a, b] = (yield* files(yield* good["one tool"], yield* good["one tool, no content"])) as [string, string]
      const { out } = yield* diff(a, b)
      assert.match(out, /^ {4}task: A: \S.* \| B: \(\d+ bytes, not recorded\)$/m)
      assert.notInclude(out, ": both ")
      const turned = yield* diff(b, a)
      assert.match(turned.out, /^ {4}task: A: \(\d+ bytes, not recorded\) \| B: \S/m)
    })
  )

  it.effect("prints one document with --json", () =>
    Effect.gen(function* () {
      const text = yield* good["two calls"]
      const [a, b] = (yield* files(text, text.split("\n").slice(0, 10).join("\n"))) as [string, string]
      const { out } = yield* diff("--json", a, b)
      const document = JSON.parse(out)
      assert.deepInclude(document, { verdict: "different", prefix: "b" })
      assert.strictEqual(document.divergence.agreeing_events, 10)
      assert.strictEqual(document.divergence.b, null)
      assert.strictEqual(document.aspects.provenance, "same")
    })
  )

  it.effect("reads Ember's traces, so does inspect", () =>
    Effect.gen(function* () {
      const [a, b] = (yield* files(emberText, emberText.replaceAll("42.", "43."))) as [string, string]
      const { code, out } = yield* diff("--fail-on-diff", a, b)
      assert.strictEqual(code, 3)
      assert.match(out, /final_text: The answer is 42\. \| The answer is 43\./)
      const inspected = yield* invoke(["trace", "inspect", "--no-color", a])
      assert.match(inspected.out, /call +calculate · \{"expression":"6\*7"\}/)
      assert.match(inspected.out, /status +completed/)
    })
  )

  it.effect("ends with 2 for a trace that is not there, is empty, or holds several runs", () =>
    Effect.gen(function* () {
      const text = yield* good["final answer"]
      const [whole, empty, several] = (yield* files(text, "", text + rekeyed(text))) as [string, string, string]
      for (const other of [`${whole}.no`, empty, several]) {
        const { code, out } = yield* diff(whole, other)
        assert.deepStrictEqual([code, out], [2, ""], other)
      }
    })
  )
})
