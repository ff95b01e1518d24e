import { existsSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { EffectLedger } from "../../src/actors/EffectLedger.ts"
import { directory, invoke } from "../kit/cli.ts"
import { failed, intent, succeeded, unknown } from "../kit/ledger.ts"
import { open } from "../kit/ledgerAt.ts"

const keys = [0, 1, 2, 3].map((n) => intent(n).key)

/** A file with one effect of each kind that a stopped process leaves: happened, none, unknown, and one it was at. */
const filled = Effect.gen(function* () {
  const path = join(yield* directory, "ledger.sqlite")
  yield* open(path, (ledger) =>
    Effect.gen(function* () {
      for (const n of [0, 1, 2]) yield* ledger.begin(intent(n))
      yield* ledger.begin(intent(3, { runId: "run-2", mode: "none", tool: "send\u001b[31m" }))
      yield* ledger.settle(keys[0]!, succeeded("INV-9\u001b[2J"))
      yield* ledger.settle(keys[1]!, failed)
      yield* ledger.settle(keys[2]!, unknown)
    })
  )
  return path
})

const ledger = (path: string, ...args: ReadonlyArray<string>) =>
  invoke(["ledger", ...args, "--ledger", path], { USER: "ada" })

const record = (path: string, key: string) => open(path, (one: EffectLedger["Service"]) => one.get(key))

describe("writ ledger list", () => {
  it.live("shows every effect on a line of its own, oldest first, in columns, and without escapes", () =>
    Effect.gen(function* () {
      const { code, out } = yield* ledger(yield* filled, "list")
      assert.strictEqual(code, 0)
      const [head, ...rows] = out.split("\n")
      assert.match(head!, /^KEY {11}TOOL +RUN +STANDING +MODE +WHEN$/)
      const expected = [
        /^[0-9a-f]{12} {2}pay +run-1 {2}happened {3}external {2}\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ$/,
        /no effect {2}external/,
        /unknown +external/,
        /send\\u001b\[31m {2}run-2 {2}unknown +none/
      ]
      const ordered = [...rows.slice(0, 4)].sort(
        (a, b) =>
          keys.findIndex((k) => a.startsWith(k.slice(0, 12))) - keys.findIndex((k) => b.startsWith(k.slice(0, 12)))
      )
      for (const [at, pattern] of expected.entries()) assert.match(ordered[at]!, pattern)
      assert.strictEqual(rows.at(-1), "4 effects: 1 happened, 1 no effect, 2 unknown")
      assert.notInclude(out, "\u001b")
      for (const column of ["STANDING", "MODE"]) {
        const at = head!.indexOf(column)
        for (const row of rows.slice(0, 4)) assert.strictEqual(row[at - 1], " ")
      }
    })
  )

  it.live("shows those of a run or those that nobody knows, and one document with --json", () =>
    Effect.gen(function* () {
      const path = yield* filled
      const listed = (...args: ReadonlyArray<string>) =>
        Effect.map(ledger(path, "list", "--json", ...args), ({ out }) => {
          const document = JSON.parse(out) as {
            ledger: string
            effects: ReadonlyArray<Record<string, unknown>>
          }
          assert.strictEqual(document.ledger, path)
          return document.effects
        })
      assert.lengthOf(yield* listed(), 4)
      assert.deepStrictEqual((yield* listed("--unknown")).map(({ key }) => key).sort(), [keys[2]!, keys[3]!].sort())
      assert.deepInclude((yield* listed("--run", "run-2-r3"))[0], {
        key: keys[3],
        tool: "send\u001b[31m",
        run_id: "run-2",
        call_id: "call-3",
        mode: "none",
        standing: "unknown",
        outcome: null,
        attempts: 1
      })
      assert.deepStrictEqual(yield* listed("--run", "run-2", "--unknown"), yield* listed("--run", "run-2"))
      const other = yield* ledger(path, "list", "--run", "run-3")
      assert.strictEqual(other.code, 2)
      assert.match(other.err, /no effects of a run run-3; did you mean run-[12]\?/)
    })
  )

  it.live("says so where there is nothing", () =>
    Effect.gen(function* () {
      const path = join(yield* directory, "ledger.sqlite")
      yield* open(path, (one) => one.list())
      assert.deepInclude(yield* ledger(path, "list"), { code: 0, out: "the ledger holds no effects" })
      assert.deepInclude(yield* ledger(path, "list", "--unknown"), { code: 0, out: "no effect is unknown" })
      assert.deepStrictEqual(JSON.parse((yield* ledger(path, "list", "--json")).out).effects, [])
      const { code, err } = yield* ledger(path, "show", "a1")
      assert.deepStrictEqual([code, err.includes("is empty")], [2, true])
    })
  )
})

describe("a ledger that is not there", () => {
  it.live("is a usage error, is not made, and neither is a file made into one", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const empty = join(cwd, "empty.sqlite")
      writeFileSync(empty, "")
      for (const command of [["list"], ["show", "a"], ["resolve", "a", "--happened", "--reason", "seen"]]) {
        const absent = yield* ledger(join(cwd, "sub", "ledger.sqlite"), ...command)
        assert.strictEqual(absent.code, 2)
        assert.include(absent.err, "there is no such file; name the one that runs were made with")
        const nothing = yield* ledger(empty, ...command)
        assert.strictEqual(nothing.code, 1)
        assert.include(nothing.err, "it is not a ledger")
      }
      assert.deepStrictEqual(readdirSync(cwd), ["empty.sqlite"])
      assert.strictEqual((yield* ledger("memory", "list")).code, 2)
      if (existsSync("/proc/self")) assert.strictEqual((yield* ledger("/proc/x/y", "list")).code, 2)
    })
  )

  it.live("is told in a document with --json", () =>
    Effect.gen(function* () {
      const { out } = yield* ledger(join(yield* directory, "no.sqlite"), "list", "--json")
      assert.strictEqual(JSON.parse(out).error.exit_code, 2)
    })
  )
})

describe("writ ledger show", () => {
  it.live("shows what is known, by the beginning of the key", () =>
    Effect.gen(function* () {
      const path = yield* filled
      const { code, out } = yield* ledger(path, "show", keys[0]!.slice(0, 10).toUpperCase())
      assert.strictEqual(code, 0)
      assert.match(out, /^pay: happened$/m)
      assert.include(out, keys[0]!)
      assert.match(out, /^answer +\{"ok":true,"result":"INV-9\\\\u001b\[2J"\}$|^answer +.*INV-9\\u001b\[2J/m)
      assert.notInclude(out, "\u001b")
      const open = yield* ledger(path, "show", keys[3]!)
      assert.match(open.out, /never said what it came to/)
      assert.include(open.out, `writ ledger resolve ${keys[3]!.slice(0, 12)} --happened | --did-not-happen`)
      const document = JSON.parse((yield* ledger(path, "show", keys[2]!, "--json")).out)
      assert.deepInclude(document, {
        key: keys[2],
        standing: "unknown",
        outcome: null,
        answer: null,
        late: null,
        resolved: null
      })
      assert.deepInclude(document.attempts[0].settled, { state: "unknown", effect: "unknown", kind: "timed_out" })
    })
  )

  it.live("asks for more where it could be several, and suggests where it is none", () =>
    Effect.gen(function* () {
      const path = join(yield* directory, "ledger.sqlite")
      const many = Array.from({ length: 40 }, (_, n) => intent(n))
      yield* open(path, (one) => Effect.forEach(many, one.begin, { concurrency: "unbounded", discard: true }))
      // Among forty hex keys some share their first digit.
      const first = many.map(({ key }) => key[0]!).find((digit, at, all) => all.indexOf(digit) < at)!
      const several = yield* ledger(path, "show", first)
      assert.strictEqual(several.code, 2)
      assert.match(several.err, /could be any of \d+ effects: [0-9a-f]{12}, .*give more of the key/)
      const slip = `${keys[0]!.slice(0, 6)}g${keys[0]!.slice(7, 12)}`
      const none = yield* ledger(path, "show", slip)
      assert.deepStrictEqual([none.code, none.err.includes(`did you mean ${keys[0]!.slice(0, 12)}?`)], [2, true])
      assert.include((yield* ledger(path, "show", "run-1")).err, "writ ledger list --run run-1")
      assert.include((yield* ledger(path, "show", "")).err, "has no effect")
    })
  )
})

describe("writ ledger resolve", () => {
  it.live("settles an unknown effect, and keeps who said so, when, and how they know", () =>
    Effect.gen(function* () {
      const path = yield* filled
      const reason = "invoice INV-9 is in the portal"
      const { code, out } = yield* ledger(path, "resolve", keys[2]!.slice(0, 8), "--happened", "--reason", reason)
      assert.deepStrictEqual([code, out], [0, `pay ${keys[2]!.slice(0, 12)}: happened, says ada`])
      const { entry, standing } = (yield* record(path, keys[2]!))!
      assert.strictEqual(standing, "settled")
      assert.deepInclude(entry.resolved, { by: "ada", reason })
      assert.isAbove(entry.resolved!.at, 0)
      assert.deepInclude(entry.resolved!.outcome, { ok: true, effect: "present", state: "succeeded" })
      const shown = yield* ledger(path, "show", keys[2]!)
      assert.match(shown.out, /^resolved +\S+ \S+ {2}by ada: invoice INV-9 is in the portal$/m)
      const document = JSON.parse((yield* ledger(path, "show", keys[2]!, "--json")).out)
      assert.deepInclude(document.resolved, { by: "ada", reason, state: "succeeded" })
    })
  )

  it.live("tells the model what the person found: a result, that nothing happened, or that it failed", () =>
    Effect.gen(function* () {
      const answers = {
        "--happened --result": [{ ok: true, result: { invoice: "INV-9" } }, "present", undefined],
        "--did-not-happen": [{ ok: false, kind: "not_executed" }, "none", "not_executed"],
        "--failed": [{ ok: false, kind: "execution_failed" }, "none", "execution_failed"]
      } as const
      for (const [flags, [answer, effect, kind]] of Object.entries(answers)) {
        const path = yield* filled
        const words = flags.split(" ").flatMap((flag) => (flag === "--result" ? [flag, '{"invoice":"INV-9"}'] : [flag]))
        const args = ["resolve", keys[3]!, ...words, "--reason", "seen", "--by", "grace", "--json"]
        const { code, out } = yield* ledger(path, ...args)
        assert.strictEqual(code, 0)
        const document = JSON.parse(out)
        assert.deepInclude(JSON.parse(document.answer), answer)
        assert.deepInclude(document.resolved, { by: "grace", effect, kind: kind ?? null })
        assert.strictEqual(document.standing, "settled")
      }
    })
  )

  it.live("refuses what is settled or running, with the reason, and changes nothing", () =>
    Effect.gen(function* () {
      const path = yield* filled
      const before = yield* record(path, keys[0]!)
      const settled = yield* ledger(path, "resolve", keys[0]!, "--did-not-happen", "--reason", "x")
      assert.strictEqual(settled.code, 2)
      assert.include(settled.err, "it is settled, there is nothing to resolve")
      assert.deepStrictEqual(yield* record(path, keys[0]!), before)
      yield* open(path, (one) =>
        Effect.gen(function* () {
          yield* one.begin(intent(7))
          const running = yield* ledger(path, "resolve", intent(7).key, "--happened", "--reason", "x")
          assert.strictEqual(running.code, 2)
          assert.include(running.err, "its owner is still at work")
        })
      )
    })
  )

  it.live("wants one verdict and a reason before it opens anything", () =>
    Effect.gen(function* () {
      const path = join(yield* directory, "no.sqlite")
      const cases = [
        [["--reason", "x"], "one of --happened, --did-not-happen, --failed"],
        [["--happened", "--failed", "--reason", "x"], "one of --happened"],
        [["--happened"], "--reason TEXT"],
        [["--happened", "--reason", "  "], "--reason TEXT"],
        [["--failed", "--result", "1", "--reason", "x"], "--result goes with --happened"],
        [["--happened", "--result", "{", "--reason", "x"], "--result: it is not JSON"],
        [["--happened", "--reason", "x", "--by", " "], "--by: expected a name"]
      ] as const
      for (const [args, words] of cases) {
        const { code, err } = yield* ledger(path, "resolve", keys[2]!, ...args)
        assert.deepStrictEqual([code, err.includes(words)], [2, true], err)
      }
    })
  )
})
