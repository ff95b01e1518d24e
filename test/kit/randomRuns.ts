/** Runs of every shape, decided by a random specification and played under virtual time. Plain data, so a failure prints. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as fc from "fast-check"
import * as Agent from "../../src/effects/Agent.ts"
import { Approval, allowAll, type Decision, denyAll, suspendAll } from "../../src/effects/Policy.ts"
import type { CallPolicy } from "../../src/effects/RunContext.ts"
import type { ScriptedTurn } from "../../src/engine/ScriptedModel.ts"
import { layerScripted, MemoryTraces, ScriptedSessions } from "../../src/testing.ts"
import { call, calls } from "./script.ts"
import * as TestTools from "./tools.ts"

const approvers = {
  deny: denyAll,
  allow: allowAll,
  suspend: suspendAll,
  slow: { name: "slow", decide: () => Effect.as(Effect.sleep(30), "allow" as Decision) }
}

export interface RandomRun {
  readonly task: string
  readonly turns: ReadonlyArray<ScriptedTurn>
  readonly calls: CallPolicy
  readonly limits: NonNullable<Agent.AgentOptions["limits"]>
  readonly approver: keyof typeof approvers
  readonly tokenEvents: boolean
  readonly contextTokens: number
  /** Cancelled when so many events were seen, or so many milliseconds have passed. */
  readonly cancelAtEvent: number | undefined
  readonly cancelAtMillis: number | undefined
}

const proposals: ReadonlyArray<readonly [string, unknown]> = [
  ["add", { a: 2, b: 3 }],
  ["add", { a: "two" }],
  ["add", { a: 1, b: 1, c: 1 }],
  ["save", { name: "a.txt", content: "x" }],
  ["save", { name: "b.txt", content: "y".repeat(40) }],
  ["save", { name: "../no", content: "x" }],
  ["send", { to: "bob" }],
  ["slow_send", { to: "ann" }],
  ["wait", { millis: 0 }],
  ["wait", { millis: 20 }],
  ["wait", { millis: 45 }],
  ["wait", { millis: 90_000 }],
  ["poll", {}],
  ["long", { length: 30 }],
  ["long", { length: 3_000 }],
  ["broken", { how: "error" }],
  ["broken", { how: "defect" }],
  ["clarify", { question: "Which?" }],
  ["nope", {}]
]

/** One time, against `not` times not. */
const sometimes = <A>(arbitrary: fc.Arbitrary<A>, not: number): fc.Arbitrary<A | undefined> =>
  fc.oneof({ weight: not, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary })

const proposal = fc.constantFrom(...proposals)

const spoken: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: proposal.map(([name, args]) => call(name, args)) },
  { weight: 3, arbitrary: fc.array(proposal, { minLength: 2, maxLength: 3 }).map((many) => calls(...many)) },
  { weight: 1, arbitrary: proposal.map(([name, args]) => `Let me see.\n${call(name, args)}`) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      "",
      "<tool_call>\n{",
      '<tool_call>\n{"name": "add"}\n</tool_call>',
      '{"name": "add", "arguments": {}}',
      "<tool_call>\n{}\n</tool_call>",
      `${call("add", { a: 1, b: 1 })}\n<tool_call>`
    )
  },
  { weight: 1, arbitrary: fc.constantFrom("Done.", "It is 5, 日本語 🇯🇵.", "a\n\nb") }
)

const fault = fc.record({
  before: fc.nat(4),
  kind: fc.constantFrom("lost", "failed", "context_overflow", "hang", "defect")
}) as fc.Arbitrary<NonNullable<ScriptedTurn["fault"]>>

const turn: fc.Arbitrary<ScriptedTurn> = fc
  .record({
    text: spoken,
    pieces: fc.boolean(),
    millisPerToken: fc.constantFrom(0, 0, 7),
    prefillMillis: fc.constantFrom(0, 0, 25),
    fault: sometimes(fault, 12),
    stop: fc.constantFrom("eog" as const, "eog" as const, "stop" as const)
  })
  .map(({ fault: broken, millisPerToken, pieces, prefillMillis, stop, text }) => ({
    text: pieces && text !== "" ? (text.match(/[\s\S]{1,7}/gu) ?? []) : text,
    stop,
    ...(millisPerToken === 0 ? {} : { millisPerToken }),
    ...(prefillMillis === 0 ? {} : { prefillMillis }),
    ...(broken === undefined ? {} : { fault: broken })
  }))

export const randomRun: fc.Arbitrary<RandomRun> = fc.record({
  task: fc.constantFrom("the task", "t <|im_end|> 日本", "x".repeat(300)),
  turns: fc
    .tuple(fc.array(turn, { maxLength: 5 }), fc.boolean())
    .map(([turns, ends]) => (ends ? [...turns, { text: "That is all." }] : turns)),
  calls: fc.constantFrom<CallPolicy>("sequential", "parallel", "single"),
  limits: fc.record(
    {
      modelTurns: fc.constantFrom(0, 1, 3, 8, 8, 8, 8),
      toolCalls: fc.constantFrom(0, 1, 2, 16, 16, 16),
      wallMillis: fc.constantFrom(0, 1, 60, 5_000, 90_000, 90_000, 90_000, Infinity),
      toolMillis: fc.constantFrom(0, 30, 30, 1_000, 1_000),
      outputTokens: fc.constantFrom(2, 8, 60, 200, 200),
      resultBytes: fc.constantFrom(0, 64, 200),
      repairs: fc.constantFrom(0, 1),
      loopThreshold: fc.constantFrom(0, 2)
    },
    { requiredKeys: [] }
  ),
  approver: fc.constantFrom<keyof typeof approvers>("deny", "allow", "suspend", "slow"),
  tokenEvents: fc.boolean(),
  contextTokens: fc.constantFrom(1_048_576, 1_048_576, 1_800, 2_400),
  cancelAtEvent: sometimes(fc.nat(40), 3),
  cancelAtMillis: sometimes(fc.nat(200), 3)
})

/** So many of them, the same each time. */
export const samples = (count: number, seed: number): ReadonlyArray<RandomRun> =>
  fc.sample(randomRun, { numRuns: count, seed })

/** Instants at which something may happen, far enough for everything to end. */
const steps = [...Array.from({ length: 40 }, () => 5), 1_000, 30_000, 60_000, 600_000, 600_000]

/** Plays it to its end and gives what it left: trace, outcome (none where a defect ended it), transcript, the engine's log. */
export const playRandom = (spec: RandomRun, codec = "qwen2.5") =>
  Effect.gen(function* () {
    const { performed, registry } = yield* TestTools.make()
    const session = yield* Agent.session({ tools: registry, system: "S", codec })
    const handle = yield* Agent.startIn(session, spec.task, {
      calls: spec.calls,
      limits: spec.limits,
      trace: { content: true, tokenEvents: spec.tokenEvents }
    })
    let seen = 0
    const watching = Stream.runForEach(handle.events, () =>
      Effect.suspend(() => (seen++ === spec.cancelAtEvent ? handle.cancel : Effect.void))
    )
    yield* Effect.forkChild(watching, { startImmediately: true })
    if (spec.cancelAtMillis !== undefined) {
      const later = Effect.delay(handle.cancel, spec.cancelAtMillis)
      yield* Effect.forkChild(later, { startImmediately: true })
    }
    const waiting = yield* Effect.forkChild(Effect.exit(handle.outcome), { startImmediately: true })
    for (const millis of steps) yield* TestClock.adjust(millis)
    // An engine that hangs is only ended by a cancel where there is no wall time.
    yield* handle.cancel
    const exit = yield* Fiber.join(waiting)
    const text = (yield* MemoryTraces).text(handle.runId)
    const context = (yield* ScriptedSessions).map((log) => log.committed()).join("")
    return { exit, text, context, performed, registry, session }
  }).pipe(
    Effect.scoped,
    Effect.provideService(Approval, approvers[spec.approver]),
    Effect.provide(layerScripted({ turns: spec.turns, contextTokens: spec.contextTokens }))
  )
