/** `writ eval` and `writ report`, run as commands on the project of the fixtures and on projects made here. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { emit } from "../../src/effects/conversation/ConversationText.ts"
import * as Report from "../../src/effects/eval/Report.ts"
import { directory, invoke } from "../kit/cli.ts"
import { assistant, ran, sumsOf, talk, user } from "../kit/evals.ts"

const fixture = join(import.meta.dirname, "../fixtures/eval")

const project = Effect.tap(directory, (root) => Effect.sync(() => cpSync(fixture, root, { recursive: true })))

const reportAt = (root: string, id: string): Report.Report =>
  Result.getOrThrow(Report.parse(readFileSync(join(root, "evals/reports", `${id}.json`), "utf8")))

/** A project with one suite over conversations that say these texts. */
const small = (
  texts: Readonly<Record<string, string>>,
  suite = "name: s\ncases:\n  - assertions:\n      - { type: text_contains, value: yes! }\n"
) =>
  Effect.tap(directory, (root) =>
    Effect.sync(() => {
      mkdirSync(join(root, "evals"))
      writeFileSync(join(root, "evals/s.yaml"), suite)
      for (const [path, text] of Object.entries(texts)) {
        mkdirSync(join(root, path, ".."), { recursive: true })
        writeFileSync(join(root, path), emit(talk([user("?"), assistant(text)])))
      }
    })
  )

const evaluate = (root: string, ...args: ReadonlyArray<string>) =>
  invoke(["eval", "-p", root, ...args], { PATH: process.env.PATH! })
const report = (root: string, ...args: ReadonlyArray<string>) => invoke(["report", "-p", root, ...args])

describe("writ eval", () => {
  it.live("over every kind of assertion: all five outcomes, sums that agree, a report in every form, exit code 3", () =>
    Effect.gen(function* () {
      const root = yield* project
      const done = yield* evaluate(
        root,
        "everything",
        "--over",
        join(root, "runs/sample"),
        "--judge-script",
        join(root, "judge.yaml")
      )
      assert.strictEqual(done.code, 3, done.err)
      const found = reportAt(root, "sample")
      assert.deepStrictEqual(found.totals, {
        conversations_matched: 3,
        assertions: { passed: 30, failed: 3, deferred: 1, malformed: 2, errored: 1 }
      })
      assert.deepStrictEqual(sumsOf(found), [])
      assert.match(found.timestamp, /^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      assert.isAbove(Date.parse(found.timestamp), Date.parse("2025-01-01"))
      assert.deepStrictEqual(readdirSync(join(root, "evals/reports")).sort(), [
        ".gitignore",
        "sample-junit.xml",
        "sample-report.md",
        "sample.html",
        "sample.json"
      ])
      assert.deepStrictEqual(readdirSync(join(root, "evals/judges/sample")), ["answered.0-answered.17.yaml"])
    })
  )

  it.live("again on unchanged files differs in the time only", () =>
    Effect.gen(function* () {
      const root = yield* project
      const once = evaluate(
        root,
        "everything",
        "--over",
        join(root, "runs/sample"),
        "--judge-script",
        join(root, "judge.yaml")
      )
      yield* once
      const before = reportAt(root, "sample")
      yield* once
      assert.deepStrictEqual({ ...reportAt(root, "sample"), timestamp: before.timestamp }, before)
    })
  )

  it.live("scores conversations outside the project as those inside", () =>
    Effect.gen(function* () {
      const root = yield* small({ "runs/one/a.yaml": "yes!", "runs/one/b.yaml": "no" })
      const elsewhere = join(yield* directory, "one")
      cpSync(join(root, "runs/one"), elsewhere, { recursive: true })
      const inside = yield* evaluate(root, "s", "--over", "one", "--quiet")
      const first = reportAt(root, "one")
      const outside = yield* evaluate(root, "s", "--over", elsewhere, "--quiet")
      assert.deepStrictEqual([inside.code, outside.code], [3, 3])
      assert.deepStrictEqual({ ...reportAt(root, "one"), timestamp: "" }, { ...first, timestamp: "" })
      assert.strictEqual(first.totals.conversations_matched, 2)
      assert.strictEqual(inside.out, join(root, "evals/reports/one.json"))
    })
  )

  it.live("does not take a script beside a conversation for one", () =>
    Effect.gen(function* () {
      const root = yield* small({ "runs/one/a.yaml": "yes!" })
      writeFileSync(join(root, "runs/one/a.script.yaml"), "engine: [yes!]\n")
      const done = yield* evaluate(root, "s", "--over", "one", "--quiet")
      assert.strictEqual(done.code, 0, done.err)
      assert.strictEqual(reportAt(root, "one").totals.conversations_matched, 1)
    })
  )

  it.live("over one file is called after the file, and passes with 0", () =>
    Effect.gen(function* () {
      const root = yield* small({ "some/where.yaml": "yes!" })
      const done = yield* evaluate(root, "s", "--over", join(root, "some/where.yaml"), "--json", "--no-html")
      assert.strictEqual(done.code, 0, done.err)
      const { files, report, verdict } = JSON.parse(done.out)
      assert.deepStrictEqual([verdict, report.run_id, files.html], ["yes", "where", undefined])
      assert.isFalse(existsSync(join(root, "evals/reports/where.html")))
    })
  )

  it.live("is loud where nothing is there, and where nothing matches", () =>
    Effect.gen(function* () {
      const root = yield* small(
        { "runs/one/a.yaml": "yes!" },
        "name: s\ncases:\n  - when: { tone: loud }\n    assertions: [{ type: calls_answered }]\n"
      )
      mkdirSync(join(root, "empty"))
      const empty = yield* evaluate(root, "s", "--over", join(root, "empty"))
      assert.deepStrictEqual([empty.code, /there are no conversations/.test(empty.err)], [2, true])
      const above = yield* evaluate(root, "s", "--over", join(root, "runs"))
      assert.match(above.err, /it holds runs; name one of them.*runs\/one/)
      const gone = yield* evaluate(root, "s", "--over", "nowhere")
      assert.deepStrictEqual([gone.code, /no such file, directory or run/.test(gone.err)], [2, true])
      const none = yield* evaluate(root, "s", "--over", "one")
      assert.strictEqual(none.code, 3)
      assert.match(none.err, /no binding has tone: loud/)
      assert.match(none.err, /no case of s matches any of the 1 conversation/)
    })
  )

  it.live("a when without a match is a warning, and a no where it is strict; so is all that is deferred", () =>
    Effect.gen(function* () {
      const root = yield* small(
        { "runs/one/a.yaml": "x" },
        "name: s\ncases:\n  - assertions: [{ type: calls_answered }]\n  - when: { tone: loud }\n    assertions: [{ type: calls_answered }]\n"
      )
      const warned = yield* evaluate(root, "s", "--over", "one")
      assert.deepStrictEqual([warned.code, /case-1 of s: no binding/.test(warned.err)], [0, true])
      assert.strictEqual((yield* evaluate(root, "s", "--over", "one", "--strict")).code, 3)
      writeFileSync(join(root, "evals/j.yaml"), "name: j\ncases:\n  - assertions: [{ type: judge, prompt: Fine? }]\n")
      const deferred = yield* evaluate(root, "j", "--over", "one", "--json")
      assert.strictEqual(deferred.code, 0)
      assert.deepStrictEqual(JSON.parse(deferred.out).report.totals.assertions, {
        passed: 0,
        failed: 0,
        deferred: 1,
        malformed: 0,
        errored: 0
      })
      assert.match(deferred.err, /the report one was of the suite s; it is replaced/)
      assert.strictEqual((yield* evaluate(root, "j", "--over", "one", "--strict")).code, 3)
    })
  )

  it.live("refuses what it cannot read, by name, before it writes anything", () =>
    Effect.gen(function* () {
      const root = yield* small({ "runs/one/a.yaml": "yes!" })
      writeFileSync(join(root, "runs/one/b.yaml"), "no: conversation\n")
      writeFileSync(join(root, "runs/one/c.yaml"), "")
      const bad = yield* evaluate(root, "s", "--over", "one")
      assert.strictEqual(bad.code, 2)
      assert.match(bad.err, /b\.yaml/)
      assert.match(bad.err, /c\.yaml/)
      const suite = yield* evaluate(root, "z", "--over", "one")
      assert.deepStrictEqual([suite.code, /there is no suite z: .*s/.test(suite.err)], [2, true])
      writeFileSync(join(root, "evals/bad.yaml"), "name: bad\ncases: []\n")
      const broken = yield* evaluate(root, "bad", "--over", "one")
      assert.deepStrictEqual([broken.code, /bad\.yaml:2: cases/.test(broken.err)], [2, true])
      const project = yield* evaluate(join(root, "none"), "s", "--over", "one")
      assert.strictEqual(project.code, 2)
      rmSync(join(root, "runs/one"), { recursive: true })
      writeFileSync(join(root, "runs/a.yml"), emit(ran))
      writeFileSync(join(root, "runs/a.yaml"), emit(ran))
      assert.match((yield* evaluate(root, "s", "--over", join(root, "runs"))).err, /two files are called a/)
      assert.isFalse(existsSync(join(root, "evals/reports")))
    })
  )

  it.live("passes scripts what the project's .env holds, unless the shell says otherwise", () =>
    Effect.gen(function* () {
      const contents = "process.exit(process.env.GIVEN === 'from the file' && process.env.PATH !== 'x' ? 0 : 1)"
      const root = yield* small(
        { "runs/one/a.yaml": "x" },
        JSON.stringify({
          name: "s",
          cases: [{ assertions: [{ type: "script", runtime: "node", script: { contents }, pass_env: ["GIVEN"] }] }]
        })
      )
      writeFileSync(join(root, ".env"), 'GIVEN="from the file"\nPATH=x\n')
      const done = yield* evaluate(root, "s", "--over", "one")
      assert.strictEqual(done.code, 0, done.out)
    })
  )

  it.live("of several runs takes them together and names what is flaky", () =>
    Effect.gen(function* () {
      const root = yield* small({ "runs/r1/a.yaml": "yes!", "runs/r2/a.yaml": "no", "runs/r3/a.yaml": "yes!" })
      const done = yield* evaluate(root, "s", "--over", "r1", "--over", "r2", "--over", "r3", "--json")
      assert.strictEqual(done.code, 3)
      const { evaluations, repeats } = JSON.parse(done.out)
      assert.deepStrictEqual(
        evaluations.map(({ verdict }: { readonly verdict: string }) => verdict),
        ["yes", "no", "yes"]
      )
      assert.deepStrictEqual([repeats.total.passes, repeats.total.tries, repeats.flaky.length], [2, 3, 1])
      assert.isTrue(existsSync(join(root, "evals/reports/r1-x3-repeats.md")))
    })
  )
})

describe("writ report", () => {
  const evaluated = Effect.gen(function* () {
    const root = yield* small({
      "runs/old/a.yaml": "yes!",
      "runs/old/b.yaml": "no",
      "runs/new/a.yaml": "yes!",
      "runs/new/b.yaml": "yes!",
      "runs/less/a.yaml": "yes!"
    })
    yield* evaluate(root, "s", "--over", "old", "--over", "new", "--over", "less")
    return root
  })

  it.live("makes the Markdown of one report anew and prints where it is", () =>
    Effect.gen(function* () {
      const root = yield* evaluated
      const path = join(root, "evals/reports/old-report.md")
      const before = readFileSync(path, "utf8")
      rmSync(path)
      const done = yield* report(root, "old")
      assert.deepStrictEqual([done.code, done.out], [0, path])
      assert.strictEqual(readFileSync(path, "utf8"), before)
    })
  )

  it.live("compares two, with labels, as JSON and as Markdown", () =>
    Effect.gen(function* () {
      const root = yield* evaluated
      const done = yield* report(root, "old", "new", "--label-a", "before", "--label-b", "after", "--json")
      assert.strictEqual(done.code, 0, done.err)
      const { comparison } = JSON.parse(done.out)
      assert.deepStrictEqual(
        [
          comparison.improved,
          comparison.regressed,
          comparison.unchanged_pass,
          comparison.unchanged_fail,
          comparison.gate
        ],
        [1, 0, 1, 0, true]
      )
      assert.deepStrictEqual([comparison.a.label, comparison.b.label], ["before", "after"])
      assert.include(readFileSync(join(root, "evals/reports/old-vs-new.md"), "utf8"), "before against after")
      assert.isTrue(existsSync(join(root, "evals/reports/old-vs-new.json")))
    })
  )

  it.live("its gate lets an improvement through, and neither a regression nor a lost assertion", () =>
    Effect.gen(function* () {
      const root = yield* evaluated
      assert.strictEqual((yield* report(root, "old", "new", "--gate")).code, 0)
      assert.strictEqual((yield* report(root, "new", "new", "--gate")).code, 0)
      assert.strictEqual((yield* report(root, "new", "new", "--require-improvement")).code, 3)
      const worse = yield* report(root, "new", "old", "--gate")
      assert.deepStrictEqual([worse.code, /gate is shut: regressed: .*b #0 text_contains/.test(worse.err)], [3, true])
      const lost = yield* report(root, "new", "less", "--gate")
      assert.deepStrictEqual([lost.code, /no longer asserted/.test(lost.err)], [3, true])
      assert.strictEqual((yield* report(root, "new", "old")).code, 0)
    })
  )

  it.live("of different suites it compares what is called the same, says so, and keeps the gate shut", () =>
    Effect.gen(function* () {
      const root = yield* evaluated
      const other = { ...reportAt(root, "new"), suite: "another", run_id: "renamed" }
      writeFileSync(join(root, "evals/reports/renamed.json"), Report.emit(other))
      const compared = yield* report(root, "old", "renamed")
      assert.deepStrictEqual([compared.code, /of different suites/.test(compared.err)], [0, true])
      const gate = yield* report(root, "old", "renamed", "--gate")
      assert.deepStrictEqual([gate.code, /gate is shut: the reports are of different suites/.test(gate.err)], [3, true])
    })
  )

  it.live("prints no character with --json that acts on a terminal", () =>
    Effect.gen(function* () {
      const root = yield* evaluated
      const evil = { ...reportAt(root, "old"), suite: "a\u009b2J\u202eb", run_id: "evil" }
      writeFileSync(join(root, "evals/reports/evil.json"), Report.emit(evil))
      for (const args of [["evil"], ["evil", "evil"], ["evil", "evil", "--repeats"]]) {
        const { code, out } = yield* report(root, ...args, "--json")
        assert.deepStrictEqual([code, /[\u009b\u202e]/.test(out)], [0, false], args.join(" "))
        assert.include(JSON.stringify(JSON.parse(out)), "a\u009b2J\u202eb")
      }
    })
  )

  it.live("takes repeated runs together, and sides of them apart", () =>
    Effect.gen(function* () {
      const root = yield* evaluated
      const repeats = yield* report(root, "old", "new", "--repeats")
      assert.match(
        repeats.out,
        /^2 runs: 75\.0 % passed, 1 flaky assertion\n {2}flaky b, case-0 #0 text_contains: 1 of 2\n/
      )
      const sides = yield* report(root, "old", "old", "--against", "new", "--against", "new", "--gate", "--json")
      assert.deepStrictEqual([sides.code, JSON.parse(sides.out).gate.open], [0, true])
      assert.isTrue(existsSync(join(root, "evals/reports/old-x2-vs-new-x2.md")))
    })
  )

  it.live("a report that calls its run a path leads nowhere", () =>
    Effect.gen(function* () {
      const root = yield* evaluated
      const evil = { ...reportAt(root, "old"), run_id: "../../evil" }
      writeFileSync(join(root, "evil.json"), Report.emit(evil))
      const done = yield* report(root, join(root, "evil.json"))
      assert.strictEqual(done.out, join(root, "evals/reports/.._.._evil-report.md"))
      assert.isFalse(existsSync(join(root, "evil-report.md")))
    })
  )

  it.live("refuses what makes no sense, with what to do instead", () =>
    Effect.gen(function* () {
      const root = yield* evaluated
      for (const [args, message] of [
        [["olb"], /there is no report olb: did you mean old\?/],
        [["old", "new", "less"], /--repeats takes them for repeated runs/],
        [["old", "--gate"], /it stands between two sides/],
        [["old", "--label-a", "x"], /name the sides of a comparison/],
        [[join(root, "evals/s.yaml")], /it is not JSON/]
      ] as const) {
        const done = yield* report(root, ...args)
        assert.strictEqual(done.code, 2, args.join(" "))
        assert.match(done.err, message)
      }
      writeFileSync(
        join(root, "evals/t.yaml"),
        "name: t\ncases:\n  - name: a\n    assertions: [{ type: calls_answered }]\n"
      )
      yield* evaluate(root, "t", "--over", "new", "--id", "other")
      const apart = yield* report(root, "old", "other")
      assert.deepStrictEqual([apart.code, /no assertion in common/.test(apart.err)], [2, true])
      const mixed = yield* report(root, "old", "other", "--repeats")
      assert.deepStrictEqual([mixed.code, /repeated runs are of one suite/.test(mixed.err)], [2, true])
    })
  )
})
