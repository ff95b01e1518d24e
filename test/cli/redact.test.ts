import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, invoke } from "../kit/cli.ts"
import { recordOf, runCli } from "../kit/cliRun.ts"
import { call } from "../kit/script.ts"

const secret = "Sq9-4711"
const rule = ["--redact", "secret=Sq9-\\d+"]
const tools = ["--tools", "add,save,send,clarify", "--trace-content"]

/** A secret in the task, in what the model writes and asks for, in a file's name and bytes, and in an error. */
const turns = [
  call("save", { name: `${secret}.txt`, content: `it is ${secret}` }),
  call("save", { name: "plain.txt", content: `it is ${secret}` }),
  call("send", { to: "x", extra: secret }),
  `<tool_call>\n{"name": "add", ${secret}\n</tool_call>`,
  `Saved ${secret}.txt.`
]

const ran = Effect.fnUntraced(function* (played: ReadonlyArray<unknown>, ...args: ReadonlyArray<string>) {
  const cwd = yield* directory
  const run = join(cwd, "run")
  const left = yield* runCli({ cwd, turns: played, args: [...tools, ...rule, "--run-dir", run, ...args] })
  return { cwd, run, left }
})

describe("writ run --redact", () => {
  it.effect("keeps the secret out of every record of the run, and of all that is made of them", () =>
    Effect.gen(function* () {
      const { cwd, left, run } = yield* ran(turns, `keep ${secret}`)
      assert.strictEqual(left.code, 0, left.err)
      assert.include(left.performed.join(" "), secret, "the tool was given what was said")
      const report = join(cwd, "report.html")
      const shown: Array<string> = []
      for (const args of [
        ["inspect", run],
        ["inspect", run, "--json"],
        ["explain", run, "call-0-0"],
        ["explain", run, "call-2-0"],
        ["explain", run, "answer"],
        ["export", run, "--json"],
        ["validate", run],
        ["report", run, "-o", report]
      ]) {
        const { code, err, out } = yield* invoke(["trace", ...args])
        assert.strictEqual(code, 0, `${args.join(" ")}: ${err}${out}`)
        shown.push(out, err)
      }
      const files = [report, join(run, "trace.jsonl"), join(run, "transcript.yaml")]
      for (const text of [...files.map((file) => readFileSync(file, "utf8")), ...shown]) assert.notInclude(text, secret)
      assert.match(shown[0]!, /^record +valid; \d+ replacements by redaction rules$/m)
      assert.isAbove(JSON.parse(shown[2]!).counts.redactions, 5)
      assert.include(readFileSync(report, "utf8"), "Recorded under redaction rules: no preview.")
      const { transcript } = recordOf(run)
      assert.isAbove(Number((transcript as unknown as { readonly redacted: number }).redacted), 3)
      assert.include(JSON.stringify(transcript.messages[1] ?? transcript.messages[0]), "[redacted: secret]")
    })
  )

  it.effect("leaves a run that cannot be continued, approved or replayed, and says so everywhere", () =>
    Effect.gen(function* () {
      const { left, run, cwd } = yield* ran([call("add", { a: 1, b: 1 }), "2"], "--max-turns", "1", `keep ${secret}`)
      assert.strictEqual(left.code, 5, left.err)
      assert.include(left.screen, "redaction rules replaced, so it cannot be continued")
      const resumed = yield* runCli({ cwd, turns: ["2"], args: ["--resume", run, "--max-turns", "8", ...rule] })
      assert.deepStrictEqual(
        [resumed.code, resumed.err.includes("redacted: texts of this record")],
        [2, true],
        resumed.err
      )
      const replayed = yield* invoke(["trace", "replay", "--full", run])
      assert.notStrictEqual(replayed.code, 0)
      assert.include(replayed.err + replayed.out, "redacted: texts of this record")
    })
  )

  it.effect("stops before a call that then nobody can be shown", () =>
    Effect.gen(function* () {
      const { left, run } = yield* ran([call("send", { to: secret }), "x"], "--suspend", "send it")
      assert.strictEqual(left.code, 6, left.err)
      const { code, err } = yield* invoke(["approve", run])
      assert.strictEqual(code, 2)
      assert.include(err, "can neither be shown nor go on: redacted: texts of this record")
    })
  )

  it.effect("has its rules repeated by the command that goes on, and refuses without", () =>
    Effect.gen(function* () {
      const { cwd, left, run } = yield* ran([call("add", { a: 1, b: 1 }), secret], "--max-turns", "1", "add")
      assert.include(left.screen, "--redact 'secret=Sq9-\\d+'")
      const silent = yield* runCli({ cwd, turns: [secret], args: ["--resume", run, "--max-turns", "8"] })
      assert.deepStrictEqual([silent.code, silent.err.includes("recorded under secret")], [2, true], silent.err)
      const played = [call("add", { a: 1, b: 1 }), secret]
      const gone = yield* runCli({ cwd, turns: played, args: ["--resume", run, "--max-turns", "8", ...rule] })
      assert.strictEqual(gone.code, 0, gone.err)
      assert.include(gone.screen, secret, "whoever asked is answered")
      assert.notInclude(readFileSync(join(run, "trace-r2.jsonl"), "utf8"), secret)
      assert.notInclude(readFileSync(join(run, "transcript-r2.yaml"), "utf8"), secret)
    })
  )

  it.effect("refuses a pattern that cannot be used before anything is run, and names its rule and place", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const { code, err } = yield* runCli({ cwd, turns: [], args: ["--redact", "fine=a+", "--redact", "open=(a", "t"] })
      assert.strictEqual(code, 2)
      assert.include(err, "--redact: open: it is not a regular expression")
      const shapeless = yield* runCli({ cwd, turns: [], args: ["--redact", "pattern", "t"] })
      assert.deepStrictEqual([shapeless.code, shapeless.err.includes("--redact: expected NAME=PATTERN")], [2, true])
    })
  )

  it.effect("does not fill conversation files, which go on from what they hold", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const file = join(cwd, "talk.yaml")
      const talk = "meta:\n  model: noop\nsession:\n  - role: user\n    content: hello\n  - role: assistant\n"
      writeFileSync(file, talk)
      const { code, err } = yield* invoke(["run", ...rule, file])
      assert.deepStrictEqual([code, err.includes("redaction rules")], [2, true], err)
      assert.strictEqual(readFileSync(file, "utf8"), talk)
    })
  )
})
