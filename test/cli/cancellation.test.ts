import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, invoke } from "../kit/cli.ts"
import { entriesOf, recordOf, runCli, type Stopping } from "../kit/cliRun.ts"
import { call, calls } from "../kit/script.ts"

interface Case {
  readonly at: string
  readonly turns: ReadonlyArray<unknown>
  readonly stopping: Stopping
  /** Exit code of the run when it is resumed. */
  readonly resumed: number
  /** Answers that the model has not seen. */
  readonly owed: number
}

const save = (name: string) => ["save", { name, content: "x" }] as const

/** Every cancellation point, and a way to be there. */
const cases: ReadonlyArray<Case> = [
  { at: "preparing", turns: ["Hello"], stopping: { place: "event:provenance" }, resumed: 0, owed: 0 },
  {
    at: "prefill",
    turns: [{ text: "Hello", prefillMillis: 1000 }],
    stopping: { place: "event:model_call_started", thenMillis: 500 },
    resumed: 0,
    owed: 0
  },
  {
    at: "generation",
    turns: [{ text: ["He", "llo ", "you"], millisPerToken: 100 }],
    stopping: { place: "event:model_call_started", thenMillis: 250 },
    resumed: 0,
    owed: 0
  },
  {
    at: "between-calls",
    turns: [calls(save("a.txt"), save("b.txt")), "Saved."],
    stopping: { place: "ledger:begin", visit: 2 },
    // The second call had its permit and was stopped before it began: it is performed when the run goes on.
    resumed: 0,
    owed: 2
  },
  {
    at: "awaiting-approval",
    turns: [call("send", { to: "bob" }), "Refused."],
    stopping: { place: "event:approval_requested" },
    resumed: 0,
    owed: 1
  },
  {
    at: "tool",
    turns: [calls(["wait", { millis: 60_000 }], ["add", { a: 1, b: 1 }]), "Waited."],
    stopping: { place: "event:tool_execution_started", thenMillis: 100 },
    resumed: 0,
    owed: 2
  },
  {
    at: "after-tool",
    turns: [calls(save("a.txt"), ["add", { a: 1, b: 1 }]), "Saved."],
    stopping: { place: "ledger:settle" },
    resumed: 0,
    owed: 2
  },
  {
    at: "commit",
    turns: [call("long", { length: 4000 }), "Long."],
    stopping: { place: "artifact:put" },
    resumed: 0,
    owed: 1
  }
]

const args = ["--tools", "add,save,send,wait,long", "--max-result-bytes", "1000"]

const cancelled = Effect.fnUntraced(function* ({ stopping, turns }: Case, ...more: ReadonlyArray<string>) {
  const cwd = yield* directory
  const run = join(cwd, "run")
  const left = yield* runCli({ cwd, turns, stopping, args: [...args, "--run-dir", run, ...more, "Do it."] })
  return { cwd, run, left }
})

describe("a run that is cancelled", () => {
  for (const one of cases) {
    it.effect(`in ${one.at} says the same on screen, in its exit code, its trace and its transcript`, () =>
      Effect.gen(function* () {
        const { left, run } = yield* cancelled(one, "--trace-content")
        assert.strictEqual(left.code, 4, left.err + left.screen)
        assert.include(left.screen, `\ncancelled (${one.at})\nit took `)
        assert.include(left.screen, `npx writ run --resume ${run} --script `)
        const { trace, transcript } = recordOf(run)
        assert.strictEqual(trace.at(-1)?.event_type, "run_cancelled")
        assert.strictEqual(trace.at(-1)?.data["at"], one.at)
        assert.deepStrictEqual([transcript.run, transcript.status], [trace[0]?.run_id, "cancelled"])
        const expected = entriesOf(trace)
        const found = transcript.messages.map((message, at) =>
          Object.fromEntries(Object.keys(expected[at] ?? message).map((key) => [key, message[key]]))
        )
        assert.deepStrictEqual(found, expected)
        const owed = transcript.messages.filter(({ state }) => state === "uncommitted")
        assert.strictEqual(owed.length, one.owed)
        const verdict = yield* invoke(["trace", "validate", run])
        assert.strictEqual(verdict.code, 0, verdict.out)
      })
    )

    it.effect(
      `in ${one.at} says so as a document and in a word, and not how to continue where there is no content`,
      () =>
        Effect.gen(function* () {
          const json = yield* cancelled(one, "--json")
          const document = JSON.parse(json.left.out)
          assert.strictEqual(json.left.code, 4)
          assert.deepStrictEqual(
            [document.exit_code, document.stop, document.next, document.transcript],
            [4, { status: "cancelled", at: one.at }, null, null]
          )
          const quiet = yield* cancelled(one, "--quiet")
          assert.deepStrictEqual([quiet.left.code, quiet.left.out, quiet.left.screen], [4, "", ""])
          assert.include(quiet.left.err, `writ: cancelled (${one.at})`)
          const plain = yield* cancelled(one)
          assert.notInclude(plain.left.screen, "--resume")
          assert.include(plain.left.screen, "--trace-content makes runs resumable")
        })
    )
  }

  for (const one of cases) {
    it.effect(`in ${one.at} comes to exit code ${one.resumed} when it is resumed, and both parts are valid`, () =>
      Effect.gen(function* () {
        const { cwd, run } = yield* cancelled(one, "--trace-content")
        // What took its time before takes none now.
        const turns = one.turns.map((turn) =>
          typeof turn === "object" && turn !== null ? String((turn as { text: unknown }).text) : turn
        )
        const waits = { place: "event:tool_execution_started", thenMillis: 60_000 }
        const left = yield* runCli({
          cwd,
          turns,
          args: ["--resume", run],
          ...(one.at === "tool" ? { stopping: waits } : {})
        })
        assert.strictEqual(left.code, one.resumed, left.err + left.screen)
        const verdict = yield* invoke(["trace", "validate", run, join(run, "trace-r2.jsonl")])
        assert.strictEqual(verdict.code, 0, verdict.out)
      })
    )
  }
})
