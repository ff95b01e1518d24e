/** e2e/research: its ci.sh is green for anybody anywhere, and red when what it is there for does not hold (R-AILLY-31). */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { checkout, ci, offline, reasonsOf, rewrite, totalsOf, visible } from "../kit/e2e.ts"

/** Generous: it starts a dozen processes, and a machine may be slow. */
const minutes = { timeout: 20 * 60_000 }

const opened = Effect.map(checkout, (directory) => {
  const project = join(directory, "e2e", "research")
  return { directory, project, script: join(project, "ci.sh"), elsewhere: join(directory, "elsewhere") }
})

const allPassed = (passed: number) => ({
  conversations_matched: 1,
  assertions: { passed, failed: 0, deferred: 0, malformed: 0, errored: 0 }
})

describe("e2e/research/ci.sh", minutes, () => {
  it.live(
    "is green twice in a row, from any directory, and leaves nothing outside of what version control ignores",
    () =>
      Effect.gen(function* () {
        const { elsewhere, project, script } = yield* opened
        const before = visible(project)
        for (const [cwd, prefix] of [[elsewhere], ["/", offline]] as const) {
          const { code, said } = yield* ci(script, cwd, prefix)
          assert.strictEqual(code, 0, said)
          assert.match(said, /^SKIP live: no LIVE_MODEL/m)
          assert.match(said, /^passed: research$/m)
          for (const id of ["filled", "scripted"]) assert.deepStrictEqual(totalsOf(project, id), allPassed(5))
          assert.deepStrictEqual(visible(project), before)
          assert.deepStrictEqual(visible(elsewhere), [])
        }
      })
  )

  if (offline === undefined) {
    it.skip("is green with no network at all: this system does not let us take it away (unshare -rn)", () => {})
  }

  it.live("is red when the script reads before it searches", () =>
    Effect.gen(function* () {
      const { elsewhere, project, script } = yield* opened
      rewrite(join(project, "fixtures", "scripted", "tides.script.yaml"), ([script]) => {
        const [first, second] = script!.engine!
        script!.engine!.splice(0, 2, second, first)
      })
      const { code, said } = yield* ci(script, elsewhere)
      assert.strictEqual(code, 1, said)
      assert.match(said, /^GATE SHUT: scripted: conversations_matched 1, passed 4, failed 1/m)
      assert.notMatch(said, /^passed: /m)
      const [reason, ...others] = reasonsOf(project, "scripted")
      assert.deepStrictEqual(others, [])
      assert.match(reason!, /^tides: tool_call_order: fail: /)
    })
  )

  it.live("is red when the conversation that was filled by hand reads before it searches", () =>
    Effect.gen(function* () {
      const { elsewhere, project, script } = yield* opened
      rewrite(join(project, "fixtures", "filled", "tides.yaml"), (documents) => {
        const [first, second] = documents.filter(({ content }) => Array.isArray(content) && content[0]!["name"])
        const [one, two] = [first!, second!].map(({ content }) => (content as ReadonlyArray<object>)[0]!)
        first!.content = [{ ...two, id: "call_1_0" }]
        second!.content = [{ ...one, id: "call_2_0" }]
      })
      const { code, said } = yield* ci(script, elsewhere)
      assert.strictEqual(code, 1, said)
      assert.match(said, /^GATE SHUT: filled: conversations_matched 1, passed 4, failed 1/m)
      assert.match(reasonsOf(project, "filled").join("\n"), /^tides: tool_call_order: fail: /)
    })
  )

  it.live("is red when hardly anything is asserted any more, although all of that holds", () =>
    Effect.gen(function* () {
      const { elsewhere, project, script } = yield* opened
      writeFileSync(
        join(project, "evals", "research.yaml"),
        "name: research\ncases:\n  - assertions:\n      - { type: calls_answered }\n"
      )
      const { code, said } = yield* ci(script, elsewhere)
      assert.strictEqual(code, 1, said)
      assert.match(said, /^GATE SHUT: filled: conversations_matched 1, passed 1, failed 0/m)
    })
  )

  it.live("is red when a tool is not assembled", () =>
    Effect.gen(function* () {
      const { elsewhere, project, script } = yield* opened
      const assembly = join(project, "assemblies", "research.yaml")
      writeFileSync(assembly, readFileSync(assembly, "utf8").replace("tools/*.json", "tools/web_search.json"))
      const { code, said } = yield* ci(script, elsewhere)
      assert.strictEqual(code, 1, said)
      assert.include(said, "there is no line '  - name: web_fetch'")
    })
  )
})
