/** `--route`, `--stream`, `--clarify`, and answers to questions that were said, on the command line. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { type CliRun, recordOf, runCli } from "../kit/cliRun.ts"
import { call } from "../kit/script.ts"

const within = <A, E, R>(use: (cwd: string) => Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "writ-route-"))),
    use,
    (cwd) => Effect.sync(() => rmSync(cwd, { recursive: true, force: true }))
  )

const asks = 'CLARIFY("Which one?")'
const add = call("add", { a: 2, b: 3 })

const ran = (cwd: string, turns: CliRun["turns"], ...args: ReadonlyArray<string>) =>
  Effect.map(
    runCli({ cwd, turns, args: ["--tools", "add,clarify", "--run-dir", join(cwd, "run"), "--trace-content", ...args] }),
    (left) => ({ ...left, ...recordOf(join(cwd, "run")) })
  )

const typesOf = (trace: ReadonlyArray<{ readonly event_type: string }>) => trace.map(({ event_type }) => event_type)

describe("writ run --route", () => {
  it.effect("auto: a talk is answered without tools, and a hand-over is said and goes on as the task", () =>
    within((cwd) =>
      Effect.gen(function* () {
        const { code, performed, screen, trace } = yield* ran(
          cwd,
          ["chat", "TASK()", add, "It is 5."],
          "--route",
          "auto",
          "Add 2 and 3"
        )
        assert.deepStrictEqual([code, performed.length], [0, 1])
        assert.include(screen, "(taken for a chat: no tools)")
        assert.include(screen, "this is a task")
        assert.notInclude(screen, "TASK()")
        assert.strictEqual(typesOf(trace).filter((type) => type === "routed").length, 2)
      })
    )
  )

  it.effect("auto: which way it went is one line on the screen, and none in an answer alone", () =>
    Effect.gen(function* () {
      const lineOf = (cwd: string, ...args: ReadonlyArray<string>) =>
        Effect.map(ran(cwd, ["banana", "It is 5."], "--route", "auto", ...args, "Add"), ({ out, screen }) => ({
          said: (screen + out).split("\n").filter((line) => line.includes("taken for")),
          out
        }))
      assert.deepStrictEqual((yield* within((cwd) => lineOf(cwd))).said, ["  (taken for a task)"])
      const quiet = yield* within((cwd) => lineOf(cwd, "--quiet"))
      assert.deepStrictEqual(quiet, { said: [], out: "It is 5." })
    })
  )

  it.effect("chat: is not asked about; without the flag nothing is asked and nothing is said of it", () =>
    Effect.gen(function* () {
      const chat = yield* within((cwd) => ran(cwd, ["Hello!"], "--route", "chat", "Hi"))
      assert.deepInclude(chat.trace.find(({ event_type: type }) => type === "routed")!.data, {
        by: "caller",
        route: "chat"
      })
      const task = yield* within((cwd) => ran(cwd, ["Hello!"], "Hi"))
      assert.notInclude(typesOf(task.trace), "routed")
    })
  )
})

describe("a question that is said", () => {
  it.effect("ends with exit code 6 and the command that answers; the answer goes on with its budgets", () =>
    within((cwd) =>
      Effect.gen(function* () {
        const asked = yield* ran(cwd, [add, asks], "--max-turns", "3", "Add")
        assert.strictEqual(asked.code, 6)
        assert.include(asked.screen, "Which one?")
        assert.match(asked.screen, /--resume .* --answer/)
        const answer = ["--resume", join(cwd, "run"), "--answer", "The first."]
        const done = yield* runCli({ cwd, turns: [add, asks, "The first it is.", "never"], args: answer })
        assert.deepStrictEqual([done.code, done.performed], [0, []])
        const { trace, transcript } = recordOf(join(cwd, "run"), "-r2")
        assert.deepInclude(trace.find(({ event_type: type }) => type === "run_resumed")!.data["spent"], {
          tool_calls: 1
        })
        assert.deepInclude(transcript.messages.at(-2), { role: "user", content: "The first." })
      })
    )
  )

  it.effect("has to be answered to go on, and nothing else can be", () =>
    within((cwd) =>
      Effect.gen(function* () {
        yield* ran(cwd, [asks], "Add")
        const without = yield* runCli({ cwd, turns: [asks, "x"], args: ["--resume", join(cwd, "run")] })
        assert.strictEqual(without.code, 2)
        assert.include(without.err, "Which one?")
        for (const empty of ["", " \n"]) {
          const said = yield* runCli({
            cwd,
            turns: [asks, "x"],
            args: ["--resume", join(cwd, "run"), "--answer", empty]
          })
          assert.deepStrictEqual([said.code, said.err], [2, "writ: --answer: the answer is empty"])
        }
        yield* runCli({ cwd, turns: [asks, { text: "done" }], args: ["--resume", join(cwd, "run"), "--answer", "x"] })
        const again = yield* runCli({ cwd, turns: ["x"], args: ["--resume", join(cwd, "run"), "--answer", "x"] })
        assert.strictEqual(again.code, 2)
        assert.include(again.err, "completed")
      })
    )
  )

  it.effect("is text with --clarify off", () =>
    Effect.gen(function* () {
      const { code, out, trace } = yield* within((cwd) => ran(cwd, [asks], "--clarify", "off", "--quiet", "Add"))
      assert.deepStrictEqual([code, out.trim()], [0, asks])
      assert.include(typesOf(trace), "run_completed")
    })
  )
})

describe("an answer, a question, and the edge of the terminal", () => {
  const words = Array.from({ length: 12 }, (_, at) => `${"abcdefghijkl"[at]}${"x".repeat(at % 5)}`).join(" ")
  const lines = ["a bx cxx dxxx exxxx", "f gx hxx ixxx jxxxx", "k lx"]

  it.effect("words stay whole on a terminal, with --quiet too; a pipe gets the text as it is", () =>
    Effect.gen(function* () {
      const shown = (terminal: number | undefined, turn: string, ...args: ReadonlyArray<string>) =>
        within((cwd) => {
          const all = ["--tools", "add", "--run-dir", join(cwd, "run"), ...args, "t"]
          return runCli({ cwd, turns: [turn], args: all, ...(terminal === undefined ? {} : { terminal }) })
        })
      const indented = lines.map((line) => `  ${line}`).join("\n")
      assert.include((yield* shown(22, words)).screen, `\n${indented}\n`)
      assert.include((yield* shown(22, `CLARIFY("${words}")`)).screen, `\n${indented}\n`)
      assert.strictEqual((yield* shown(20, words, "--quiet")).screen, `${lines.join("\n")}\n`)
      assert.strictEqual((yield* shown(undefined, words, "--quiet")).out, words)
      assert.include((yield* shown(undefined, words)).screen, `\n  ${words}\n`)
    })
  )
})

describe("writ run --keep-state", () => {
  it.effect("says in one line what keeps it from keeping anything", () =>
    Effect.gen(function* () {
      const said = (...args: ReadonlyArray<string>) =>
        Effect.map(
          within((cwd) =>
            runCli({ cwd, turns: ["hi"], args: ["--tools", "none", "--run-dir", join(cwd, "run"), ...args, "t"] })
          ),
          ({ code, err }) => [code, err] as const
        )
      const [code, without] = yield* said("--keep-state", "--quiet")
      assert.strictEqual(code, 0)
      assert.match(without, /^writ: --keep-state keeps nothing without --trace-content: [^\n]+$/)
      const [, redacted] = yield* said("--keep-state", "--trace-content", "--redact", "name=Bob")
      assert.match(redacted, /^writ: --keep-state keeps nothing with --redact: [^\n]+$/)
      const [, scripted] = yield* said("--keep-state", "--trace-content")
      assert.match(scripted, /^writ: --keep-state keeps nothing here: only a model in a file has a state$/)
      assert.strictEqual((yield* said("--trace-content"))[1], "")
    })
  )
})

describe("writ run --stream", () => {
  const turns = [`Let me add.\n${add}`, "It is 5."]
  it.effect("answers: what stands before a call is not shown; all: it is", () =>
    Effect.gen(function* () {
      assert.notInclude((yield* within((cwd) => ran(cwd, turns, "Add"))).screen, "Let me add.")
      assert.include((yield* within((cwd) => ran(cwd, turns, "--stream", "all", "Add"))).screen, "Let me add.")
    })
  )
})
