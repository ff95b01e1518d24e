import { spawn } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import * as Approvals from "../../src/actors/Approvals.ts"
import { replay } from "../../src/effects/trace/Replay.ts"
import { collect } from "../../src/effects/trace/TraceReader.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { directory, invoke, newestTrace, runsIn, start, writ } from "../kit/cli.ts"
import { recordOf, runCli } from "../kit/cliRun.ts"
import { sent } from "../kit/outbox.ts"
import { call } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

const turns = [call("send", { to: "bob" }), "Sent, I think."]
const program = join(import.meta.dirname, "../kit/outboxCli.ts")

/** A run that waits with `send`. */
const suspended = Effect.fnUntraced(function* (...more: ReadonlyArray<string>) {
  const cwd = yield* directory
  const run = join(cwd, "run")
  const flags = more.length === 0 ? ["--trace-content"] : more
  const left = yield* runCli({
    cwd,
    turns,
    args: ["--tools", "send", "--run-dir", run, "--suspend", ...flags, "Do it."]
  })
  const decide = (command: "approve" | "deny", ...args: ReadonlyArray<string>) =>
    runCli({ cwd, turns, command: [command, run], args: ["--by", "ada", ...args] })
  const resume = (...args: ReadonlyArray<string>) => runCli({ cwd, turns, args: ["--resume", run, ...args] })
  return { cwd, run, left, decide, resume }
})

describe("writ run --suspend", () => {
  it.effect("stops before the call, performs nothing, and says how to go on", () =>
    Effect.gen(function* () {
      const { left, run } = yield* suspended()
      assert.deepStrictEqual([left.code, left.performed], [6, []], left.err)
      assert.include(left.screen, "stopped before call-0-0 (it needs an approval)")
      assert.match(left.screen, new RegExp(`npx writ approve ${run} --script`))
      assert.match(left.screen, new RegExp(`npx writ deny ${run} --script`))
    })
  )

  it.effect("says at once, and again when it stops, what a run without content cannot do", () =>
    Effect.gen(function* () {
      const { decide, left } = yield* suspended("--no-trace-content")
      assert.include(left.err, "without --trace-content a run that stops for an approval cannot go on")
      assert.include(left.screen, "start it again with --suspend --trace-content")
      const refused = yield* decide("approve")
      assert.strictEqual(refused.code, 2)
      assert.include(refused.err, "recorded without content")
    })
  )

  it.effect("is the same as --approve suspend, and no other --approve", () =>
    Effect.gen(function* () {
      const { code, err } = yield* invoke(["run", "--suspend", "--approve", "all", "Do it."])
      assert.deepStrictEqual([code, err], [2, "writ: give --suspend or --approve all, not both"])
    })
  )
})

describe("writ approve", () => {
  it.effect("shows what is decided, records who did, and goes on with the run", () =>
    Effect.gen(function* () {
      const { decide, run } = yield* suspended()
      const left = yield* decide("approve", "--reason", "Bob asked for it")
      assert.deepStrictEqual([left.code, left.performed], [0, ['send:{"to":"bob"}']], left.err)
      assert.include(left.screen, "The model wants to call send: it reaches outside (external).")
      assert.include(left.screen, 'to: "bob"')
      assert.include(left.screen, "call-0-0 approved by ada, until 1970-01-01 00:30:00Z")
      const [approval] = yield* Approvals.read(run)
      assert.deepStrictEqual([approval?.by, approval?.decision, approval?.reason], ["ada", "allow", "Bob asked for it"])
      const { trace } = recordOf(run, "-r2")
      const asked = trace.find(({ event_type }) => event_type === "approval_requested")?.data
      const decided = trace.find(({ event_type }) => event_type === "approval_decided")?.data
      assert.strictEqual(asked?.["digest"], approval?.digest)
      assert.deepStrictEqual([decided?.["decision"], decided?.["by"]], ["allow", "ada"])
      const checked = yield* invoke(["trace", "validate", run])
      assert.strictEqual(checked.code, 0, checked.out)
    })
  )

  it.effect("is on the record as that person's decision, so that the run can be replayed", () =>
    Effect.gen(function* () {
      const { decide, run } = yield* suspended("--trace-content", "--profile", "cautious,retry=harmless")
      yield* decide("approve")
      const partOf = (name: string) =>
        Effect.map(collect(join(run, name)), (items) =>
          items.flatMap((item) => (item._tag === "Event" ? [item.record] : []))
        )
      const [first, second] = [yield* partOf("trace.jsonl"), yield* partOf("trace-r2.jsonl")]
      const { registry } = yield* TestTools.make()
      const tools = yield* Registry.pick(registry, ["send"])
      assert.isTrue((yield* replay(first, { tools })).same)
      assert.deepStrictEqual(yield* replay(second, { tools, earlier: [first] }), {
        same: true,
        compared: second.length
      })
    })
  )

  it.effect("is kept for whoever goes on later, with --no-resume", () =>
    Effect.gen(function* () {
      const { decide, resume } = yield* suspended()
      const kept = yield* decide("approve", "--no-resume")
      assert.deepStrictEqual([kept.code, kept.performed], [0, []], kept.err)
      assert.include(kept.screen, "npx writ run --resume")
      const left = yield* resume()
      assert.deepStrictEqual([left.code, left.performed], [0, ['send:{"to":"bob"}']], left.err)
    })
  )

  it.effect("prints one document with --json", () =>
    Effect.gen(function* () {
      const { decide, run } = yield* suspended()
      const kept = yield* decide("approve", "--no-resume", "--json")
      const document = JSON.parse(kept.out)
      assert.deepStrictEqual(
        [document.call, document.decision, document.arguments],
        ["call-0-0", "allow", { to: "bob" }]
      )
      const went = yield* decide("approve", "--json")
      assert.strictEqual(JSON.parse(went.out).stop.status, "completed", went.out)
      const over = yield* runCli({ cwd: run, turns, command: ["approve", run], args: ["--json"] })
      assert.include(JSON.parse(over.out).error.message, "does not wait for an approval: it completed")
    })
  )

  it.effect("expires: the run waits again", () =>
    Effect.gen(function* () {
      const { decide, resume } = yield* suspended()
      yield* decide("approve", "--no-resume", "--approval-expiry", "90s")
      yield* TestClock.adjust("91 seconds")
      const left = yield* resume()
      assert.deepStrictEqual([left.code, left.performed], [6, []], left.err)
      assert.include(left.err, "the approval of call-0-0 by ada held until 1970-01-01T00:01:30.000Z")
    })
  )

  it.effect("counts for nothing but the arguments it was given for", () =>
    Effect.gen(function* () {
      const { decide, resume, run } = yield* suspended()
      yield* decide("approve", "--no-resume")
      const path = join(run, Approvals.fileName)
      writeFileSync(
        path,
        readFileSync(path, "utf8")
          .replace(/"digest":"./, '"digest":"0')
          .replace('"0', '"0')
      )
      const [approval] = yield* Approvals.read(run)
      writeFileSync(path, `${JSON.stringify({ ...approval, digest: "0".repeat(64) })}\n`)
      const left = yield* resume()
      assert.deepStrictEqual([left.code, left.performed], [6, []], left.err)
      assert.include(left.err, "is for other arguments")
    })
  )

  it.effect("puts the decision off where the record of approvals cannot be read, whatever is allowed otherwise", () =>
    Effect.gen(function* () {
      const { resume, run } = yield* suspended()
      mkdirSync(join(run, Approvals.fileName))
      const left = yield* resume("--approve", "all")
      assert.deepStrictEqual([left.code, left.performed], [6, []], left.err)
      rmSync(join(run, Approvals.fileName), { recursive: true })
      assert.strictEqual((yield* resume("--approve", "all")).code, 0)
    })
  )

  it.effect("refuses a run that does not wait, another call than the one, and a record that was changed", () =>
    Effect.gen(function* () {
      const { decide, resume, run } = yield* suspended()
      const wrong = yield* decide("approve", "call-0-1")
      assert.deepStrictEqual([wrong.code, wrong.err.includes("waits with call-0-0, not with call-0-1")], [2, true])
      const trace = readFileSync(join(run, "trace.jsonl"), "utf8")
      writeFileSync(join(run, "trace.jsonl"), trace.replaceAll('"arguments":{"to":"bob"}', '"arguments":{"to":"eve"}'))
      const changed = yield* decide("approve")
      assert.deepStrictEqual([changed.code, changed.err.includes("not truthfully")], [2, true], changed.err)
      writeFileSync(join(run, "trace.jsonl"), trace)
      assert.isFalse(existsSync(join(run, Approvals.fileName)), "nothing was decided")
      assert.strictEqual((yield* resume("--approve", "deny")).code, 0)
      const over = yield* decide("approve")
      assert.deepStrictEqual([over.code, over.err.includes("does not wait for an approval: it completed")], [2, true])
    })
  )
})

describe("writ deny", () => {
  it.effect("tells the model that it was not allowed, and goes on", () =>
    Effect.gen(function* () {
      const { decide, run } = yield* suspended()
      const left = yield* decide("deny", "--reason", "not Bob")
      assert.deepStrictEqual([left.code, left.performed], [0, []], left.err)
      assert.include(left.screen, "call-0-0 denied by ada")
      const rejected = recordOf(run, "-r2").trace.find(({ event_type }) => event_type === "tool_call_rejected")
      assert.strictEqual(rejected?.data["kind"], "refused")
    })
  )

  it.effect("outweighs --approve all, and does not expire", () =>
    Effect.gen(function* () {
      const { decide, resume } = yield* suspended()
      yield* decide("deny", "--no-resume")
      yield* TestClock.adjust("400 days")
      const left = yield* resume("--approve", "all")
      assert.deepStrictEqual([left.code, left.performed], [0, []], left.err)
    })
  )
})

describe("permissions of a run", () => {
  it.effect("are not lost when it goes on: without saying them again it does not", () =>
    Effect.gen(function* () {
      const grants = ["--grant", "execute:tool:*", "--deny", "send:mail:*"]
      const { decide, left } = yield* suspended("--trace-content", ...grants)
      assert.strictEqual(left.code, 6, left.err)
      assert.match(
        left.screen,
        /npx writ approve \S+ --script \S+ --workspace \S+ --grant 'execute:tool:\*' --deny 'send:mail:\*'/
      )
      const forgotten = yield* decide("approve")
      assert.deepStrictEqual([forgotten.code, forgotten.performed], [2, []])
      assert.include(forgotten.err, "repeat its --grant, --deny and --scope")
      assert.strictEqual((yield* decide("approve", ...grants)).code, 0)
    })
  )
})

describe("without somebody to ask", () => {
  it.effect("the answer is no, and standard error says once what can be done", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const twice = [call("send", { to: "a" }), call("send", { to: "b" }), "Not sent."]
      const args = ["--tools", "send", "--run-dir", join(cwd, "run"), "Do it."]
      const left = yield* runCli({ cwd, turns: twice, args })
      assert.deepStrictEqual([left.code, left.performed], [0, []], left.err)
      assert.strictEqual(left.err.split("--suspend --trace-content").length, 2)
      assert.include(left.err, "send (call-0-0) was not allowed")
      assert.include(left.err, "send (call-1-0) was not allowed")
    })
  )
})

const letter = [call("post_letter", { to: "bob", text: "Dear Bob" }), "It is sent."]
const scripted = (cwd: string) => writeFileSync(join(cwd, "script.yaml"), JSON.stringify({ turns: letter }))
const given = ["--script", "script.yaml"]

describe("in processes of their own", () => {
  it.live(
    "two approvals at once send one letter, and a third finds nothing to approve",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        scripted(cwd)
        const flags = ["--tools", "post_letter", "--suspend", "--trace-content", ...given, "Write to Bob."]
        const first = yield* writ(["run", ...flags], { cwd, program })
        assert.strictEqual(first.code, 6, first.err)
        const id = runsIn(cwd)[0]!.split("/").at(-1)!
        assert.include(first.out, `npx writ approve ${id} --script script.yaml`)
        const once = writ(["approve", id, ...given], { cwd, program })
        const both = yield* Effect.all([once, once], { concurrency: 2 })
        assert.include(
          both.map(({ code }) => code),
          0,
          both.map(({ err }) => err).join("\n")
        )
        assert.strictEqual(sent(cwd).length, 1)
        const third = yield* writ(["approve", id, ...given], { cwd, program })
        assert.deepStrictEqual([third.code, third.err.includes("does not wait")], [2, true], third.err)
        const near = yield* writ(["approve", `${id.slice(0, -1)}-`], { cwd, program })
        assert.deepStrictEqual([near.code, near.err.includes(`did you mean ${id}?`)], [2, true], near.err)
        assert.strictEqual(sent(cwd).length, 1)
      }),
    { timeout: 240_000 }
  )

  const hasScript = existsSync("/usr/bin/script")

  it.live.skipIf(!hasScript)(
    "Ctrl-C at the question cancels the run and leaves the terminal as it was",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        scripted(cwd)
        // The signal goes to the shell too, and not every shell outlives it.
        const command = `trap : INT; "${process.execPath}" "${program}" run --tools post_letter --script script.yaml Write; echo "code $?"; stty -a`
        const child = spawn("/usr/bin/script", ["-qfec", command, "/dev/null"], {
          cwd,
          env: { ...process.env, SHELL: "/bin/sh" }
        })
        let screen = ""
        let closed = false
        child.on("close", () => (closed = true))
        child.stdout.setEncoding("utf8").on("data", (text) => (screen += text))
        const said = (text: string) =>
          Effect.promise(async () => {
            while (!screen.includes(text) && !closed) await new Promise((next) => setTimeout(next, 5))
            assert.include(screen, text)
          })
        yield* said("Allow this call? [y]es, [n]o, [s]top the run: ")
        assert.isBelow(screen.indexOf("turn 1"), screen.indexOf("Allow this call?"), "what led there comes first")
        child.stdin.write("\u0003")
        yield* said("code 4")
        yield* said(" echoe")
        child.stdin.end()
        assert.match(screen, /cancelled \(awaiting-approval\)/)
        assert.match(screen, / icanon /)
        assert.match(screen, / echo /)
        assert.deepStrictEqual(sent(cwd), [])
        assert.strictEqual(newestTrace(cwd).at(-1)?.event_type, "run_cancelled")
      }),
    { timeout: 240_000 }
  )

  it.live(
    "a run whose approval was recorded goes on in another process",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        scripted(cwd)
        yield* writ(["run", "--tools", "post_letter", "--suspend", "--trace-content", "-q", ...given, "Write."], {
          cwd,
          program
        })
        const id = runsIn(cwd)[0]!.split("/").at(-1)!
        const kept = yield* Effect.promise(() => start(["approve", id, "--no-resume"], { cwd, program }).ended)
        assert.deepStrictEqual([kept.code, sent(cwd).length], [0, 0], kept.err)
        const left = yield* writ(["run", "--resume", id, ...given], { cwd, program })
        assert.deepStrictEqual([left.code, sent(cwd).length], [0, 1], left.err)
      }),
    { timeout: 240_000 }
  )
})
