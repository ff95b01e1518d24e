import * as fs from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { ToolOutcome } from "../../../src/tools/ToolCall.ts"
import { until } from "../../kit/toolCalls.ts"
import { call, directoryOf, reads, scripted } from "../../kit/toolFiles.ts"

const acting = {
  contract: {
    risk: "external",
    ledger: "external",
    retry: "safe",
    reversible: true,
    evidence: { source: "sensor", describes: "the other side" },
    post: "result"
  }
}

/** What came of one call of a tool with this source. */
const outcomeOf = Effect.fnUntraced(function* (
  source: string,
  more: Readonly<Record<string, unknown>> = {},
  args = {},
  options: Parameters<typeof call>[3] = {}
) {
  const directory = yield* directoryOf({ "a.tool.json": scripted(source, { ...reads, ...more }) })
  return yield* call(directory, "a", args, options)
})

const saidBy = (outcome: ToolOutcome): string =>
  outcome._tag === "Failed"
    ? `${outcome.kind} ${outcome.effect}: ${outcome.errors[0]!.reason}`
    : `ok ${JSON.stringify(outcome.result)}`

const echo = `let t=""; process.stdin.on("data",d=>t+=d).on("end",()=>process.stdout.write(t))`

const isGone = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return false
  } catch {
    return true
  }
}

describe("a tool that is a program", () => {
  it.live("gets its arguments as JSON on standard input, as they are, and no shell sees them", () =>
    Effect.gen(function* () {
      const text = "$(touch x) `id` ; rm -rf / && \u00e9\ud83c\udf1e \" ' \\ \n %PATH%"
      assert.deepInclude(yield* outcomeOf(echo, {}, { text }), { _tag: "Succeeded", result: { text } })
      const words = { command: [process.execPath, "-p", "JSON.stringify(process.argv.slice(1))", "$HOME", "a b", "*"] }
      assert.deepInclude(yield* outcomeOf("", words), { result: ["$HOME", "a b", "*"] })
    })
  )

  it.live("may answer in text, and may leave its standard input unread", () =>
    Effect.gen(function* () {
      assert.deepInclude(yield* outcomeOf(`process.stdout.write("42\\n")`, { output: "text" }), { result: "42\n" })
      const large = { text: "x".repeat(1_000_000) }
      assert.deepInclude(yield* outcomeOf(`process.stdin.destroy(); console.log("7")`, {}, large), { result: 7 })
    })
  )

  it.live("fails with the end of what it wrote to standard error, and leaves what its contract says", () =>
    Effect.gen(function* () {
      const fails = (code: number) =>
        `console.error("${"x".repeat(50)}\\n".repeat(500) + "no paper in /home/me/tray"); process.exit(${code})`
      const read = saidBy(yield* outcomeOf(fails(3)))
      assert.match(read, /^execution_failed none: it ended with exit code 3: .*no paper in <path>$/)
      assert.isBelow(read.length, 500)
      assert.match(saidBy(yield* outcomeOf(fails(3), acting)), /^execution_failed unknown: /)
      const none = { contract: { ...acting.contract, failure: "none" } }
      assert.match(saidBy(yield* outcomeOf(fails(3), none)), /^execution_failed none: /)
      assert.match(saidBy(yield* outcomeOf(fails(75), none)), /^unavailable none: /)
      assert.strictEqual(
        saidBy(yield* outcomeOf("process.exit(1)")),
        "execution_failed none: it ended with exit code 1: it did not say why"
      )
      assert.match(
        saidBy(yield* outcomeOf("process.kill(process.pid, 'SIGKILL')", acting)),
        /^execution_failed unknown: it was ended by SIGKILL/
      )
    })
  )

  it.live("has a bad result where it succeeds and says nothing that can be used", () =>
    Effect.gen(function* () {
      const cases: ReadonlyArray<readonly [string, RegExp]> = [
        ["", /output is empty; a tool without a result writes null/],
        ["console.log('{a:1}')", /output is not JSON: .*at character/],
        [`console.log('{"a":1,"a":2}')`, /output is not JSON/],
        ["console.log('1 2')", /output is not JSON/],
        ["process.stdout.write(Buffer.from([0x22,0xff,0x22]))", /output is no text: it is not UTF-8 text \(byte 1\)/]
      ]
      for (const [source, reason] of cases) {
        const outcome = yield* outcomeOf(source, acting)
        assert.deepInclude(outcome, { kind: "bad_result", effect: "present" }, source)
        assert.match(saidBy(outcome), reason)
      }
      const promise = { outputSchema: { type: "object", required: ["n"] } }
      assert.deepInclude(yield* outcomeOf(`console.log('{"n":1}')`, promise), { result: { n: 1 } })
      assert.match(saidBy(yield* outcomeOf(`console.log('{}')`, promise)), /not what its file promises: .*'n'/)
    })
  )

  it.live("sees no variable but PATH, those it was allowed and the key", () =>
    Effect.gen(function* () {
      process.env["WRIT_TEST_ALLOWED"] = "yes"
      process.env["WRIT_TEST_SECRET"] = "no"
      const shows = "console.log(JSON.stringify(process.env))"
      const settings = { idempotencyKey: "run/0/0" }
      const outcome = yield* outcomeOf(shows, { env: ["WRIT_TEST_ALLOWED", "WRIT_TEST_ABSENT"] }, {}, { settings })
      const seen = outcome._tag === "Succeeded" ? (outcome.result as Record<string, string>) : {}
      assert.deepStrictEqual(Object.keys(seen).sort(), ["PATH", "WRIT_IDEMPOTENCY_KEY", "WRIT_TEST_ALLOWED"])
      assert.deepInclude(seen, { WRIT_TEST_ALLOWED: "yes", WRIT_IDEMPOTENCY_KEY: "run/0/0" })
    })
  )

  it.live("runs in the directory of its file, or in the workspace if it says so", () =>
    Effect.gen(function* () {
      const where = "console.log(JSON.stringify(process.cwd()))"
      const directory = yield* directoryOf({
        "here.tool.json": scripted(where, reads),
        "there.tool.json": scripted(where, { ...reads, cwd: "workspace" })
      })
      const workspace = yield* directoryOf({})
      assert.deepInclude(yield* call(directory, "here"), { result: fs.realpathSync(directory) })
      assert.deepInclude(yield* call(directory, "there", {}, { settings: { workspace } }), {
        result: fs.realpathSync(workspace)
      })
      assert.match(saidBy(yield* call(directory, "there")), /^refused none: .*this run has none/)
    })
  )

  it.live("is ended when it writes more than it may, whatever it floods", () =>
    Effect.gen(function* () {
      const floods = "for (;;) require('node:fs').writeSync(1, 'x'.repeat(65536))"
      const limit = { maxOutputBytes: 100_000 }
      assert.match(
        saidBy(yield* outcomeOf(floods, { ...acting, ...limit })),
        /^execution_failed unknown: it wrote more than 100000 bytes/
      )
      assert.match(
        saidBy(yield* outcomeOf("process.stdout.write('x'.repeat(100001))", { ...limit, output: "text" })),
        /more than 100000 bytes/
      )
      const talks = "for (let i = 0; i < 2000; i++) require('node:fs').writeSync(2, 'x'.repeat(4096)); console.log(1)"
      assert.deepInclude(yield* outcomeOf(talks), { result: 1 })
    })
  )

  it.live(
    "is ended at its deadline with all it started, and so when the caller is stopped",
    () =>
      Effect.gen(function* () {
        // It ignores the request to end, and so does what it started.
        const stubborn = `process.on("SIGTERM",()=>{}); setInterval(()=>{},1000);`
        const source = `${stubborn} const c=require("node:child_process").spawn(process.execPath,["-e",${JSON.stringify(stubborn)}],{stdio:"inherit"});
        require("node:fs").writeFileSync("pids.tmp",process.pid+" "+c.pid); require("node:fs").renameSync("pids.tmp","pids")`
        const directory = yield* directoryOf({ "a.tool.json": scripted(source, { ...reads, ...acting }) })
        const pidsIn = () => fs.readFileSync(join(directory, "pids"), "utf8").split(" ").map(Number)
        for (const how of ["deadline", "stop"]) {
          fs.rmSync(join(directory, "pids"), { force: true })
          // A deadline no machine is too slow for: the process is there long before it.
          const deadlineMillis = how === "deadline" ? 4000 : Number.POSITIVE_INFINITY
          const fiber = yield* Effect.forkScoped(call(directory, "a", {}, { deadlineMillis }), {
            startImmediately: true
          })
          yield* until(() => fs.existsSync(join(directory, "pids")) || fiber.pollUnsafe() !== undefined)
          const pids = pidsIn()
          assert.strictEqual(pids.length, 2)
          if (how === "deadline") {
            assert.deepInclude(yield* Fiber.join(fiber), { kind: "timed_out", effect: "unknown" })
          } else yield* Fiber.interrupt(fiber)
          yield* until(() => pids.every(isGone))
        }
      }),
    240_000
  )

  it.live("is not waited for by what it left running, which is ended too", () =>
    Effect.gen(function* () {
      const child = "setInterval(()=>{},1000)"
      const source = `const c=require("node:child_process").spawn(process.execPath,["-e","${child}"],{stdio:"inherit"}); c.unref(); console.log(c.pid); process.exit(0)`
      const outcome = yield* outcomeOf(source)
      assert.isTrue(outcome._tag === "Succeeded", saidBy(outcome))
      const pid = outcome._tag === "Succeeded" ? Number(outcome.result) : 0
      yield* until(() => isGone(pid))
    })
  )

  it.live("that has gone since it was read cannot be started, and did nothing", () =>
    Effect.gen(function* () {
      const directory = yield* directoryOf({
        "run.sh": "#!/bin/sh\necho 1\n",
        "a.tool.json": scripted("", { ...acting, command: ["./run.sh"] })
      })
      fs.chmodSync(join(directory, "run.sh"), 0o755)
      assert.deepInclude(yield* call(directory, "a"), { result: 1 })
      fs.writeFileSync(join(directory, "run.sh"), "#!/no/such/interpreter\n")
      assert.match(saidBy(yield* call(directory, "a")), /^execution_failed none: it cannot be started: /)
    })
  )
})

describe("a tool that is a module", () => {
  const moduled = (source: string, more: Readonly<Record<string, unknown>> = {}) => ({
    "work.mjs": source,
    "a.tool.json": scripted("", { ...reads, command: undefined, module: "work.mjs", ...more })
  })

  it.live("is a function of the arguments, and may print what it likes", () =>
    Effect.gen(function* () {
      const source = `export default async ({ text }, { idempotencyKey }) => { console.log("working"); setInterval(() => {}, 1000); return { text, idempotencyKey } }`
      const directory = yield* directoryOf(moduled(source))
      const settings = { idempotencyKey: "k" }
      assert.deepInclude(yield* call(directory, "a", { text: "x" }, { settings }), {
        result: { text: "x", idempotencyKey: "k" }
      })
    })
  )

  it.live("fails with what it throws, and with what it is not", () =>
    Effect.gen(function* () {
      const said = Effect.fnUntraced(function* (source: string, more = {}) {
        return saidBy(yield* call(yield* directoryOf(moduled(source, more)), "a"))
      })
      assert.match(
        yield* said(`export default () => { throw new RangeError("too far") }`),
        /exit code 1: RangeError: too far$/
      )
      assert.match(yield* said(`export default () => Promise.reject("just words")`), /exit code 1: just words$/)
      assert.match(yield* said("export const x = 1"), /no function as its default export$/)
      assert.match(yield* said("export default ("), /exit code 1: SyntaxError/)
      assert.strictEqual(yield* said("export default () => {}"), "ok null")
      assert.strictEqual(yield* said(`export default () => "t"`, { output: "text" }), 'ok "t"')
      assert.match(yield* said("export default () => 1", { output: "text" }), /gave number where its file says text$/)
      assert.match(yield* said("export default () => 1n"), /BigInt/)
      assert.match(yield* said("process.exit(9)"), /exit code 9: it did not say why$/)
    })
  )
})
