/** Traces of the predecessor through the commands that read them. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, invoke } from "../kit/cli.ts"
import { foreign } from "../kit/page.ts"
import { emberRough, emberText } from "../kit/records.ts"

const files = Effect.gen(function* () {
  const root = yield* directory
  const [smooth, rough] = [join(root, "smooth.jsonl"), join(root, "rough.jsonl")]
  writeFileSync(smooth, emberText)
  writeFileSync(rough, emberRough)
  return { root, smooth, rough }
})

describe("traces of schema ember.agent.trace.v1", () => {
  it.effect("are inspected: what was asked, done and refused, why it stopped, and what was not recorded", () =>
    Effect.gen(function* () {
      const { rough, smooth } = yield* files
      const { out } = yield* invoke(["trace", "inspect", "--no-color", smooth])
      assert.match(out, /user +What is six times seven\?$/m)
      assert.match(out, /call +calculate · \{"expression":"6\*7"\}$/m)
      assert.match(out, /final answer +The answer is 42\.$/m)
      const inspected = yield* invoke(["trace", "inspect", "--no-color", rough])
      assert.deepStrictEqual([inspected.code, inspected.err], [0, ""])
      for (const row of [
        /user +\(31 bytes, not recorded\)$/m,
        /MALFORMED +the call is not closed$/m,
        /REJECTED +search · \[unknown_tool\] · there is no such tool$/m,
        /REJECTED +send_mail · \[denied_by_policy\] · external effects are denied$/m,
        /artifact +artifact-0 · 3 bytes · [0-9a-f]{12}$/m,
        /failed +fail · execution_failed · 1\.3 ms$/m,
        /UNCOMMITTED +fail · effect unknown · limit$/m,
        /status +limit: max_steps$/m,
        /counts +3 turns, 2 calls, 3 rejected, 1 artifact, 72 tokens$/m,
        /problems +1 call failed, 2 calls rejected, 1 turn malformed, 1 answer never read by the model$/m
      ]) {
        assert.match(inspected.out, row)
      }
      const { status, timeline } = JSON.parse((yield* invoke(["trace", "inspect", "--json", rough])).out)
      assert.deepStrictEqual([status, timeline.length], ["limit", 23])
    })
  )

  it.effect("are compared with each other, also where content was left out", () =>
    Effect.gen(function* () {
      const { root, rough, smooth } = yield* files
      const same = yield* invoke(["trace", "diff", "--json", "--fail-on-diff", rough, rough])
      assert.deepStrictEqual([same.code, JSON.parse(same.out).verdict], [0, "same"])
      const other = join(root, "other.jsonl")
      writeFileSync(
        other,
        emberRough.replace('"to":"x"', '"to":"y"').replace('max_steps","status', 'max_tool_calls","status')
      )
      const found = yield* invoke(["trace", "diff", "--no-color", "--fail-on-diff", rough, other])
      assert.strictEqual(found.code, 3)
      assert.match(found.out, /^ {4}1\.1\.to: x \| y$/m)
      assert.match(found.out, /^ {4}limit_hit: max_steps \| max_tool_calls$/m)
      assert.match(
        found.out,
        /they part at event 12 of A, event 12 of B: send_mail was called with other arguments in turn 2/
      )
      const far = JSON.parse((yield* invoke(["trace", "diff", "--json", rough, smooth])).out)
      for (const aspect of ["calls", "artifacts", "answers", "stop"])
        assert.strictEqual(far.aspects[aspect], "different")
    })
  )

  it.effect("are reported as a page that holds everything and runs nothing of it", () =>
    Effect.gen(function* () {
      const { root, rough, smooth } = yield* files
      const pageOf = Effect.fnUntraced(function* (trace: string) {
        const output = join(root, "page.html")
        const { code } = yield* invoke(["trace", "report", trace, "-o", output])
        assert.strictEqual(code, 0)
        const page = readFileSync(output, "utf8")
        assert.deepStrictEqual(foreign(page), [])
        return page
      })
      const page = yield* pageOf(smooth)
      for (const text of ["What is six times seven?", "calculate", "6*7", "The answer is 42.", "ember-run-1"])
        assert.include(page, text)
      const roughly = yield* pageOf(rough)
      for (const text of [
        "the call is not closed",
        "there is no such tool",
        "external effects are denied",
        "max_steps"
      ])
        assert.include(roughly, text)
      assert.match(roughly, /class="bar tool bad"/)
    })
  )
})
