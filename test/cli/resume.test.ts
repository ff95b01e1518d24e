import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, invoke, runsIn, start, traceOf, until, writ } from "../kit/cli.ts"
import { recordOf, runCli } from "../kit/cliRun.ts"
import { call } from "../kit/script.ts"

const content = "--trace-content"
const tools = ["--tools", "add,save,send,clarify"]

/** A first part that stopped at its limit of turns, after one call. */
const limited = Effect.fnUntraced(function* (turns: ReadonlyArray<unknown>, ...more: ReadonlyArray<string>) {
  const cwd = yield* directory
  const run = join(cwd, "run")
  const limit = more.includes("--max-turns") ? [] : ["--max-turns", "1"]
  const args = [...tools, "--run-dir", run, ...limit, "--seed", "7", ...more, "Do it."]
  const left = yield* runCli({ cwd, turns, args })
  return { cwd, run, left, turns }
})

const adding = [call("add", { a: 2, b: 3 }), "Five."]

describe("writ run --resume", () => {
  it.effect("goes on with the run's own settings, tools and script, and says where", () =>
    Effect.gen(function* () {
      const { cwd, left, run } = yield* limited(adding, content, "--system", "Be brief.")
      assert.strictEqual(left.code, 5, left.err)
      assert.include(left.screen, `npx writ run --resume ${run} --max-turns 8 --script`)
      const resumed = yield* runCli({ cwd, turns: adding, args: ["--resume", run, "--max-turns", "3"] })
      assert.strictEqual(resumed.code, 0, resumed.err)
      const { trace, transcript } = recordOf(run, "-r2")
      const root = recordOf(run).trace[0]?.run_id
      assert.include(resumed.screen, `continuing ${root} from turn 2; 1 call known`)
      assert.deepStrictEqual(resumed.performed, [], "what settled does not run again")
      assert.strictEqual(trace[0]?.run_id, `${root}-r2`)
      const provenance = trace[1]?.data as { readonly system: string; readonly sampling: { readonly seed: number } }
      assert.deepStrictEqual([provenance.system, provenance.sampling.seed], ["Be brief.", 7])
      const limits = trace[0]!.data["limits"] as { readonly modelTurns: number; readonly wallMillis: number }
      assert.deepStrictEqual([limits.modelTurns, limits.wallMillis], [3, 600_000])
      assert.deepStrictEqual(
        transcript.messages.map(({ role }) => role),
        ["system", "user", "assistant", "tool", "assistant"]
      )
    })
  )

  it.effect("takes the user's answer, and asks for it where it is missing", () =>
    Effect.gen(function* () {
      const turns = [call("clarify", { question: "Which file?" }), "Reading a.txt."]
      const { cwd, left, run } = yield* limited(turns, content, "--max-turns", "4")
      assert.strictEqual(left.code, 6, left.err)
      assert.include(left.screen, "--answer")
      const silent = yield* runCli({ cwd, turns, args: ["--resume", run] })
      assert.deepStrictEqual([silent.code, silent.err.includes("Which file?")], [2, true])
      const told = yield* runCli({ cwd, turns, args: ["--resume", run, "--answer", "a.txt", "--quiet"] })
      assert.deepStrictEqual([told.code, told.out], [0, "Reading a.txt."], told.err)
      assert.include(readFileSync(join(run, "transcript-r2.yaml"), "utf8"), '"result":"a.txt"')
    })
  )

  it.effect("reads every part, one that was cut and one that never began", () =>
    Effect.gen(function* () {
      const turns = [...adding.slice(0, 1), call("add", { a: 1, b: 1 }), "Two."]
      const { cwd, run } = yield* limited(turns, content)
      const second = yield* runCli({ cwd, turns, args: ["--resume", run, "--max-turns", "2"] })
      assert.strictEqual(second.code, 5, second.err)
      const cut = readFileSync(join(run, "trace-r2.jsonl"), "utf8")
      writeFileSync(join(run, "trace-r2.jsonl"), cut.slice(0, -40))
      writeFileSync(join(run, "trace-r3.jsonl"), "")
      const third = yield* runCli({ cwd, turns, args: ["--resume", join(run, "trace-r2.jsonl"), "--max-turns", "9"] })
      assert.strictEqual(third.code, 0, third.err)
      assert.deepStrictEqual(recordOf(run, "-r4").transcript.messages.at(-1)?.["content"], "Two.")
      assert.deepStrictEqual(third.performed, [])
    })
  )

  it.effect("refuses, in words and before anything is written, what cannot go on", () =>
    Effect.gen(function* () {
      const { cwd, run } = yield* limited(adding, content)
      const hidden = yield* limited(adding)
      const refused = Effect.fnUntraced(function* (args: ReadonlyArray<string>, hint: string, code = 2) {
        const before = existsSync(run) ? readdirSync(run).sort() : []
        const left = yield* runCli({ cwd, turns: adding, args })
        assert.deepStrictEqual([left.code, left.screen], [code, ""], left.err)
        assert.include(left.err, hint)
        assert.deepStrictEqual(existsSync(run) ? readdirSync(run).sort() : [], before)
      })
      yield* refused(["--resume", join(cwd, "no")], "there is no such run")
      yield* refused(["--resume", hidden.run], "--trace-content")
      yield* refused(["--resume", run, "--tools", "add"], "stale_contract")
      yield* refused(["--resume", run, "--codec", "llama3"], "its own codec")
      yield* refused(["--resume", run, "--system", "Other."], "its own system text")
      yield* refused(["--resume", run, "--run-dir", "other"], "its own directory")
      yield* refused(["--resume", run, "A task"], "its task already")
      yield* refused(["--resume", run, "--answer", "a"], "has not asked")
      yield* refused(["--answer", "a", "A task"], "--resume")
      copyFileSync(join(run, "trace.jsonl"), join(cwd, "copy.jsonl"))
      yield* refused(["--resume", join(cwd, "copy.jsonl")], "has to be called trace.jsonl")
      const whole = readFileSync(join(run, "trace.jsonl"), "utf8").split("\n")
      writeFileSync(join(run, "trace.jsonl"), whole.with(4, "{").join("\n"))
      yield* refused(["--resume", run], "line 5", 1)
      writeFileSync(join(run, "trace.jsonl"), whole.join("\n"))
      writeFileSync(join(run, "trace-r3.jsonl"), "")
      yield* refused(["--resume", run], "trace-r2.jsonl is missing")
      rmSync(join(run, "trace-r3.jsonl"))
      const done = yield* runCli({ cwd, turns: adding, args: ["--resume", run, "--max-turns", "3"] })
      assert.strictEqual(done.code, 0, done.err)
      yield* refused(["--resume", run], "nothing to resume")
    })
  )

  it.effect("does not repeat an effect under a ledger that does not know it", () =>
    Effect.gen(function* () {
      const turns = [call("save", { name: "a.txt", content: "x" }), "Saved."]
      const { cwd, run } = yield* limited(turns, content, "--max-turns", "4")
      const lines = readFileSync(join(run, "trace.jsonl"), "utf8").split("\n")
      const started = lines.findIndex((line) => line.includes('"tool_execution_started"'))
      writeFileSync(join(run, "trace.jsonl"), `${lines.slice(0, started + 1).join("\n")}\n`)
      renameSync(join(cwd, "ledger.sqlite"), join(cwd, "first.sqlite"))
      const other = yield* runCli({ cwd, turns, args: ["--resume", run] })
      assert.deepStrictEqual([other.code, other.performed], [2, []])
      assert.include(other.err, "--ledger FILE")
      for (const file of readdirSync(cwd)) if (file.startsWith("ledger.sqlite")) rmSync(join(cwd, file))
      renameSync(join(cwd, "first.sqlite"), join(cwd, "ledger.sqlite"))
      const same = yield* runCli({ cwd, turns, args: ["--resume", run] })
      assert.deepStrictEqual([same.code, same.performed], [0, []], same.err)
    })
  )

  it.live(
    "goes on in a process of its own after Ctrl-C in the middle of a turn, found by id",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const sum = call("calculate", { expression: "6*7" })
        writeFileSync(join(cwd, "slow.yaml"), JSON.stringify({ turns: [sum, { text: "42", millisPerToken: 600_000 }] }))
        const read = call("read_text_file", { path: "own.txt" })
        writeFileSync(join(cwd, "quick.yaml"), JSON.stringify({ turns: [sum, read, "42"] }))
        const running = start(["run", "--script", "slow.yaml", content, "--wall-time", "none", "What is 6*7?"], { cwd })
        const inTurnTwo = () => traceOf(runsIn(cwd)[0] ?? "").split('"model_call_started"').length === 3
        yield* until(running, inTurnTwo)
        const id = runsIn(cwd)[0]!.split("/").at(-1)!
        const files = readdirSync(runsIn(cwd)[0]!).sort()
        const early = yield* writ(["run", "--resume", id, "--script", "quick.yaml"], { cwd })
        assert.strictEqual(early.code, 2, early.err)
        assert.include(early.err, `the run is still going on, in process ${running.child.pid}`)
        assert.deepStrictEqual(readdirSync(runsIn(cwd)[0]!).sort(), files, "nothing is written")
        running.child.kill("SIGINT")
        const first = yield* Effect.promise(() => running.ended)
        assert.notInclude(readdirSync(runsIn(cwd)[0]!), "running.json")
        assert.deepStrictEqual([first.code, first.signal], [4, null], first.err)
        assert.include(first.out, `next       npx writ run --resume ${id} --script slow.yaml\n`)
        const workspace = join(runsIn(cwd)[0]!, "workspace")
        mkdirSync(workspace)
        writeFileSync(join(workspace, "own.txt"), "a file of the run's own")
        const resumed = yield* writ(["run", "--resume", id, "--script", "quick.yaml"], { cwd })
        assert.strictEqual(resumed.code, 0, resumed.err)
        assert.include(resumed.out, "a file of the run's own")
        assert.include(resumed.out, `continuing ${id} from turn 2; 1 call known`)
        const checked = yield* writ(["trace", "validate", id, `${id}-r2`], { cwd })
        assert.strictEqual(checked.code, 0, checked.out)
        const inspected = yield* writ(["trace", "inspect", `${id}-r2`], { cwd })
        assert.include(inspected.out, "completed")
      }),
    { timeout: 240_000 }
  )
})

describe("writ run --ledger", () => {
  it.effect("names a file that is no ledger, and what to do about it", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const file = join(cwd, "ledger.sqlite")
      writeFileSync(file, "not a database, but long enough to be looked at by whoever opens it as one. ".repeat(20))
      const left = yield* runCli({ cwd, turns: ["Hello"], args: [...tools, "--run-dir", join(cwd, "run"), "Do it."] })
      assert.strictEqual(left.code, 1)
      assert.include(left.err, file)
      assert.include(left.err, "Move it aside")
      assert.isFalse(existsSync(join(cwd, "run", "trace.jsonl")))
    })
  )

  it.effect("takes no server of another kind", () =>
    Effect.gen(function* () {
      const { code, err } = yield* invoke(["run", "--ledger", "mysql://host/db", "Do it."])
      assert.deepStrictEqual([code, err.includes("expected a file, postgres://… or memory")], [2, true])
    })
  )
})

describe("writ run --script", () => {
  it.effect("names every problem of a script with its place", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const turns = [{ text: 1 }, { text: "a", stop: "never", speed: 3 }]
      const left = yield* runCli({ cwd, turns, args: [...tools, "Do it."] })
      assert.strictEqual(left.code, 2)
      assert.include(left.err, "script.yaml: it is no script:")
      for (const place of ["turns[0]", "turns[1]"]) assert.include(left.err, place)
      const missing = yield* invoke(["run", "--script", join(cwd, "no.yaml"), "Do it."])
      assert.deepStrictEqual([missing.code, missing.err.includes("there is no such file")], [2, true])
      writeFileSync(join(cwd, "bad.yaml"), "turns: [\n")
      const bad = yield* invoke(["run", "--script", join(cwd, "bad.yaml"), "Do it."])
      assert.deepStrictEqual([bad.code, bad.err.includes("neither YAML nor JSON")], [2, true])
    })
  )

  it.effect("says how many turns were left over", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const left = yield* runCli({
        cwd,
        turns: ["Hello", "never", "never"],
        args: ["--run-dir", join(cwd, "run"), "--quiet", ...tools, "Do it."]
      })
      assert.deepStrictEqual([left.code, left.out, left.err], [0, "Hello", "writ: 2 turns of the script not played"])
    })
  )
})
