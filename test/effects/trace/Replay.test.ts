import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { type ReplayVerdict, replay } from "../../../src/effects/trace/Replay.ts"
import { readLine, type TraceRecord } from "../../../src/effects/trace/TraceReader.ts"
import * as Registry from "../../../src/tools/Registry.ts"
import { type ContractedName, continuedRuns, contracted, contractedTools } from "../../kit/contractTraces.ts"
import { playRandom, samples } from "../../kit/randomRuns.ts"
import { play } from "../../kit/run.ts"
import { call, calls } from "../../kit/script.ts"
import * as TestTools from "../../kit/tools.ts"
import { type GoodName, good, resumedRuns } from "../../kit/traces.ts"

const records = (text: string): ReadonlyArray<TraceRecord> =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => readLine(Buffer.from(line)) as TraceRecord)

const verdictOf = (recorded: ReadonlyArray<TraceRecord>) =>
  Effect.flatMap(TestTools.make(), ({ registry }) => replay(recorded, { tools: registry }))

const turns = [
  calls(["add", { a: 2, b: 3 }], ["nope", {}], ["save", { name: "a.txt", content: "x" }]),
  "<tool_call>\n{broken\n</tool_call>",
  call("add", { a: 1, b: 1 }),
  "It is 5."
]

const recorded = Effect.map(play(turns), ({ text }) => records(text))

/** The trace with one event changed: the first of `type` that has what is named in `data`. */
const altered = (
  all: ReadonlyArray<TraceRecord>,
  type: string,
  change: (record: TraceRecord) => TraceRecord | undefined,
  call?: string
): { readonly at: number; readonly changed: ReadonlyArray<TraceRecord> } => {
  const at = all.findIndex(
    ({ data, event_type }) => event_type === type && (call === undefined || data["call"] === call)
  )
  const event = change(all[at]!)
  return { at, changed: [...all.slice(0, at), ...(event === undefined ? [] : [event]), ...all.slice(at + 1)] }
}

const withData = (more: Record<string, unknown>) => (record: TraceRecord) => ({
  ...record,
  data: { ...record.data, ...more }
})

/** Traces that hold content and their own beginning. */
const replayable = (Object.keys(good) as Array<GoodName>).filter(
  (name) =>
    !name.includes("no content") &&
    !name.startsWith("resumed") &&
    name !== "redacted" &&
    !/^a session's (second|third) task|another run$|answered in the session/.test(name)
)

/** In which order work that ran side by side ended is a matter of time, and is replayed as it is recorded. */
const sideBySide: ReadonlySet<string> = new Set(["parallel reads", "parallel reads that wait", "late outcome"])

describe("replaying a run", () => {
  for (const name of replayable) {
    it.effect(`makes the same events again: ${name}`, () =>
      Effect.gen(function* () {
        const all = records(yield* good[name])
        assert.deepStrictEqual(yield* verdictOf(all), { same: true, compared: all.length } as ReplayVerdict)
      })
    )
  }

  const gated = (Object.keys(contracted) as Array<ContractedName>).filter(
    (name) => !name.includes("no content") && !name.startsWith("escalated, then")
  )
  for (const name of gated) {
    it.effect(`asks no contract anything, and makes the same events again: ${name}`, () =>
      Effect.gen(function* () {
        const all = records(yield* contracted[name])
        const tools = yield* contractedTools
        assert.deepStrictEqual(yield* replay(all, { tools }), { same: true, compared: all.length } as ReplayVerdict)
      })
    )
  }

  for (const [name, run] of Object.entries(continuedRuns)) {
    it.effect(`makes the same events again, in the ledger of the part before it: ${name}`, () =>
      Effect.gen(function* () {
        const { first, second } = yield* run
        const all = records(second)
        const verdict = yield* replay(all, { tools: yield* contractedTools, earlier: [records(first)] })
        assert.deepStrictEqual(verdict, { same: true, compared: all.length } as ReplayVerdict)
      })
    )
  }

  for (const [name, run] of Object.entries(resumedRuns)) {
    it.effect(`makes the same events again, with the part before it: ${name}`, () =>
      Effect.gen(function* () {
        const { first, second } = yield* run
        const { registry } = yield* TestTools.make()
        const all = records(second)
        const verdict = yield* replay(all, { tools: registry, earlier: [records(first)] })
        assert.deepStrictEqual(verdict, { same: true, compared: all.length } as ReplayVerdict)
        const changed = records(first).map((record) =>
          record.event_type === "message_committed" ? { ...record, data: { ...record.data, content: "other" } } : record
        )
        const error = yield* Effect.flip(replay(all, { tools: registry }))
        assert.include(error.message, "needed too")
        // Nothing of the part before is compared, but what it leads to is.
        const shorter = yield* replay(all, { tools: registry, earlier: [changed.slice(0, -1)] })
        assert.strictEqual(shorter.divergence?.eventType, "run_resumed")
      })
    )
  }

  it.effect("makes the same events again, whatever happened", () =>
    Effect.gen(function* () {
      for (const spec of samples(300, 3)) {
        const { registry, text } = yield* playRandom(spec)
        const all = records(text)
        const verdict = yield* replay(all, { tools: registry })
        assert.deepStrictEqual(verdict, { same: true, compared: all.length } as ReplayVerdict, JSON.stringify(spec))
      }
    })
  )

  it.effect("executes nothing and asks no clock", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(
        play([call("wait", { millis: 40_000 }), call("save", { name: "a.txt", content: "x" }), "done"]),
        { startImmediately: true }
      )
      yield* TestClock.adjust(40_000)
      const { text } = yield* Fiber.join(fiber)
      const { performed, registry } = yield* TestTools.make()
      const verdict = yield* replay(records(text), { tools: registry })
      assert.isTrue(verdict.same)
      assert.deepStrictEqual(performed, [])
    })
  )

  it.effect("compares a trace that breaks off as far as it goes, wherever it does, and says where that is", () =>
    Effect.gen(function* () {
      for (const name of replayable) {
        const all = records(yield* good[name])
        for (let cut = 2; cut < all.length; cut++) {
          const verdict = yield* verdictOf(all.slice(0, cut))
          assert.isTrue(verdict.same, `${name}, cut at ${cut}: ${JSON.stringify(verdict)}`)
          assert.deepStrictEqual([verdict.compared, verdict.stoppedAt?.seq], [cut, cut])
        }
      }
    })
  )

  it.effect("leaves durations and versions out of the comparison, and nothing else", () =>
    Effect.gen(function* () {
      const all = yield* recorded
      const slower = all.map((record) => ({
        ...record,
        t_ms: record.t_ms + 1_000,
        data: Object.fromEntries(
          Object.entries(record.data).map(([name, value]) =>
            name.endsWith("_ms") ? [name, 77] : name === "product" ? [name, { writ: "9.9.9" }] : [name, value]
          )
        )
      }))
      assert.deepStrictEqual(yield* verdictOf(slower), { same: true, compared: all.length } as ReplayVerdict)
    })
  )
})

describe("a trace that was tampered with", () => {
  const cases: ReadonlyArray<{
    readonly what: string
    readonly type: string
    readonly call?: string
    readonly data: Record<string, unknown>
    /** Where the replay first comes out differently, if not at the event itself. */
    readonly shows?: { readonly type: string; readonly call?: string }
    readonly path: string
  }> = [
    {
      what: "the task",
      type: "run_started",
      data: { task: "another" },
      shows: { type: "message_committed" },
      path: ""
    },
    { what: "the tools", type: "provenance", data: { tools_hash: "0".repeat(64) }, path: "data.tools_hash" },
    { what: "a seed", type: "model_call_started", data: { seed: 1 }, path: "data.seed" },
    {
      what: "what the model said",
      type: "model_call_finished",
      data: { text: call("add", { a: 9, b: 9 }) },
      shows: { type: "assistant_action_parsed" },
      path: "data.count"
    },
    { what: "how a turn was read", type: "assistant_action_parsed", data: { count: 2 }, path: "data.count" },
    { what: "a legality result", type: "legality_checked", data: { schema: "fail" }, path: "data.schema" },
    {
      what: "arguments",
      type: "tool_call_validated",
      data: { arguments: { a: 2, b: 4 } },
      path: "data.arguments.b"
    },
    {
      what: "the reason of a rejection",
      type: "tool_call_rejected",
      data: { errors: [{ path: "name", reason: "made up" }] },
      path: "data.errors[0].reason"
    },
    {
      what: "a result",
      type: "tool_execution_finished",
      call: "call-0-0",
      data: { payload: 6 },
      shows: { type: "tool_result_committed", call: "call-0-0" },
      path: "data.answer"
    },
    {
      what: "what the model was told",
      type: "tool_result_committed",
      data: { answer: '{"ok":true,"result":7}' },
      path: "data.answer"
    },
    { what: "the key of an effect", type: "effect_intent", data: { key: "0".repeat(64) }, path: "data.key" },
    { what: "what an effect came to", type: "effect_settled", data: { outcome: "failed" }, path: "data.outcome" },
    { what: "the code of a mistake", type: "feedback_committed", data: { code: "truncated" }, path: "data.code" },
    { what: "the final answer", type: "run_completed", data: { final_text: "It is 6." }, path: "data.final_text" },
    { what: "a count", type: "run_completed", data: { tool_calls: 9 }, path: "data.tool_calls" }
  ]

  for (const { call: about, data, path, shows, type, what } of cases) {
    it.effect(`diverges at ${what}`, () =>
      Effect.gen(function* () {
        const all = yield* recorded
        const { at, changed } = altered(all, type, withData(data), about)
        const expected =
          shows === undefined
            ? at
            : changed.findIndex(
                (record) =>
                  record.event_type === shows.type &&
                  (shows.call === undefined || record.data["call"] === shows.call) &&
                  (what !== "the task" || record.data["role"] === "user")
              )
        const verdict = yield* verdictOf(changed)
        assert.isFalse(verdict.same)
        assert.strictEqual(verdict.divergence?.seq, expected)
        assert.strictEqual(verdict.divergence?.eventType, changed[expected]?.event_type)
        assert.strictEqual(verdict.compared, expected)
        if (path !== "") assert.strictEqual(verdict.divergence?.path, path)
        assert.notDeepEqual(verdict.divergence?.recorded, verdict.divergence?.replayed)
      })
    )
  }

  for (const name of replayable) {
    it.effect(`diverges where an event was removed, repeated or moved, at any place: ${name}`, () =>
      Effect.gen(function* () {
        const all = records(yield* good[name])
        // The first two say what is to be replayed: without them a trace is refused.
        for (let at = 3; at < all.length; at++) {
          const without = [...all.slice(0, at), ...all.slice(at + 1)]
          const twice = [...all.slice(0, at), all[at]!, ...all.slice(at)]
          const moved = [...all.slice(0, at - 1), all[at]!, all[at - 1]!, ...all.slice(at + 1)]
          for (const [how, changed] of Object.entries({ without, twice, moved })) {
            if (how === "moved" && sideBySide.has(name)) continue
            const verdict = yield* verdictOf(changed)
            // Without its last event a trace is one that breaks off.
            if (how === "without" && at === all.length - 1) assert.isDefined(verdict.stoppedAt)
            else assert.isDefined(verdict.divergence, `${how} at ${at} (${all[at]!.event_type})`)
          }
        }
      })
    )
  }

  it.effect("diverges where a limit was not kept", () =>
    Effect.gen(function* () {
      const all = yield* recorded
      const limits = { ...(all[0]!.data["limits"] as object), toolCalls: 1 }
      const { changed } = altered(all, "run_started", withData({ limits }))
      const verdict = yield* verdictOf(changed)
      assert.isDefined(verdict.divergence)
    })
  )
})

describe("what cannot be replayed is refused with the reason", () => {
  const refused = (recorded: ReadonlyArray<TraceRecord>) =>
    Effect.map(Effect.flip(verdictOf(recorded)), ({ message }) => message)

  it.effect("an empty trace, one without its beginning, one without content, one of another schema, two in one", () =>
    Effect.gen(function* () {
      const all = yield* recorded
      const hidden = records((yield* play(turns, { trace: { content: false } })).text)
      assert.include(yield* refused([]), "empty")
      assert.include(yield* refused(all.slice(1)), "run_started")
      assert.include(yield* refused(hidden), "--trace-content")
      assert.include(
        yield* refused(all.map((record) => ({ ...record, schema: "ember.agent.trace.v1" }))),
        "writ.trace.v1"
      )
      assert.include(yield* refused([...all, { ...all[0]!, run_id: "run-2" }]), "more than one run")
      assert.include(yield* refused(all.slice(0, 1)), "made of")
    })
  )

  it.effect("a task whose session began in another trace", () =>
    Effect.gen(function* () {
      assert.include(yield* refused(records(yield* good["a session's second task"])), "not in this trace")
    })
  )

  it.effect("a codec that is not known", () =>
    Effect.gen(function* () {
      const { changed } = altered(yield* recorded, "provenance", withData({ codec: "klingon" }))
      assert.include(yield* refused(changed), "klingon")
    })
  )
})

it.effect("other tools than the run had are a divergence of the provenance", () =>
  Effect.gen(function* () {
    const { registry } = yield* TestTools.make()
    const fewer = yield* Registry.pick(registry, ["add", "save"])
    const verdict = yield* replay(yield* recorded, { tools: fewer })
    assert.strictEqual(verdict.divergence?.eventType, "provenance")
    assert.match(verdict.divergence?.path ?? "", /^data\.tools/)
  })
)
