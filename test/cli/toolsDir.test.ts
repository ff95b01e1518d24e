/** `--tools-dir`: tools that are files, looked at and used in runs. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import { directory, invoke, newestTrace, runsIn, traceOf, writ } from "../kit/cli.ts"
import { call } from "../kit/script.ts"
import { directoryOf, reads, scripted } from "../kit/toolFiles.ts"

const patience = 240_000

const counting = `let t="";process.stdin.on("data",d=>t+=d).on("end",()=>{const {text=""}=JSON.parse(t);console.log(text.split(" ").length)})`

const saving = `require("node:fs").appendFileSync("saved.txt", process.env.WRIT_IDEMPOTENCY_KEY + "\\n"); console.log("null")`

const acting = {
  contract: {
    risk: "local-write",
    ledger: "external",
    retry: "safe",
    reversible: true,
    evidence: { source: "sensor", describes: "the line in saved.txt" },
    post: "result",
    touches: [{ verb: "write", resource: "workspace:saved.txt" }]
  }
}

const tools = {
  "count_words.tool.json": scripted(counting, reads),
  "save.tool.json": scripted(saving, { ...acting, cwd: "workspace" }),
  "unsaid.tool.json": scripted(saving)
}

const script = (cwd: string, ...turns: ReadonlyArray<readonly [string, unknown]>): ReadonlyArray<string> => {
  const texts = [...turns.map(([name, args]) => call(name, args)), "done"]
  writeFileSync(join(cwd, "script.json"), JSON.stringify({ turns: texts }))
  return ["run", "the task", "--script", "script.json", "--trace-content"]
}

describe("writ tools --tools-dir", () => {
  it.effect("lists, shows and checks the tools of a directory beside ours", () =>
    Effect.gen(function* () {
      const dir = yield* directoryOf(tools)
      const listed = JSON.parse((yield* invoke(["tools", "list", "--json", "--tools-dir", dir])).out)
      const found = listed.tools.filter(({ name }: { name: string }) => `${name}.tool.json` in tools)
      assert.deepStrictEqual(
        found.map(({ name, risk, stated }: { name: string; risk: string; stated: boolean }) => [name, risk, stated]),
        [
          ["count_words", "read", true],
          ["save", "local-write", true],
          ["unsaid", "external", false]
        ]
      )
      const shown = JSON.parse((yield* invoke(["tools", "show", "save", "--json", "--tools-dir", dir])).out)
      assert.deepInclude(shown.contract, { ledger: "external", retry: "safe", isolation: "process" })
      assert.deepInclude(JSON.parse((yield* invoke(["tools", "show", "calculate", "--json"])).out).contract, {
        isolation: "thread"
      })
      const checked = yield* invoke(["tools", "check", "--json", "--tools-dir", dir])
      assert.strictEqual(checked.code, 3)
      assert.include(checked.out, '"says_nothing"')
    })
  )

  it.effect("says what to do about a tool that is a file in the keys of that file", () =>
    Effect.gen(function* () {
      const properties = { bare: { type: "string", not: { const: "x" } } }
      const dir = yield* directoryOf({
        "a.tool.json": scripted(saving, { parameters: { type: "object", properties } }),
        "b.tool.json": scripted(saving, { contract: { ...acting.contract, retry: "never" } })
      })
      const { findings } = JSON.parse((yield* invoke(["tools", "check", "--json", "--tools-dir", dir])).out) as {
        readonly findings: ReadonlyArray<{ readonly code: string; readonly remedy: string }>
      }
      const codes = new Set(findings.map(({ code }) => code))
      for (const code of ["says_nothing", "no_description", "no_postcondition"]) assert.isTrue(codes.has(code), code)
      for (const { remedy } of findings) {
        assert.match(remedy, /^in its \.tool\.json, /)
        assert.notMatch(remedy, /Contract\.|annotate|=>/)
      }
      assert.include(findings.find(({ code }) => code === "no_description")?.remedy ?? "", '"bare"')
    })
  )

  it.live(
    "says in words what is around a call",
    () =>
      Effect.gen(function* () {
        const [cwd, dir] = [yield* directory, yield* directoryOf(tools)]
        const { out } = yield* writ(["tools", "show", "unsaid", "--tools-dir", dir], { cwd })
        assert.match(out, /^runs in +a process: /m)
      }),
    patience
  )

  it.effect("says every problem of every file, and does not begin", () =>
    Effect.gen(function* () {
      const dir = yield* directoryOf({ "a.tool.json": { description: "x" }, "b.tool.json": "{" })
      for (const args of [
        ["tools", "list"],
        ["run", "the task"]
      ]) {
        const { code, err } = yield* invoke([...args, "--tools-dir", dir])
        assert.strictEqual(code, 2)
        for (const text of [
          "--tools-dir: 3 problems",
          "a.tool.json: parameters: it is missing",
          "b.tool.json: line 1: "
        ]) {
          assert.include(err, text)
        }
      }
      const taken = yield* directoryOf({ "echo.tool.json": scripted("", reads) })
      const { code, err } = yield* invoke(["run", "the task", "--tools-dir", taken])
      assert.strictEqual(code, 2)
      assert.include(err, "echo: there are two tools of this name")
    })
  )
})

describe("writ run --tools-dir", () => {
  it.live(
    "runs the programs behind the same gates, and leaves a record that holds",
    () =>
      Effect.gen(function* () {
        const [cwd, dir] = [yield* directory, yield* directoryOf(tools)]
        const task = script(
          cwd,
          ["count_words", { text: "one two three" }],
          ["save", {}],
          ["unsaid", {}],
          ["count_words", { txt: 1 }]
        )
        const { code, err, out } = yield* writ([...task, "--tools-dir", dir, "--json"], { cwd })
        assert.strictEqual(code, 0, err)
        assert.strictEqual(JSON.parse(out).stop.status, "completed")
        const trace = newestTrace(cwd)
        const answers = trace
          .filter(({ event_type }) => event_type === "tool_result_committed")
          .map(({ data }) => JSON.parse(String(data["answer"])))
        assert.deepStrictEqual(answers[0], { ok: true, result: 3 })
        assert.deepStrictEqual(answers[1], { ok: true, result: null })
        assert.deepInclude(answers[2], { ok: false, kind: "refused" })
        // What acted had the key that is on record, and what was not allowed did nothing.
        const intent = trace.find(({ event_type }) => event_type === "effect_intent")
        assert.strictEqual(
          readFileSync(join(cwd, "saved.txt"), "utf8"),
          `${String(intent?.data["idempotency_key"] ?? intent?.data["key"])}\n`
        )
        assert.deepStrictEqual(readdirSync(dir).sort(), Object.keys(tools).sort())
        const { complete, ok, violations } = validateText(traceOf(runsIn(cwd).at(-1)!))
        assert.deepStrictEqual({ complete, ok, violations }, { complete: true, ok: true, violations: [] })
      }),
    patience
  )

  it.live(
    "offers what is named, else all of the directory besides the default, and never by a settings file",
    () =>
      Effect.gen(function* () {
        const [cwd, dir] = [yield* directory, yield* directoryOf(tools)]
        const toolsOf = Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
          const { err, out } = yield* writ([...script(cwd), "--json", ...args], { cwd })
          const { error, tools: offered } = JSON.parse(out)
          return error === undefined ? (offered as ReadonlyArray<string>) : err
        })
        assert.includeMembers(
          [...(yield* toolsOf("--tools-dir", dir))],
          ["list_files", "count_words", "save", "unsaid"]
        )
        assert.deepStrictEqual(yield* toolsOf("--tools-dir", dir, "--tools", "count_words,echo"), [
          "count_words",
          "echo"
        ])
        writeFileSync(join(cwd, "writ.config.json"), JSON.stringify({ toolsDir: dir }))
        assert.match(String(yield* toolsOf()), /has to be said on the command line or in WRIT_TOOLS_DIR/)
      }),
    patience
  )

  it.live(
    "ends a program at the tool's deadline and goes on",
    () =>
      Effect.gen(function* () {
        const sleeping = scripted("setInterval(()=>{},1000)", { ...reads, timeoutMillis: 300 })
        const [cwd, dir] = [yield* directory, yield* directoryOf({ "sleep.tool.json": sleeping })]
        const { code, err } = yield* writ([...script(cwd, ["sleep", {}]), "--tools-dir", dir], { cwd })
        assert.strictEqual(code, 0, err)
        const answer = newestTrace(cwd).find(({ event_type }) => event_type === "tool_result_committed")?.data["answer"]
        assert.deepInclude(JSON.parse(String(answer)), { ok: false, kind: "timed_out" })
      }),
    patience
  )
})

describe("writ approve, for a run with tools of a directory", () => {
  it.live(
    "decides nothing without them, and says how to name them; so does writ run --resume",
    () =>
      Effect.gen(function* () {
        const [cwd, dir] = [yield* directory, yield* directoryOf({ "unsaid.tool.json": scripted(saving) })]
        const stopped = yield* writ([...script(cwd, ["unsaid", {}]), "--tools-dir", dir, "--suspend"], { cwd })
        assert.strictEqual(stopped.code, 6, stopped.err)
        const run = runsIn(cwd)[0]!
        const before = readdirSync(run)
        for (const command of [
          ["approve", run],
          ["deny", run],
          ["run", "--resume", run]
        ]) {
          const { code, err } = yield* writ([...command, "--script", "script.json"], { cwd })
          assert.strictEqual(code, 2)
          assert.strictEqual(err, "writ: the run had tools of a directory: add --tools-dir DIR (unsaid)\n")
          assert.deepStrictEqual(readdirSync(run), before, "nothing was decided")
        }
        const went = yield* writ(["approve", run, "--script", "script.json", "--tools-dir", dir], { cwd })
        assert.strictEqual(went.code, 0, went.err)
      }),
    patience
  )
})

/** What of the environment, with these names, the program sees. */
const looking = `console.log(JSON.stringify(["DECLARED", "GRANTED", "SECRET"].filter((name) => name in process.env)))`

describe("a program of --tools-dir", () => {
  it.live(
    "sees the variables that its file names and those that are granted, and no others",
    () =>
      Effect.gen(function* () {
        const [cwd, dir] = [
          yield* directory,
          yield* directoryOf({ "look.tool.json": scripted(looking, { ...reads, env: ["DECLARED"] }) })
        ]
        const env = { DECLARED: "1", GRANTED: "2", SECRET: "a-secret-word" }
        const seenWith = Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
          const { code, err } = yield* writ([...script(cwd, ["look", {}]), "--tools-dir", dir, ...args], { cwd, env })
          assert.strictEqual(code, 0, err)
          const answer = newestTrace(cwd).find(({ event_type }) => event_type === "tool_result_committed")
          return JSON.parse(String(answer?.data["answer"])).result as unknown
        })
        assert.deepStrictEqual(yield* seenWith(), ["DECLARED"])
        assert.deepStrictEqual(yield* seenWith("--tool-env", "GRANTED"), ["DECLARED", "GRANTED"])
        assert.notInclude(traceOf(runsIn(cwd).at(-1)!), "a-secret-word")
        const missing = yield* invoke(["run", "t", "--tool-env", "ABSENT"], env)
        assert.strictEqual(missing.code, 2)
        assert.include(missing.err, "--tool-env ABSENT: there is no such variable")
        const wrong = yield* invoke(["run", "t", "--tool-env", "A=b"], env)
        assert.include(wrong.err, '"A=b" is not the name of a variable')
        const key = yield* invoke(["run", "t", "--tool-env", "WRIT_IDEMPOTENCY_KEY"], env)
        assert.include(key.err, "it is set by the runtime")
        writeFileSync(join(cwd, "writ.config.json"), JSON.stringify({ toolEnv: ["SECRET"] }))
        const { err } = yield* writ(["run", "t"], { cwd, env })
        assert.match(err, /has to be said on the command line or in WRIT_TOOL_ENV/)
      }),
    patience
  )
})

describe("writ trace replay --tools-dir", () => {
  it.live(
    "executes the programs that only read once more, and says what it lacks for the others",
    () =>
      Effect.gen(function* () {
        // It says that it only reads, and writes all the same.
        const code = `const fs = require("node:fs"); fs.appendFileSync("noise.txt", "x"); console.log(fs.readFileSync("a.txt", "utf8").length)`
        const reading = scripted(code, {
          contract: { risk: "read", touches: [{ verb: "read", resource: "workspace:a.txt" }] },
          cwd: "workspace"
        })
        const files = { ...tools, "measure.tool.json": reading }
        const [cwd, dir] = [yield* directory, yield* directoryOf(files)]
        const workspace = join(cwd, "files")
        mkdirSync(workspace)
        writeFileSync(join(workspace, "a.txt"), "text")
        const task = script(cwd, ["count_words", { text: "one two" }], ["measure", {}], ["save", {}])
        const ran = yield* writ([...task, "--tools-dir", dir, "--workspace", workspace], { cwd })
        assert.strictEqual(ran.code, 0, ran.err)
        const run = runsIn(cwd).at(-1)!
        const replayed = (...args: ReadonlyArray<string>) => invoke(["trace", "replay", run, "--no-color", ...args])
        const without = yield* replayed()
        assert.include(without.out, "there is no tool of this name here")
        const bare = yield* replayed("--tools-dir", dir)
        assert.match(bare.out, /measure +skipped: it read the workspace of the run/)
        assert.include(bare.out, "match (1 matched, 0 mismatched, 2 skipped)")
        const whole = yield* replayed("--tools-dir", dir, "--workspace", workspace)
        assert.include(whole.out, "match (2 matched, 0 mismatched, 1 skipped)")
        assert.strictEqual(readFileSync(join(workspace, "noise.txt"), "utf8"), "x", "a replay works on a copy")
        // What acts is not done again.
        assert.strictEqual(readFileSync(join(workspace, "saved.txt"), "utf8").split("\n").length, 2)
        assert.strictEqual((yield* replayed("--full")).code, 2)
        const full = yield* replayed("--full", "--tools-dir", dir)
        assert.strictEqual(full.code, 0, full.out + full.err)
        const other = yield* directoryOf({ ...files, "count_words.tool.json": scripted("console.log(7)", reads) })
        const changed = yield* replayed("--tools-dir", other)
        assert.strictEqual(changed.code, 3)
        assert.match(
          changed.out,
          /count_words +MISMATCH payload: recorded 2, now 7 \(the tool is not the one of the record\)/
        )
      }),
    patience
  )
})
