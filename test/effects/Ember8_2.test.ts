/** Cancellation and timeouts: what the inventory of the predecessor names in 8.2, each as the claim that holds here. */
import { assert, describe, it } from "@effect/vitest"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { EffectLedger } from "../../src/actors/EffectLedger.ts"
import * as Agent from "../../src/effects/Agent.ts"
import { Approval, allowAll } from "../../src/effects/Policy.ts"
import type { Codec } from "../../src/engine/codecs/Codec.ts"
import { qwen25 } from "../../src/engine/codecs/Qwen25.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { ToolContext } from "../../src/tools/ToolContext.ts"
import { ToolError } from "../../src/tools/ToolError.ts"
import { acts } from "../kit/contracts.ts"
import { play, playUntil } from "../kit/run.ts"
import { call, lines, types } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

const parameters = Schema.Struct({ after: Schema.Finite, ending: Schema.Literals(["give", "fail", "die"]) })

/** Hands an artifact over, then waits and ends as told; by its contract it acts on the outside world. */
const Act = acts(
  "external",
  Tool.make("act", { description: "Acts.", parameters, success: Schema.String, failure: ToolError })
)

const acting = (seen: Array<string>) =>
  Registry.fromToolkit(Toolkit.make(Act), {
    act: Effect.fnUntraced(function* ({ after, ending }) {
      const { produce, settings } = yield* ToolContext
      seen.push(`act ${settings.idempotencyKey === undefined ? "without" : "with"} a key`)
      produce({ name: "half.txt", mediaType: "text/plain", bytes: Buffer.from("half") })
      yield* Effect.sleep(after)
      seen.push("acted")
      if (ending === "fail") return yield* new ToolError({ kind: "execution_failed", message: "no" })
      if (ending === "die") return yield* Effect.die(new Error("bug"))
      return "done"
    })
  })

/** Runs one call of `act` while the clock moves on. */
const act = (args: object, options: { readonly toolMillis: number; readonly adjust: ReadonlyArray<number> }) =>
  Effect.gen(function* () {
    const seen: Array<string> = []
    const tools = yield* acting(seen)
    const { adjust, toolMillis } = options
    const running = Agent.run({
      task: "t",
      tools,
      trace: { content: true },
      limits: { toolMillis, wallMillis: Infinity }
    })
    const fiber = yield* Effect.forkChild(running, { startImmediately: true })
    for (const millis of adjust) yield* TestClock.adjust(millis)
    const outcome = yield* Fiber.join(fiber)
    return { outcome, seen, events: lines((yield* MemoryTraces).text("run-1")) }
  }).pipe(
    Effect.provideService(Approval, allowAll),
    // The last turn takes its time, so that what comes late still meets an open record.
    Effect.provide(layerScripted({ turns: [call("act", args), { text: "ok", prefillMillis: 5_000 }] }))
  )

describe("8.2 cancellation and timeouts", () => {
  it.effect("14: a run that is interrupted from outside has a terminal event", () =>
    Effect.gen(function* () {
      const { registry } = yield* TestTools.make()
      const fiber = yield* Effect.forkChild(Agent.run({ task: "t", tools: registry }), { startImmediately: true })
      yield* TestClock.adjust(50)
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(types((yield* MemoryTraces).text("run-1")).at(-1), "run_cancelled")
    }).pipe(Effect.provide(layerScripted({ turns: [{ text: ["He", "llo"], millisPerToken: 100 }] })))
  )

  it.effect("15: a cancel during a tool does not wait for the tool", () =>
    Effect.gen(function* () {
      // The clock never moves: whoever waited for the tool would wait for ever.
      const { outcome } = yield* playUntil(
        [call("wait", { millis: 60_000 }), "never"],
        (event) => event._tag === "CallStarted"
      )
      assert.deepStrictEqual(outcome.stop, { _tag: "Cancelled", at: "tool" })
    })
  )

  it.effect("16: what a call leaves behind after its deadline is not published, in no run", () =>
    Effect.gen(function* () {
      const late = yield* act({ after: 500, ending: "give" }, { toolMillis: 150, adjust: [150, 350, 5_000] })
      assert.deepStrictEqual(late.seen, ["act with a key", "acted"])
      assert.deepStrictEqual(late.outcome.artifacts, [])
      assert.isFalse(late.events.some((event) => event.event_type === "artifact_written"))
      // Nobody knows what it did when the time was up, so the run does not go on as if somebody did.
      assert.strictEqual(late.outcome.stop._tag, "Escalated")
    })
  )

  it.effect(
    "17: a call that fails, crashes or times out leaves no artifact, in the store no more than in the trace",
    () =>
      Effect.gen(function* () {
        for (const ending of ["fail", "die"]) {
          const { events, outcome } = yield* act({ after: 0, ending }, { toolMillis: 1_000, adjust: [0, 5_000] })
          assert.deepStrictEqual(outcome.artifacts, [], ending)
          assert.isFalse(events.some((event) => event.event_type === "artifact_written"))
        }
        const fine = yield* act({ after: 0, ending: "give" }, { toolMillis: 1_000, adjust: [0, 5_000] })
        assert.deepStrictEqual(
          fine.events.filter((event) => event.event_type === "artifact_written").length,
          fine.outcome.artifacts.length
        )
        assert.strictEqual(fine.outcome.artifacts.length, 1)
      })
  )

  it.effect("18: an uncommitted result tells what is known of its effect, and a read has none", () =>
    Effect.gen(function* () {
      const effectOf = (turn: string) =>
        Effect.gen(function* () {
          const { events } = yield* playUntil([turn], (event) => event._tag === "CallStarted").pipe(
            Effect.provideService(Approval, allowAll)
          )
          return events.find((event) => event.event_type === "tool_result_uncommitted")?.data["effect"]
        })
      assert.strictEqual(yield* effectOf(call("wait", { millis: 60_000 })), "none")
      assert.strictEqual(yield* effectOf(call("slow_send", { to: "bob" })), "unknown")
    })
  )

  it.effect("19: intent is durable before the effect, the tool has its key, and a timeout is an unknown outcome", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const tools = yield* acting(seen)
      const layer = layerScripted({ turns: [call("act", { after: 60_000, ending: "give" }), "ok"] })
      const watched = Layer.effect(
        EffectLedger,
        Effect.map(EffectLedger, (ledger) =>
          EffectLedger.of({
            ...ledger,
            begin: (intent) =>
              Effect.tap(ledger.begin(intent), ({ _tag }) => Effect.sync(() => seen.push(`intent ${_tag}`))),
            settle: (key, outcome) =>
              Effect.tap(ledger.settle(key, outcome), () => Effect.sync(() => seen.push(`settled ${outcome.state}`)))
          })
        )
      ).pipe(Layer.provide(layer))
      const running = Agent.run({ task: "t", tools, limits: { toolMillis: 150 } }).pipe(
        Effect.provideService(Approval, allowAll),
        Effect.provide(Layer.merge(layer, watched))
      )
      const fiber = yield* Effect.forkChild(running, { startImmediately: true })
      yield* TestClock.adjust(150)
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(seen, ["intent New", "act with a key", "settled unknown"])
    })
  )

  it.effect("20: a deadline of more than an hour is one", () =>
    Effect.gen(function* () {
      const hour = 3_600_000
      const { events } = yield* act(
        { after: 3 * hour, ending: "give" },
        { toolMillis: 2 * hour, adjust: [2 * hour, 5_000] }
      )
      const finished = events.find((event) => event.event_type === "tool_execution_finished")
      assert.deepInclude(finished?.data, { failure_kind: "timed_out", effect: "unknown", duration_ms: 2 * hour })
    })
  )

  it.effect("21: a bug in an approver, a codec or an engine stays a bug, and the record has its end", () =>
    Effect.gen(function* () {
      const bug = () => {
        throw new Error("a bug")
      }
      const brokenCodec: Codec = { ...qwen25, parser: bug }
      const approver = { name: "broken", decide: () => Effect.die(new Error("a bug")) }
      const cases = {
        approver: { turns: [call("send", { to: "bob" })], codec: qwen25 as Codec },
        codec: { turns: ["hi"], codec: brokenCodec },
        engine: { turns: [{ text: "hi", fault: { before: 0, kind: "defect" as const } }], codec: qwen25 as Codec }
      }
      for (const [what, { codec, turns }] of Object.entries(cases)) {
        const { registry } = yield* TestTools.make()
        const context = yield* Layer.build(layerScripted({ turns }))
        const exit = yield* Effect.exit(
          Agent.run({ task: "t", tools: registry, codec }).pipe(
            Effect.provideService(Approval, approver),
            Effect.provideContext(context)
          )
        )
        assert.isTrue(Exit.hasDies(exit), what)
        const trace = Context.get(context, MemoryTraces).text("run-1")
        assert.deepInclude(lines(trace).at(-1), { event_type: "run_failed" }, what)
        assert.strictEqual(lines(trace).at(-1)?.data["class"], "defect", what)
      }
    })
  )

  it.effect("a call that has no time at all is not started", () =>
    Effect.gen(function* () {
      const { events, performed } = yield* play([call("add", { a: 1, b: 1 }), "ok"], { limits: { toolMillis: 0 } })
      assert.deepStrictEqual(performed, [])
      const finished = events.find((event) => event.event_type === "tool_execution_finished")
      assert.deepInclude(finished?.data, { failure_kind: "timed_out", effect: "none" })
    })
  )
})
