/** e2e/insurance-claim: its ci.sh is green for anybody anywhere, and one proposed approval turns it red (R-AILLY-32). */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { callsOf, turnEvents } from "../../src/effects/conversation/Conversation.ts"
import * as ConversationText from "../../src/effects/conversation/ConversationText.ts"
import { checkout, ci, newestRun, offline, reasonsOf, rewrite, totalsOf, visible } from "../kit/e2e.ts"

/** Generous: it starts a dozen processes, and a machine may be slow. */
const minutes = { timeout: 20 * 60_000 }

const opened = Effect.map(checkout, (directory) => {
  const project = join(directory, "e2e", "insurance-claim")
  return { directory, project, script: join(project, "ci.sh"), elsewhere: join(directory, "elsewhere") }
})

const allPassed = (passed: number) => ({
  conversations_matched: 2,
  assertions: { passed, failed: 0, deferred: 0, malformed: 0, errored: 0 }
})

const conversationIn = (project: string, name: string) =>
  Result.getOrThrow(ConversationText.parse(readFileSync(join(newestRun(project), `${name}.yaml`), "utf8")))

/** Names and texts of everything that was answered. */
const answersIn = (project: string, name: string): ReadonlyArray<string> => {
  const { session } = conversationIn(project, name)
  return session.flatMap(({ content, role }) =>
    role === "tool" && Array.isArray(content)
      ? content.map((block) => `${block.is_error === true ? "error: " : ""}${block.content}`)
      : []
  )
}

const approval = '<tool_call>\n{"name": "auto_approve", "arguments": {"claim": "C-302", "amount": 4200}}\n</tool_call>'

describe("e2e/insurance-claim/ci.sh", minutes, () => {
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
          for (const id of ["filled", "scripted"]) assert.deepStrictEqual(totalsOf(project, id), allPassed(8))
          assert.deepStrictEqual(totalsOf(project, "scripted-effects"), allPassed(10))
          assert.deepStrictEqual(visible(project), before)
          assert.deepStrictEqual(visible(elsewhere), [])
        }
        const calls = (name: string) =>
          conversationIn(project, name).session.flatMap((message) => callsOf(message).map((call) => call.name))
        assert.deepStrictEqual(calls("missing-fields"), ["lookup_policy"])
        assert.deepStrictEqual(calls("over-limit"), ["lookup_policy", "lookup_claim_history"])
        assert.lengthOf(answersIn(project, "missing-fields"), 1)
        // The registered tool has read its file: no script says this sum.
        assert.strictEqual(JSON.parse(answersIn(project, "over-limit")[1]!).paid, 2700)
      })
  )

  if (offline === undefined) {
    it.skip("is green with no network at all: this system does not let us take it away (unshare -rn)", () => {})
  }

  it.live("is red when the script has an approval more, which is refused and pays nothing", () =>
    Effect.gen(function* () {
      const { elsewhere, project, script } = yield* opened
      rewrite(join(project, "fixtures", "scripted", "over-limit.script.yaml"), ([script]) => {
        script!.engine!.splice(2, 0, { raw: approval })
      })
      const { code, said } = yield* ci(script, elsewhere)
      assert.strictEqual(code, 1, said)
      assert.match(said, /^GATE SHUT: scripted: conversations_matched 2, passed 7, failed 1/m)
      const [reason, ...others] = reasonsOf(project, "scripted")
      assert.deepStrictEqual(others, [])
      assert.match(reason!, /^over-limit: must_not_call_tool: fail: /)
      // The gate speaks of what was proposed. That it was not done is the work of the run.
      assert.match(answersIn(project, "over-limit")[2]!, /^error: /)
      const settled = conversationIn(project, "over-limit").session.flatMap(({ trace }) =>
        (trace?.events ?? []).filter(
          ({ attributes, name }) => name === turnEvents.call && attributes["tool"] === "auto_approve"
        )
      )
      assert.deepStrictEqual(
        settled.map(({ attributes }) => [attributes["executed"], attributes["effect"]]),
        [[false, "none"]]
      )
      assert.isFalse(existsSync(join(project, "approved.jsonl")))
    })
  )

  it.live("is red when a conversation that was filled by hand has an approval more", () =>
    Effect.gen(function* () {
      const { elsewhere, project, script } = yield* opened
      rewrite(join(project, "fixtures", "filled", "missing-fields.yaml"), (documents) => {
        const id = "call_2_0"
        const input = { claim: "C-301", amount: 100 }
        documents.splice(
          -1,
          0,
          { role: "assistant", content: [{ type: "tool_use", id, name: "auto_approve", input }] },
          { role: "tool", content: [{ type: "tool_result", tool_use_id: id, content: "approved" }] }
        )
      })
      const { code, said } = yield* ci(script, elsewhere)
      assert.strictEqual(code, 1, said)
      assert.match(said, /^GATE SHUT: filled: conversations_matched 2, passed 7, failed 1/m)
      assert.match(reasonsOf(project, "filled").join("\n"), /^missing-fields: must_not_call_tool: fail: /)
    })
  )

  it.live("is red when a call is without its answer", () =>
    Effect.gen(function* () {
      const { elsewhere, project, script } = yield* opened
      rewrite(join(project, "fixtures", "filled", "over-limit.yaml"), (documents) => {
        const last = documents.findLastIndex(({ role }) => role === "tool")
        documents.splice(last, 1)
      })
      const { code, said } = yield* ci(script, elsewhere)
      // It is no complete conversation, so the run would go on with it, and has nothing here to do so with.
      assert.strictEqual(code, 2, said)
      assert.include(said, "there is no tool lookup_policy to run its calls")
    })
  )
})
