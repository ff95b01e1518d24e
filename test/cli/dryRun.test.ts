import { existsSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { DryRun, wouldLines } from "../../src/cli/DryRun.ts"
import { cautious } from "../../src/effects/Profile.ts"
import { directory, invoke } from "../kit/cli.ts"
import { recordOf, runCli } from "../kit/cliRun.ts"
import { registry } from "../kit/outbox.ts"
import { call, calls } from "../kit/script.ts"

const tools = ["--tools", "add,save,send"]
const acting = [
  calls(["add", { a: 2, b: 3 }], ["save", { name: "a.txt", content: "x" }], ["send", { to: "bob" }]),
  "As far as I can tell."
]

describe("writ run --dry-run", () => {
  it.effect("executes reads only, asks nobody, and leaves neither ledger nor artifacts", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const run = join(cwd, "run")
      const left = yield* runCli({ cwd, turns: acting, args: [...tools, "--dry-run", "--run-dir", run, "Do it."] })
      assert.deepStrictEqual([left.code, left.performed], [0, ['add:{"a":2,"b":3}']], left.err)
      assert.strictEqual(left.err, "", "nobody is asked, so nobody is missed")
      assert.isFalse(existsSync(join(cwd, "ledger.sqlite")))
      assert.isFalse(existsSync(join(run, "artifacts")))
      assert.match(left.screen, /dry run: what would have been done\n +TOOL +COST +HAZARD +WOULD\n +save +0 +0 /)
      assert.include(left.screen, "– save was not executed: this is a dry run")
      assert.include(left.screen, "(asks first)")
      assert.include(left.screen, "2 effects, cost 0, hazard 0; nothing was done")
      assert.notInclude(left.screen, "--resume")
      assert.strictEqual((yield* invoke(["trace", "validate", run])).code, 0)
    })
  )

  it.effect("leaves a ledger that is there as it was", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const real = [...tools, "--approve", "all", "--run-dir", join(cwd, "real"), "Do it."]
      yield* runCli({ cwd, turns: acting, args: real })
      const ledger = () => invoke(["ledger", "list", "--ledger", join(cwd, "ledger.sqlite"), "--json"])
      const before = yield* ledger()
      assert.strictEqual(JSON.parse(before.out).effects.length, 2)
      const size = statSync(join(cwd, "ledger.sqlite")).size
      const dry = [...tools, "--dry-run", "--run-dir", join(cwd, "dry"), "Do it."]
      assert.strictEqual((yield* runCli({ cwd, turns: acting, args: dry })).code, 0)
      assert.deepStrictEqual((yield* ledger()).out, before.out)
      assert.strictEqual(statSync(join(cwd, "ledger.sqlite")).size, size)
    })
  )

  it.effect("ends as the run ended", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const args = [...tools, "--dry-run", "--run-dir", join(cwd, "run"), "--max-turns", "1", "--json", "Do it."]
      const left = yield* runCli({ cwd, turns: acting, args })
      const document = JSON.parse(left.out)
      assert.deepStrictEqual([left.code, document.stop.kind, document.would.length], [5, "model_turns", 2])
      assert.deepStrictEqual(document.would[1].arguments, { to: "bob" })
      assert.isTrue(document.would[1].asks)
    })
  )

  it.effect("is on the record, and cannot be continued; nor can a run become one", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const limited = ["--max-turns", "1", "--trace-content", ...tools]
      const run = join(cwd, "dry")
      yield* runCli({ cwd, turns: acting, args: [...limited, "--dry-run", "--run-dir", run, "Do it."] })
      const gates = recordOf(run).trace[1]?.data["gates"] as { readonly dry_run: boolean }
      assert.isTrue(gates.dry_run)
      const dry = yield* runCli({ cwd, turns: acting, args: ["--resume", run, "--no-dry-run"] })
      assert.deepStrictEqual([dry.code, dry.performed], [2, []])
      assert.include(dry.err, "a dry run cannot be continued")
      const real = join(cwd, "real")
      yield* runCli({ cwd, turns: [call("add", { a: 1, b: 1 })], args: [...limited, "--run-dir", real, "Do it."] })
      const turned = yield* runCli({ cwd, turns: acting, args: ["--resume", real, "--dry-run"] })
      assert.deepStrictEqual([turned.code, turned.err.includes("--dry-run")], [2, true])
      assert.isTrue(readFileSync(join(real, "trace.jsonl"), "utf8").includes('"dry_run":false'))
    })
  )
})

describe("what a dry run would have done", () => {
  const held = (tool: string, args: Readonly<Record<string, string>>) =>
    Effect.gen(function* () {
      const dry = new DryRun()
      const about = { callId: "call-0-0", tool }
      dry.event({ _tag: "CallProposed", ...about, arguments: args })
      dry.event({ _tag: "CallRejected", ...about, answer: { ok: false, kind: "dry_run", errors: [] } })
      return yield* dry.would(yield* registry, cautious, { fixtures: {} })
    })

  it.effect("is priced, with what it touches and what would change", () =>
    Effect.gen(function* () {
      const [letter] = yield* held("post_letter", { to: "bob", text: "Dear Bob" })
      assert.deepStrictEqual([letter?.cost, letter?.hazard, letter?.asks], [2, 0.5, true])
      assert.deepStrictEqual(letter?.touches, ["send letter:bob"])
      assert.strictEqual(letter?.preview, "a letter to bob\n+ Dear Bob")
      const [file] = yield* held("write_artifact", { name: "a.md", content: "# A\n" })
      assert.deepStrictEqual([file?.touches, file?.asks], [["write artifact:a.md"], false])
      assert.strictEqual(file?.preview, "new file a.md, 4 bytes\n+ # A")
    })
  )

  it.effect("fits a terminal, and cannot write over it", () =>
    Effect.gen(function* () {
      const name = `a\u001b[2J${"x".repeat(200)}`
      const would = yield* held("post_letter", { to: name, text: "line\n".repeat(50) })
      const plain = (text: string) => text
      const paint = { bold: plain, dim: plain, red: plain, green: plain, cyan: plain, yellow: plain }
      const screen = {
        paint,
        columns: 80,
        write: () => {},
        line: () => {},
        progress: () => {},
        terminal: false,
        directions: false,
        hold: () => {},
        now: () => 0
      }
      const lines = wouldLines(would, screen)
      for (const line of lines) {
        assert.isAtMost([...line].length, 80)
        assert.notInclude(line, "\u001b")
      }
      assert.isTrue(lines.some((line) => line.includes("(more with --json)")))
    })
  )

  it.effect("counts only calls that were held back because the run is dry", () =>
    Effect.gen(function* () {
      const dry = new DryRun()
      dry.event({ _tag: "CallRejected", callId: "c", tool: "send", answer: { ok: false, kind: "refused", errors: [] } })
      assert.deepStrictEqual(yield* dry.would(yield* registry, cautious, { fixtures: {} }), [])
    })
  )
})
