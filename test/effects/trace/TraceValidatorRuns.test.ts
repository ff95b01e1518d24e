import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import * as fc from "fast-check"
import * as Agent from "../../../src/effects/Agent.ts"
import { Approval, allowAll, denyAll, suspendAll } from "../../../src/effects/Policy.ts"
import { resume } from "../../../src/effects/Resume.ts"
import type { RunOptions } from "../../../src/effects/Run.ts"
import { Lines, type TraceRecord } from "../../../src/effects/trace/TraceReader.ts"
import { validateText } from "../../../src/effects/trace/TraceValidator.ts"
import type { ScriptedTurn } from "../../../src/engine/ScriptedModel.ts"
import { layerScripted, MemoryTraces } from "../../../src/testing.ts"
import { calls } from "../../kit/script.ts"
import * as TestTools from "../../kit/tools.ts"

type Call = readonly [name: string, args: unknown]

const oneCall: fc.Arbitrary<Call> = fc.oneof(
  fc.tuple(fc.constant("add"), fc.record({ a: fc.nat(2), b: fc.constant(1) })),
  fc.tuple(fc.constant("wait"), fc.record({ millis: fc.nat(400) })),
  fc.tuple(
    fc.constant("save"),
    fc.record({ name: fc.constantFrom("a.txt", "../b"), content: fc.constantFrom("x", "y") })
  ),
  fc.tuple(fc.constantFrom("send", "slow_send"), fc.record({ to: fc.constantFrom("ann", "bob") })),
  fc.tuple(fc.constant("long"), fc.record({ length: fc.constantFrom(10, 3_000) })),
  fc.tuple(fc.constant("broken"), fc.record({ how: fc.constantFrom("error", "defect") })),
  fc.constant<Call>(["poll", {}]),
  fc.constant<Call>(["add", { a: "one" }]),
  fc.constant<Call>(["nobody", { at: "home" }]),
  fc.constant<Call>(["clarify", { question: "Which?" }])
)

const someText: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.array(oneCall, { minLength: 1, maxLength: 3 }).map((all) => calls(...all)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom("The end.", "", "<tool_call>\n{\n</tool_call>", "a long answer that may be cut off")
  }
)

const oneTurn: fc.Arbitrary<ScriptedTurn> = fc
  .record({
    text: someText,
    millisPerToken: fc.constantFrom(0, 0, 0, 3),
    prefillMillis: fc.constantFrom(0, 0, 0, 50),
    fault: fc.oneof(
      { weight: 9, arbitrary: fc.constant(null) },
      {
        weight: 1,
        arbitrary: fc.record({
          before: fc.nat(5),
          kind: fc.constantFrom("lost", "context_overflow", "failed")
        } as const)
      }
    )
  })
  .map(({ fault, ...turn }) => (fault === null ? turn : { ...turn, fault }))

const someOptions = fc.record({
  calls: fc.constantFrom("single", "sequential", "parallel"),
  trace: fc.record({ content: fc.boolean(), tokenEvents: fc.boolean() }),
  limits: fc.record(
    {
      modelTurns: fc.constantFrom(8, 8, Infinity, 2, 0),
      toolCalls: fc.constantFrom(16, Infinity, 3, 1, 0),
      wallMillis: fc.constantFrom(600_000, 600_000, Infinity, 300, 0),
      toolMillis: fc.constantFrom(60_000, Infinity, 150, 0),
      outputTokens: fc.constantFrom(512, 512, 30, 3),
      resultBytes: fc.constantFrom(0, 200, 32_768),
      repairs: fc.constantFrom(3, 1, 0),
      loopThreshold: fc.constantFrom(0, 2, 3)
    },
    { requiredKeys: [] }
  )
} as const)

const someCase = fc.record({
  turns: fc.array(oneTurn, { maxLength: 6 }),
  options: someOptions,
  approver: fc.constantFrom(allowAll, denyAll, suspendAll),
  /** When the run is cancelled, in virtual milliseconds; or never. */
  cancelAt: fc.option(fc.nat(700)),
  tasks: fc.constantFrom(1, 1, 2)
})

/** Runs one or two tasks in one session, each cancelled when the case says so, and returns their traces. */
const tracesOf = ({
  approver,
  cancelAt,
  options,
  tasks,
  turns
}: typeof someCase extends fc.Arbitrary<infer A> ? A : never) =>
  Effect.gen(function* () {
    const { registry } = yield* TestTools.make()
    const session = yield* Agent.session({ tools: registry, system: "S" })
    for (let task = 0; task < tasks; task++) {
      const handle = yield* Agent.startIn(session, `task ${task}`, options as RunOptions)
      const ended = yield* Effect.forkChild(Effect.exit(handle.outcome), { startImmediately: true })
      if (cancelAt !== null) {
        yield* TestClock.adjust(cancelAt)
        yield* handle.cancel
      }
      for (let waited = 0; ended.pollUnsafe() === undefined && waited < 50; waited++)
        yield* TestClock.adjust("1 minute")
      yield* Fiber.join(ended)
    }
    const memory = yield* MemoryTraces
    return memory.runs().map((runId) => memory.text(runId))
  }).pipe(Effect.scoped, Effect.provideService(Approval, approver), Effect.provide(layerScripted({ turns })))

const bad = "<tool_call>\n{\n</tool_call>"
const turns = [
  calls(["add", { a: 1, b: 1 }], ["save", { name: "a.txt", content: "x" }], ["send", { to: "bob" }]),
  bad,
  calls(["nobody", {}]),
  "done"
]

/** The events of a whole run, and of a run that goes on from the first so many of them. */
const part = (before?: ReadonlyArray<TraceRecord>) =>
  Effect.gen(function* () {
    const { registry } = yield* TestTools.make()
    const options = { tools: registry, trace: { content: true } }
    const { runId } = yield* before === undefined
      ? Agent.run({ task: "t", system: "S", ...options })
      : resume({ ...options, traces: [before] })
    return (yield* MemoryTraces).text(runId)
  })

const begun = (records: ReadonlyArray<TraceRecord>): number =>
  records.filter(
    ({ data, event_type }) => event_type === "session_state_changed" && String(data["role"]).startsWith("assistant_")
  ).length

const recordsOf = (text: string): ReadonlyArray<TraceRecord> =>
  new Lines().push(Buffer.from(text)).flatMap((item) => (item._tag === "Event" ? [item.record] : []))

const cases = Number(process.env["WRIT_VALIDATOR_RUNS"] ?? 300)

describe("a run that was killed after any of its events", () => {
  it.effect("is continued with a valid and complete trace", () =>
    Effect.gen(function* () {
      const all = recordsOf(yield* part().pipe(Effect.provide(layerScripted({ turns }))))
      assert.isAbove(all.length, 30)
      for (let kept = 2; kept < all.length; kept++) {
        const before = all.slice(0, kept)
        const left = layerScripted({ turns: turns.slice(begun(before)) })
        const text = yield* part(before).pipe(Effect.provide(left))
        const verdict = validateText(text)
        assert.deepStrictEqual(
          verdict.violations,
          [],
          `killed after event ${kept - 1}, ${before.at(-1)?.event_type}\n${text}`
        )
        assert.isTrue(verdict.complete)
      }
    }).pipe(Effect.provideService(Approval, allowAll))
  )
})

describe("any run under any cancel", () => {
  it.effect("leaves a valid and complete trace", () =>
    Effect.gen(function* () {
      const ends = new Map<string, number>()
      for (const one of fc.sample(someCase, { numRuns: cases, seed: 20_261_130 })) {
        for (const text of yield* tracesOf(one)) {
          const verdict = validateText(text)
          const about = () => `${JSON.stringify(one)}\n${JSON.stringify(verdict.violations, undefined, 1)}\n${text}`
          assert.isTrue(verdict.ok && verdict.complete, verdict.ok && verdict.complete ? "" : about())
          const end = String(/"event_type":"(run_[a-z_]+)"[^\n]*\n$/.exec(text)?.[1])
          ends.set(end, (ends.get(end) ?? 0) + 1)
        }
      }
      // A sample that only ever ends in one way would show nothing.
      for (const end of [
        "run_completed",
        "run_cancelled",
        "run_terminated",
        "run_failed",
        "run_needs_input",
        "run_awaiting_approval"
      ]) {
        assert.isAbove(ends.get(end) ?? 0, 0, `no run of the sample ended as ${end}`)
      }
    })
  )
})
