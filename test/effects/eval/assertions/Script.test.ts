/** Scripts and programs as judges: what their end means, what they may know, where they may lie, and that nothing of them stays. */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type { Conversation } from "../../../../src/effects/conversation/Conversation.ts"
import type { Assertion } from "../../../../src/effects/eval/assertions/Kinds.ts"
import type { Around } from "../../../../src/effects/eval/Kind.ts"
import { Subject } from "../../../../src/effects/eval/Subject.ts"
import type { Verdict } from "../../../../src/effects/eval/Verdict.ts"
import { directory } from "../../../kit/cli.ts"
import { assistant, blank, decide, nowhere, ran, talk, user } from "../../../kit/evals.ts"

type Source = { readonly contents: string } | { readonly path: string }

const node = (source: string | Source, pass_env?: ReadonlyArray<string>): Assertion => ({
  type: "script",
  runtime: "node",
  script: typeof source === "string" ? { contents: source } : source,
  ...(pass_env === undefined ? {} : { pass_env })
})
const python = (contents: string): Assertion => ({ type: "script", runtime: "python", script: { contents } })
const program = (source: string | Source): Assertion => ({
  type: "program",
  script: typeof source === "string" ? { contents: source } : source
})

/** In a project of its own, with a real way to start programs. */
const tried = (
  assertion: Assertion,
  more: Partial<Around> & { readonly prepare?: (root: string) => void } = {},
  conversation: Conversation = ran,
  subject = new Subject("sum", conversation)
): Effect.Effect<Verdict> =>
  Effect.gen(function* () {
    const root = yield* directory
    const { prepare, ...given } = more
    prepare?.(root)
    const spawner = yield* ChildProcessSpawner
    const around = { ...nowhere, env: process.env, root, spawner, ...given }
    return yield* decide(assertion, conversation, around, subject)
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))

const read = `let text = ""; process.stdin.on("data", (chunk) => { text += chunk }).on("end", () => {`

const ends: ReadonlyArray<readonly [claim: string, Assertion, outcome: string, reason?: RegExp | string]> = [
  ["0 is a pass, whatever was said", node(`console.log("hm"); console.error("ho")`), "pass"],
  [
    "not 0 with standard output: the candidate's fault, and why",
    node(`console.log("too long"); process.exit(1)`),
    "fail",
    "too long"
  ],
  [
    "not 0 with standard error alone: the environment's",
    node(`console.error("no disk"); process.exit(3)`),
    "errored",
    "exit code 3: no disk"
  ],
  ["not 0 without a word", node(`process.exit(1)`), "fail", "exit code 1, without a word"],
  ["a crash", node(`throw new Error("oops")`), "errored", /oops/],
  ["a signal", node(`process.kill(process.pid, "SIGKILL")`), "errored", /SIGKILL/],
  [
    "the answer comes on standard input",
    node(`${read} console.log(JSON.stringify(text)); process.exit(1) })`),
    "fail",
    '"It is 5."'
  ],
  [
    "the question comes in a variable",
    node(`console.log(process.env.WRIT_QUESTION); process.exit(1)`),
    "fail",
    "What is 2 plus 3?"
  ],
  [
    "modules of today and of yesterday",
    node(`const { join } = require("node:path"); process.exit(join("a", "b") === "a/b" ? 0 : 1)`),
    "pass"
  ],
  [
    "import works too",
    node(`import { join } from "node:path"; process.exit(join("a", "b") === "a/b" ? 0 : 1)`),
    "pass"
  ],
  ["it need not read what it is told", node(`process.stdin.destroy()`), "pass"],
  ["Python", python(`import sys\nprint(sys.stdin.read().upper())\nsys.exit(1)`), "fail", "IT IS 5."],
  ["a program by its first line", program(`#!/bin/sh\ncat\nexit 1\n`), "fail", "It is 5."],
  ["a program without one is not given to a shell", program("exit 0"), "malformed", /begins with #!/],
  [
    "more output than it may have",
    node(`process.stdout.write("x".repeat(2 * 1024 * 1024))`),
    "errored",
    /more than 1048576 bytes to standard output/
  ],
  ["as much as it may have", node(`process.stdout.write("x".repeat(1024 * 1024))`), "pass"],
  [
    "the same for standard error",
    node(`process.stderr.write("x".repeat(2 * 1024 * 1024))`),
    "errored",
    /standard error/
  ]
]

describe("script and program", () => {
  for (const [claim, assertion, outcome, reason] of ends) {
    it.live(`${assertion.type}: ${claim} (${outcome})`, () =>
      Effect.gen(function* () {
        const verdict = yield* tried(assertion)
        assert.strictEqual(verdict.outcome, outcome, verdict.reason)
        if (typeof reason === "string") assert.strictEqual(verdict.reason, reason)
        if (reason instanceof RegExp) assert.match(verdict.reason!, reason)
      })
    )
  }

  it.live("knows nothing of the environment but what programs need and what it was passed", () =>
    Effect.gen(function* () {
      const env = { PATH: process.env.PATH, SECRET: "s3cret-value", GIVEN: "given-value", HOME: "/home/x" }
      const verdict = yield* tried(
        node(`console.log(Object.keys(process.env).sort().join()); process.exit(1)`, ["GIVEN"]),
        { env }
      )
      assert.strictEqual(verdict.reason, "GIVEN,PATH,WRIT_QUESTION")
    })
  )

  it.live("what it was passed does not show in reasons, nor in what a judge is told", () =>
    Effect.gen(function* () {
      const env = { PATH: process.env.PATH, TOKEN: "abc", LONG: "abcdef" }
      const subject = new Subject("sum", ran)
      const show = node(`console.log("<" + process.env.LONG + "|" + process.env.TOKEN + ">"); process.exit(1)`, [
        "TOKEN",
        "LONG"
      ])
      const verdict = yield* tried(show, { env }, ran, subject)
      assert.strictEqual(verdict.reason, "<[LONG]|[TOKEN]>")
      assert.deepStrictEqual(subject.outputs, [{ class: "script", text: "<[LONG]|[TOKEN]>\n" }])
      const complained = yield* tried(node(`console.error(process.env.LONG); process.exit(1)`, ["LONG"]), { env })
      assert.strictEqual(complained.reason, "exit code 1: [LONG]")
    })
  )

  it.live("is ended with all it started when its time is up", () =>
    Effect.gen(function* () {
      const marker = join(yield* directory, "pid")
      const code = `
const { spawn } = require("node:child_process")
const child = spawn("sleep", ["1000"], { stdio: "inherit" })
require("node:fs").writeFileSync(${JSON.stringify(marker)}, String(child.pid))
setInterval(() => {}, 1000)`
      const verdict = yield* tried(node(code), { scriptMillis: 1_500 })
      assert.deepStrictEqual(verdict, { outcome: "errored", reason: "it took longer than 1500 ms and was ended" })
      // On a machine so busy that it had not come that far, nothing was started.
      if (existsSync(marker)) yield* gone(Number(readFileSync(marker, "utf8")))
    })
  )

  it.live("what it leaves running does not hold anybody up, and does not go on", () =>
    Effect.gen(function* () {
      const marker = join(yield* directory, "pid")
      const verdict = yield* tried(program(`#!/bin/sh\nsleep 1000 &\necho $! > ${marker}\necho said\nexit 1\n`))
      assert.deepStrictEqual(verdict, { outcome: "fail", reason: "said" })
      yield* gone(Number(readFileSync(marker, "utf8")))
    })
  )

  it.live("lies in the project: by its path there, and nowhere else", () =>
    Effect.gen(function* () {
      const outside = join(yield* directory, "outside.js")
      writeFileSync(outside, "")
      const prepare = (root: string) => {
        mkdirSync(join(root, "evals"))
        writeFileSync(join(root, "evals", "check.js"), "console.log(process.cwd()); process.exit(1)")
        symlinkSync(outside, join(root, "evals", "link.js"))
        symlinkSync(join(root, "evals", "check.js"), join(root, "evals", "inside.js"))
      }
      const at = (path: string) => tried(node({ path }), { prepare })
      assert.strictEqual((yield* at("evals/check.js")).outcome, "fail")
      assert.strictEqual((yield* at("evals/inside.js")).outcome, "fail")
      for (const [path, reason] of [
        ["evals/none.js", /there is no file/],
        ["evals", /there is no file/],
        [outside, /is absolute/],
        [`../${join(outside, "..").split("/").at(-1)}/outside.js`, /leads out of the project/],
        ["evals/link.js", /leads out of the project/]
      ] as const) {
        const verdict = yield* at(path)
        assert.strictEqual(verdict.outcome, "malformed", path)
        assert.match(verdict.reason!, reason)
      }
    })
  )

  it.live("a program that may not be executed is no verdict on anybody", () =>
    Effect.gen(function* () {
      const prepare = (root: string) => {
        writeFileSync(join(root, "check"), "#!/bin/sh\n")
        chmodSync(join(root, "check"), 0o644)
      }
      assert.strictEqual((yield* tried(program({ path: "check" }), { prepare })).outcome, "errored")
    })
  )

  it.live("a runtime that is not there is said so", () =>
    Effect.gen(function* () {
      const verdict = yield* tried(python("pass"), { env: { PATH: "/nowhere" } })
      assert.strictEqual(verdict.outcome, "errored")
      assert.match(verdict.reason!, /no such program/)
    })
  )

  it.live("needs an answer, a way to start it, and a question that fits", () =>
    Effect.gen(function* () {
      const fine = node("process.exit(0)")
      assert.strictEqual((yield* tried(fine, {}, talk([user("?"), blank]))).outcome, "fail")
      assert.strictEqual((yield* decide(fine, ran)).outcome, "deferred")
      const reserved = yield* tried(node("process.exit(0)", ["WRIT_QUESTION"]))
      assert.strictEqual(reserved.outcome, "malformed")
      const long = yield* tried(fine, {}, talk([user("é".repeat(70_000)), assistant("x")]))
      assert.match(`${long.outcome}: ${long.reason}`, /errored: the question \(140000 bytes\) does not fit/)
      const nul = yield* tried(fine, {}, talk([user("a\0b"), assistant("x")]))
      assert.strictEqual(nul.outcome, "errored")
    })
  )

  it.live("leaves no file behind", () =>
    Effect.gen(function* () {
      const subject = new Subject("sum", ran)
      yield* tried(node(`console.log(__filename)`), {}, ran, subject)
      const file = subject.outputs[0]!.text.trim()
      assert.include(file, tmpdir())
      assert.isFalse(existsSync(file))
      assert.isFalse(readdirSync(tmpdir()).includes(file.split("/").at(-2)!))
    })
  )
})

/** Waits until there is no such process; a test that is not ended by that is one whose process stayed. */
const gone = (pid: number): Effect.Effect<void> =>
  Effect.promise(async () => {
    for (;;) {
      try {
        process.kill(pid, 0)
        if (/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"))) return
      } catch {
        return
      }
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  })
