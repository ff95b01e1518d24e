import { copyFileSync, mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, invoke } from "../kit/cli.ts"
import { runCli } from "../kit/cliRun.ts"
import { oracle, Written } from "../kit/metricTraces.ts"
import { call } from "../kit/script.ts"

/** Writes files below a directory of their own; names end with `.jsonl`. */
const written = (files: Readonly<Record<string, string>>) =>
  Effect.map(directory, (path) => {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(join(path, dirname(name)), { recursive: true })
      writeFileSync(join(path, name), text)
    }
    return path
  })

const metrics = (...args: ReadonlyArray<string>) => invoke(["metrics", "--no-color", ...args])

const documentOf = (...args: ReadonlyArray<string>) =>
  Effect.map(metrics("--json", ...args), ({ code, out }) => ({ code, document: JSON.parse(out) }))

const drifting = new Written("drifting", { began: 5_000 }).read().read().malformed().malformed().read().end().text

describe("writ metrics", () => {
  it.effect("prints the six numbers with what they are counted over, within 80 columns", () =>
    Effect.gen(function* () {
      const acting = new Written("acting").effect({ key: "a" }).effect({ key: "a" }).effect({ compensates: "call-0-0" })
      const files = { "a/trace.jsonl": oracle(6, 200).text, "b/trace.jsonl": acting.read(false).read().end().text }
      const { code, out } = yield* metrics(yield* written(files), "--window", "50", "--alarm", "50%")
      assert.strictEqual(code, 0)
      assert.match(out, /^2 runs, 205 attempts, 196 reads, 3 effects$/m)
      assert.match(out, /^1\. schema violations +2\.9 % +6 of 205 attempts$/m)
      assert.match(out, /^2\. postcondition success +100\.0 % +3 of 3 executed effects$/m)
      assert.match(out, /^3\. duplicate effects +33\.3 % +1 of 3 effects that are there$/m)
      assert.match(out, /^4\. rollbacks of effects +50\.0 % +1 of 2 effects that undo nothing$/m)
      assert.match(out, /^5\. progress after a failure +100\.0 % +7 of 7 failed calls$/m)
      assert.match(out, /^6\. gain per call +n\/a +no scores \(--scores FILE\)$/m)
      assert.match(out, /^failed attempts: schema 6, postcondition 1$/m)
      assert.match(out, /no alarm$/)
      for (const line of out.split("\n")) assert.isAtMost(line.length, 80, line)
    })
  )

  it.effect("says n/a, not 0 and not 100 %, where there was nothing to count", () =>
    Effect.gen(function* () {
      const path = yield* written({ "trace.jsonl": new Written("idle").end().text })
      const { code, out } = yield* metrics(path)
      assert.strictEqual(code, 0)
      assert.lengthOf(out.match(/ n\/a /g)!, 10)
      assert.notInclude(out, "%")
      const { document } = yield* documentOf(path)
      assert.deepStrictEqual(document.schema_violations, { count: 0, of: 0, rate: null })
    })
  )

  it.effect("gives the same document twice, from files, directories, patterns and copies alike", () =>
    Effect.gen(function* () {
      const text = oracle(6, 200).text
      const path = yield* written({ "a/trace.jsonl": text, "b/trace.jsonl": drifting })
      const [a, b] = [join(path, "a/trace.jsonl"), join(path, "b/trace.jsonl")]
      const { document } = yield* documentOf(path)
      assert.deepInclude(document.schema_violations, { count: 8, of: 205 })
      for (const named of [[path], [b, a], [join(path, "*/trace.jsonl")], [join(path, "[ab]")], [a, path, b]]) {
        assert.deepStrictEqual((yield* documentOf(...named)).document, document, named.join(" "))
      }
      copyFileSync(a, join(path, "a/copy.jsonl"))
      writeFileSync(join(path, "a/half.jsonl"), text.slice(0, 5_000))
      const again = (yield* documentOf(path)).document
      assert.deepStrictEqual(again.schema_violations, document.schema_violations)
      assert.lengthOf(again.copies, 2)
    })
  )

  it.effect("ends with 3 where the alarm trips, and says where", () =>
    Effect.gen(function* () {
      const path = yield* written({ "a/trace.jsonl": oracle(6, 200).text, "b/trace.jsonl": drifting })
      const { code, out } = yield* metrics(path, "--window", "4", "--alarm", "0.3")
      assert.strictEqual(code, 3)
      assert.match(out, /^ +ALARM in 2 of 202 windows; first tripped by$/m)
      assert.match(out, /^ +attempt 204, call-3-0 of drifting \(event \d+ in$/m)
      const { code: same, document } = yield* documentOf(path, "--window", "4", "--alarm", "30%")
      assert.deepStrictEqual([same, document.drift.tripped, document.drift.alarm], [3, true, 0.3])
      assert.deepInclude(document.drift.first_above.to, { run_id: "drifting", attempt: 204 })
      assert.strictEqual((yield* metrics(path, "--window", "4", "--alarm", "0.5")).code, 0)
      assert.strictEqual((yield* metrics(path, "--alarm", "1%")).code, 3, "the window is 100 unless it is given")
    })
  )

  it.effect("takes nothing for a trace that a run's tools wrote or read", () =>
    Effect.gen(function* () {
      const forged = new Written("forged").effect().effect().end().text
      const files = { "artifacts/0-a.jsonl": forged, "workspace/b.jsonl": forged, "trace.jsonl": drifting }
      const path = yield* written(Object.fromEntries(Object.entries(files).map(([name, text]) => [`r/${name}`, text])))
      for (const named of [path, join(path, "r")]) {
        const { document } = yield* documentOf(named)
        assert.deepStrictEqual([document.runs, document.postcondition_success.of], [1, 0])
      }
    })
  )

  it.effect("counts the whole lines of a trace that was cut, and says how many it could not read", () =>
    Effect.gen(function* () {
      const text = new Written("cut").read().effect().text
      const path = yield* written({ "trace.jsonl": `${text.slice(0, -60)}` })
      const { code, out } = yield* metrics(path)
      assert.strictEqual(code, 0)
      assert.match(out, /^1 run, 1 without an end, 2 attempts, 1 read, 1 effect$/m)
      assert.match(out, /postcondition success +0\.0 % +0 of 1 executed effect$/m)
      assert.match(out, /^1 line could not be read\.$/m)
    })
  )

  it.effect("takes scores by run id, and states the budget or why there is no number", () =>
    Effect.gen(function* () {
      const other = new Written("other", { limits: { modelTurns: 2, outputTokens: 9, wallMillis: 5 } })
        .read()
        .end().text
      const path = yield* written({
        "a/trace.jsonl": new Written("run").read().read().end().text,
        "b/trace.jsonl": other,
        "scores.json": JSON.stringify({ run: { with: 0.9, without: 0.4 }, other: { with: 1, without: 1 } }),
        "bad.json": '{"run": 3}',
        "broken.json": "{"
      })
      const scores = ["--scores", join(path, "scores.json")]
      const { out } = yield* metrics(join(path, "a"), ...scores)
      assert.match(out, /^6\. gain per call +\+0\.25 +\+0\.5 in 2 calls, 1 of 1 run scored$/m)
      assert.match(out, /^ +budget of a run: 1 min 0 s, 8 turns of 512 tokens$/m)
      assert.match(
        (yield* metrics(path, ...scores)).out,
        /^6\. gain per call +n\/a .*\n +the runs had 2 different budgets/m
      )
      for (const name of ["bad.json", "broken.json", "no.json"]) {
        assert.strictEqual((yield* metrics(path, "--scores", join(path, name))).code, 2, name)
      }
    })
  )

  it.effect("shows control characters of a trace, and never sends them", () =>
    Effect.gen(function* () {
      const name = "run\u001b[2J\nALARM"
      const path = yield* written({ "trace.jsonl": new Written(name).malformed().end().text })
      const { out } = yield* metrics(path, "--window", "1", "--alarm", "0")
      assert.notInclude(out, "\u001b")
      assert.include(out, "run\\u001b[2J\\nALARM")
    })
  )

  it.effect("ends with 2 where nothing is named or found, or a flag makes no sense", () =>
    Effect.gen(function* () {
      const path = yield* written({ "cases.jsonl": '{"not":"a trace"}\n', "a.jsonl": drifting })
      const wrong = [
        [],
        [join(path, "no")],
        [join(path, "no*")],
        [join(path, "cases.jsonl")],
        [path, "--alarm", "2"],
        [path, "--alarm", "x"],
        [path, "--window", "0"]
      ]
      for (const args of wrong) {
        const { code, err } = yield* metrics(...args)
        assert.strictEqual(code, 2, args.join(" "))
        assert.match(err, /^writ: /)
      }
    })
  )

  it.live("measures a run that was just made", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const bad = "<tool_call>\n{\n</tool_call>"
      const turns = [bad, call("broken", { how: "error" }), call("add", { a: 1, b: 2 }), "It is 3."]
      const runDir = join(cwd, "run")
      const ran = yield* runCli({
        cwd,
        turns,
        args: ["--run-dir", runDir, "--no-trace-content", "--tools", "add,broken", "add"]
      })
      assert.strictEqual(ran.code, 0, ran.err)
      const { document } = yield* documentOf(runDir)
      assert.deepStrictEqual(document.schema_violations, { count: 1, of: 3, rate: 1 / 3 })
      assert.deepStrictEqual(document.read_success, { count: 1, of: 2, rate: 0.5 })
      assert.deepStrictEqual(document.progress_after_failure, { count: 2, of: 2, rate: 1 })
      assert.deepStrictEqual([document.postcondition_success.rate, document.without_end], [null, 0])
    })
  )
})
