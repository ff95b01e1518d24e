import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { EffectLedger } from "../../src/actors/EffectLedger.ts"
import type { Stop } from "../../src/effects/State.ts"
import { directory, invoke } from "../kit/cli.ts"
import { type CliRun, recordOf, runCli } from "../kit/cliRun.ts"
import { call } from "../kit/script.ts"

interface Row extends Pick<CliRun, "turns" | "services" | "stopping"> {
  readonly stop: Stop["_tag"]
  readonly what: string
  readonly args?: ReadonlyArray<string>
  readonly code: number
  /** Last event of the trace, and what it says besides counts. */
  readonly event: string
  readonly says?: Readonly<Record<string, unknown>>
}

/** A ledger in which everything was begun before by somebody who is gone. */
const haunted = <E, A>(real: Layer.Layer<A, E>): Layer.Layer<A, E> =>
  Layer.merge(
    real,
    Layer.effect(
      EffectLedger,
      Effect.map(EffectLedger, (ledger) => ({
        ...ledger,
        begin: () => Effect.succeed({ _tag: "Unknown" }) as unknown as ReturnType<typeof ledger.begin>
      }))
    ).pipe(Layer.provide(real as unknown as Layer.Layer<EffectLedger, E>)) as unknown as Layer.Layer<A, E>
  )

const broken = "<tool_call>\n{\n</tool_call>"
const add = call("add", { a: 1, b: 1 })

/** Every way a run can stop, and its variants where they differ on the record. */
const rows: ReadonlyArray<Row> = [
  { stop: "Completed", what: "an answer", turns: ["Hello"], code: 0, event: "run_completed" },
  {
    stop: "Failed",
    what: "an engine that is lost",
    turns: [{ text: "Hello", fault: { before: 0, kind: "lost" } }],
    code: 1,
    event: "run_failed",
    says: { class: "engine" }
  },
  { stop: "Failed", what: "a script that is too short", turns: [add], code: 1, event: "run_failed" },
  {
    stop: "Cancelled",
    what: "Ctrl-C",
    turns: ["Hello"],
    stopping: { place: "event:model_call_started" },
    code: 4,
    event: "run_cancelled"
  },
  {
    stop: "Limit",
    what: "no turns left",
    turns: [add, "x"],
    args: ["--max-turns", "1"],
    code: 5,
    event: "run_terminated",
    says: { reason: "limit", limit_hit: "model_turns" }
  },
  {
    stop: "Limit",
    what: "no calls left",
    turns: [add],
    args: ["--max-tool-calls", "0"],
    code: 5,
    event: "run_terminated",
    says: { reason: "limit", limit_hit: "tool_calls" }
  },
  {
    stop: "Limit",
    what: "no repairs left",
    turns: [broken],
    args: ["--max-repairs", "0"],
    code: 5,
    event: "run_terminated",
    says: { reason: "limit", limit_hit: "repairs" }
  },
  {
    stop: "Limit",
    what: "an answer that is cut twice",
    turns: [{ text: "word ".repeat(20) }, { text: "word ".repeat(20) }],
    args: ["--max-output-tokens", "4"],
    code: 5,
    event: "run_terminated",
    says: { reason: "limit", limit_hit: "output_tokens" }
  },
  {
    stop: "Limit",
    what: "no time left",
    turns: ["Hello"],
    args: ["--wall-time", "0"],
    code: 5,
    event: "run_terminated",
    says: { reason: "limit", limit_hit: "wall_time" }
  },
  {
    stop: "ContextExhausted",
    what: "a turn that does not fit",
    turns: ["Hello"],
    args: ["--max-output-tokens", "1048576"],
    code: 5,
    event: "run_terminated",
    says: { reason: "context_exhausted" }
  },
  {
    stop: "LoopDetected",
    what: "the same call three times",
    turns: [add, add, add, "x"],
    code: 5,
    event: "run_terminated",
    says: { reason: "loop_detected" }
  },
  {
    stop: "NeedsInput",
    what: "a question",
    turns: [call("clarify", { question: "Which?" })],
    code: 6,
    event: "run_needs_input"
  },
  {
    stop: "AwaitingApproval",
    what: "a call to be approved later",
    turns: [call("send", { to: "bob" })],
    args: ["--approve", "suspend"],
    code: 6,
    event: "run_awaiting_approval"
  },
  {
    stop: "Escalated",
    what: "an effect of unknown outcome",
    turns: [call("send", { to: "bob" })],
    args: ["--approve", "all"],
    services: haunted,
    code: 7,
    event: "run_terminated",
    says: { reason: "escalated" }
  }
]

describe("the exit code of writ run", () => {
  for (const { args = [], code, event, says, stop, what, ...more } of rows) {
    it.effect(`is ${code} for ${stop}: ${what}`, () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const run = join(cwd, "run")
        const tools = ["--tools", "add,save,send,clarify", "--trace-content", "--run-dir", run]
        const left = yield* runCli({ cwd, ...more, args: [...tools, ...args, "--json", "Do it."] })
        assert.strictEqual(left.code, code, left.err)
        const document = JSON.parse(left.out)
        const status = stop.replace(/(?!^)[A-Z]/g, (letter) => `_${letter}`).toLowerCase()
        assert.deepStrictEqual([document.exit_code, document.stop.status], [code, status])
        const { trace, transcript } = recordOf(run)
        assert.strictEqual(transcript.status, status)
        assert.strictEqual(trace.at(-1)?.event_type, event)
        assert.deepInclude(trace.at(-1)?.data, says ?? {})
        const verdict = yield* invoke(["trace", "validate", run])
        assert.strictEqual(verdict.code, 0, verdict.out)
      })
    )
  }

  it("has a row for every way to stop", () => {
    const all: { readonly [K in Stop["_tag"]]: true } = {
      Completed: true,
      NeedsInput: true,
      AwaitingApproval: true,
      Limit: true,
      ContextExhausted: true,
      LoopDetected: true,
      Escalated: true,
      Cancelled: true,
      Failed: true
    }
    assert.sameMembers([...new Set(rows.map(({ stop }) => stop))], Object.keys(all))
  })

  it.effect("is 7 with the commands that look an effect of unknown outcome up, and settle it", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const run = join(cwd, "run")
      const of = { cwd, turns: [call("send", { to: "bob" })], services: haunted }
      const args = ["--tools", "send", "--approve", "all", "--run-dir", run, "--trace-content"]
      const left = yield* runCli({ ...of, args: [...args, "Do it."] })
      assert.strictEqual(left.code, 7, left.err)
      const key = String(recordOf(run).trace.find(({ event_type }) => event_type === "effect_escalated")?.data["key"])
      const short = key.slice(0, 12)
      assert.match(short, /^[0-9a-f]{12}$/)
      assert.match(left.screen, /^stopped: send \(call-0-0\): its outcome is unknown\nit took .+: model .+/m)
      const ledger = / --ledger (\S+)$/m.exec(left.screen)?.[1]
      assert.isDefined(ledger)
      const resolving = ["--happened", "--did-not-happen", "--failed"].map(
        (found) => `           npx writ ledger resolve ${short} ${found} --reason '…' --ledger ${ledger}`
      )
      const shown = `next       npx writ ledger show ${short} --ledger ${ledger}`
      assert.include(left.screen, [shown, ...resolving].join("\n"))
      assert.notInclude(left.screen, "run --resume")
      const quiet = yield* runCli({ ...of, args: ["--tools", "send", "--approve", "all", "-q", "Do it."] })
      assert.match(quiet.err, /its outcome is unknown; npx writ ledger show [0-9a-f]{12} --ledger \S+$/m)
    })
  )

  it.effect("is 2 where nothing was run", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const left = yield* runCli({ cwd, turns: ["Hello"], args: ["--max-turns=-1", "Do it."] })
      assert.deepStrictEqual([left.code, left.screen], [2, ""])
    })
  )
})
