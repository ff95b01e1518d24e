import { appendFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, invoke, start, until } from "../kit/cli.ts"
import { corrupt } from "../kit/corrupt.ts"
import { emberText } from "../kit/records.ts"
import { type GoodName, good } from "../kit/traces.ts"

const inspect = Effect.fnUntraced(function* (text: string, ...flags: ReadonlyArray<string>) {
  const path = join(yield* directory, "trace.jsonl")
  writeFileSync(path, text)
  return yield* invoke(["trace", "inspect", "--no-color", ...flags, path])
})

describe("writ trace inspect", () => {
  it.effect("shows what happened and when, what it came to, and what went wrong", () =>
    Effect.gen(function* () {
      const lines = (yield* inspect(yield* good["unknown tool"])).out.split("\n")
      assert.match(lines[0] ?? "", /^ +\d+\.\d{3} {2}run start +/)
      const rows = lines.map((line) => line.slice(11, 27).trim())
      assert.includeMembers(rows, ["run start", "turn 1 start", "turn 1 done", "not legal", "REJECTED", "final answer"])
      for (const field of [
        /^status +completed$/,
        /^counts +2 turns, 0 calls, 1 rejected, /,
        /^problems +1 call rejected$/,
        /^record +valid$/
      ]) {
        assert.isTrue(
          lines.some((line) => field.test(line)),
          String(field)
        )
      }
      assert.include((yield* inspect(yield* good["one tool"])).out, "problems  none\n")
    })
  )

  it.effect("names every kind of problem in words and in its document", () =>
    Effect.gen(function* () {
      const kinds: ReadonlyArray<readonly [GoodName, string, string]> = [
        ["failing tool", "1 call failed", "failed"],
        ["malformed", "1 turn malformed", "malformed"],
        ["engine failure", "1 turn rolled back", "rolled_back"]
      ]
      for (const [name, words, key] of kinds) {
        const text = yield* good[name]
        assert.match((yield* inspect(text)).out, new RegExp(`^problems +${words}`, "m"), name)
        assert.strictEqual(JSON.parse((yield* inspect(text, "--json")).out).problems[key], 1, name)
      }
    })
  )

  it.effect("says whether the record can be believed, and why not", () =>
    Effect.gen(function* () {
      const text = yield* good["one tool"]
      const changed = text.replace('"result":2', '"result":3').replace("It is 2.", "It is 3.")
      assert.notStrictEqual(changed, text)
      const { code, out } = yield* inspect(changed)
      assert.strictEqual(code, 0, "inspect shows; whether it is valid is the exit code of validate")
      assert.match(out, /^record +\d+ problems?: it cannot be believed$/m)
      assert.match(out, /^ +T05 prev is not the digest of the line before \(event \d+\)$/m)
      const { record } = JSON.parse((yield* inspect(changed, "--json")).out)
      assert.isFalse(record.valid)
      assert.include(
        record.violations.map(({ invariant }: { readonly invariant: string }) => invariant),
        "T05"
      )
      const cut = text.slice(0, -200)
      assert.match((yield* inspect(cut)).out, /^record +valid as far as it goes$/m)
      assert.match((yield* inspect(emberText)).out, /^record +of schema ember\.agent\.trace\.v1, which is not judged$/m)
    })
  )

  it.effect("is one document with --json", () =>
    Effect.gen(function* () {
      const text = corrupt(yield* good["two calls"], () => {})
      const document = JSON.parse((yield* inspect(text, "--json")).out)
      assert.deepInclude(document, { schema: "writ.trace.v1", run_ids: ["run-1"], status: "completed" })
      assert.deepInclude(document.counts, { turns: 2, tool_calls: 2, rejected: 0 })
      assert.deepStrictEqual(document.unreadable, { count: 0, lines: [] })
      assert.deepInclude(document.record, { valid: true, complete: true })
      assert.isAbove(document.timeline.length, 5)
      assert.containsAllKeys(document.timeline[0], ["seconds", "label", "detail"])
    })
  )
})

describe("writ trace inspect --follow", () => {
  it.live("shows a run while it runs and ends with it", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const path = join(cwd, "trace.jsonl")
      const lines = (yield* good["one tool"]).split("\n").filter((line) => line !== "")
      const half = lines.findIndex((line) => line.includes('"tool_execution_finished"'))
      writeFileSync(path, `${lines.slice(0, half).join("\n")}\n`)
      const running = start(["trace", "inspect", "--follow", "--no-color", path], { cwd })
      yield* until(running, () => running.said().includes("call "))
      assert.notInclude(running.said(), "status", "it is not over")
      appendFileSync(path, `${lines.slice(half).join("\n")}\n`)
      const { code, out } = yield* Effect.promise(() => running.ended)
      assert.strictEqual(code, 0)
      assert.match(out, /final answer +It is 2\./)
      assert.match(out, /status +completed/)
    })
  )
})
