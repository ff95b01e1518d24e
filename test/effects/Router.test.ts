import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import type { Routed } from "../../src/effects/Beginning.ts"
import { resume } from "../../src/effects/Resume.ts"
import * as Router from "../../src/effects/Router.ts"
import { replay } from "../../src/effects/trace/Replay.ts"
import { readLine, type TraceRecord } from "../../src/effects/trace/TraceReader.ts"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import * as Wiring from "../../src/effects/Wiring.ts"
import { byId, ids } from "../../src/engine/codecs/Families.ts"
import { Model } from "../../src/engine/Model.ts"
import type { Script } from "../../src/engine/ScriptedModel.ts"
import { wordsGrammar } from "../../src/engine/WholeTurn.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import { Gbnf, withMarks } from "../kit/gbnf.ts"
import { type AskedTurn, routed, spying } from "../kit/routes.ts"
import { call, type Line, lines, shape, types } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

const add = call("add", { a: 2, b: 3 })

const route = (events: ReadonlyArray<Line>) => events.filter(({ event_type: type }) => type === "routed")

const decided = (turn: Script["turns"][number], codec?: string) =>
  Router.decide("the task", codec === undefined ? {} : { codec }).pipe(Effect.provide(layerScripted({ turns: [turn] })))

const recordsOf = (text: string) =>
  text
    .trim()
    .split("\n")
    .map((line) => readLine(Buffer.from(line)) as TraceRecord)

describe("the decision", () => {
  const cases: ReadonlyArray<
    readonly [said: Script["turns"][number], route: Routed["route"], reason: Routed["reason"]]
  > = [
    ["chat", "chat", "word"],
    [" task\n", "task", "word"],
    ["", "task", "empty"],
    ["   ", "task", "empty"],
    ["Chat", "task", "garbage"],
    ["I would say: chat.", "task", "garbage"],
    ["chat or task", "task", "both"],
    ["chat chat", "task", "garbage"],
    [call("add", { a: 1, b: 2 }), "task", "garbage"],
    [{ text: Array.from({ length: 80 }, () => "chat ") }, "task", "overrun"],
    [{ text: ["chat"], fault: { before: 0, kind: "failed" } }, "task", "engine_error"]
  ]
  for (const [said, wanted, reason] of cases) {
    it.effect(`is ${wanted} (${reason}) for ${JSON.stringify(said ?? null).slice(0, 60)}`, () =>
      Effect.gen(function* () {
        assert.deepInclude(yield* decided(said), { route: wanted, reason, by: "model" })
      })
    )
  }

  it.effect("takes no notice of reasoning that came all the same, in every family that can be told not to", () =>
    Effect.gen(function* () {
      const told = yield* decided("<think>\na task, surely\n</think>\n\nchat", "qwen3")
      assert.deepInclude(told, { route: "chat", reason: "word" })
      const cut = yield* decided(
        { text: Array.from({ length: 80 }, (_, at) => (at === 0 ? "<think>" : " hm")) },
        "qwen3"
      )
      assert.deepInclude(cut, { route: "task", reason: "overrun" })
    })
  )

  it.effect("is a task where the engine cannot hold a turn to two words; it is not even asked", () =>
    Effect.gen(function* () {
      const hosted = Layer.effect(
        Model,
        Effect.map(Model, (model) => ({ ...model, identity: { ...model.identity, engine: "language-model" as const } }))
      ).pipe(Layer.provide(layerScripted({ turns: [] })))
      assert.deepInclude(yield* Router.decide("hi").pipe(Effect.provide(hosted)), {
        route: "task",
        reason: "no_grammar"
      })
    })
  )

  it.live("of a model file is one of the two words, whatever the model knows of them", () =>
    Effect.gen(function* () {
      for (const task of ["Hi there!", "Read notes.txt and write a report.", "x".repeat(9_000)]) {
        const told = yield* Router.decide(task)
        assert.deepInclude(told, { by: "model", reason: "word", text: told.route })
      }
    }).pipe(Effect.provide(Wiring.layerModel({ modelHash: false, contextTokens: 8_192, sessions: 1 })))
  )

  it("is held to the two words by the grammar", () => {
    const grammar = wordsGrammar(["chat", "task"])
    const gbnf = new Gbnf(withMarks(grammar))
    const fits = (text: string) => gbnf.matches(grammar.start!.root, text)
    assert.deepStrictEqual(["chat", "task", "", "chatt", "chat task", "chaos"].map(fits), [
      true,
      true,
      false,
      false,
      false,
      false
    ])
  })
})

describe("a decision that takes its time", () => {
  const hangs: Script["turns"][number] = { text: "chat", fault: { before: 0, kind: "hang" } }

  it.effect("takes no more than the run may take, and is part of that", () =>
    Effect.gen(function* () {
      const late = yield* Effect.forkChild(routed([hangs, "never"], { limits: { wallMillis: 1_000 } }), {
        startImmediately: true
      })
      yield* TestClock.adjust(1_000)
      const { events, outcome, text } = yield* Fiber.join(late)
      assert.deepStrictEqual(outcome.stop, { _tag: "Limit", kind: "wall_time" })
      assert.deepInclude(route(events)[0]!.data, { route: "task", reason: "overrun", duration_ms: 1_000 })
      assert.deepStrictEqual(validateText(text).violations, [])
      const slow: Script["turns"] = [
        { text: "task", prefillMillis: 600 },
        { text: "x", prefillMillis: 600 }
      ]
      const both = yield* Effect.forkChild(routed(slow, { limits: { wallMillis: 1_000 } }), { startImmediately: true })
      yield* TestClock.adjust(600)
      yield* TestClock.adjust(399)
      assert.isUndefined(both.pollUnsafe())
      yield* TestClock.adjust(1)
      const joined = yield* Fiber.join(both)
      assert.deepStrictEqual(joined.outcome.stop, { _tag: "Limit", kind: "wall_time" })
      assert.deepStrictEqual(validateText(joined.text).violations, [])
    })
  )

  it.effect("counts for the run that goes on with its budgets, in its session and from its record", () =>
    Effect.gen(function* () {
      const { registry } = yield* TestTools.make()
      const turns: Script["turns"] = [{ text: "task", prefillMillis: 600 }, 'CLARIFY("Which?")']
      const asking = yield* Effect.forkChild(routed(turns, { limits: { wallMillis: 1_000 } }), {
        startImmediately: true
      })
      yield* TestClock.adjust(600)
      const { text } = yield* Fiber.join(asking)
      const options = { traces: [recordsOf(text)], tools: registry, answer: "x", limits: { wallMillis: 1_000 } }
      const going = resume(options).pipe(Effect.provide(layerScripted({ turns: [{ text: "x", prefillMillis: 600 }] })))
      const answered = yield* Effect.forkChild(going, { startImmediately: true })
      yield* TestClock.adjust(400)
      assert.deepStrictEqual((yield* Fiber.join(answered)).stop, { _tag: "Limit", kind: "wall_time" })
    })
  )

  it.effect("can be cancelled: the run's record says that it was, and nothing more was asked", () =>
    Effect.gen(function* () {
      const { registry } = yield* TestTools.make()
      const handle = yield* Router.start({ task: "t", tools: registry, trace: { content: true } })
      yield* handle.cancel
      const { runId, stop } = yield* handle.outcome
      assert.deepStrictEqual([runId, stop], [handle.runId, { _tag: "Cancelled", at: "preparing" }])
      const text = (yield* MemoryTraces).text(runId)
      assert.deepStrictEqual(types(text), ["run_started", "provenance", "run_cancelled"])
      assert.deepStrictEqual(validateText(text).violations, [])
    }).pipe(Effect.scoped, Effect.provide(layerScripted({ turns: [hangs, "never"] })))
  )

  it.effect("and so can what comes of it", () =>
    Effect.gen(function* () {
      const { registry } = yield* TestTools.make()
      const handle = yield* Router.start({ task: "t", tools: registry })
      yield* Stream.runForEachWhile(handle.events, (event) => Effect.sync(() => event._tag !== "Text"))
      yield* handle.cancel
      assert.deepStrictEqual((yield* handle.outcome).stop, { _tag: "Cancelled", at: "generation" })
    }).pipe(
      Effect.scoped,
      Effect.provide(
        layerScripted({
          turns: ["chat", { text: ["He", "llo"], millisPerToken: 0, fault: { before: 1, kind: "hang" } }]
        })
      )
    )
  )
})

describe("what a decision is asked for", () => {
  const requests: Array<AskedTurn> = []

  it.effect("is what provenance says of its phase: never reasoning, never more than 64 tokens", () =>
    Effect.gen(function* () {
      const asked = Effect.fnUntraced(function* (options: Partial<Router.RoutedOptions>) {
        const { registry } = yield* TestTools.make()
        requests.length = 0
        const outcome = yield* Router.run({ task: "t", tools: registry, ...options })
        const about = lines((yield* MemoryTraces).text(outcome.runId))[1]!.data["phases"] as never
        return [requests[0]!, (about as Record<string, Record<string, unknown>>)["classify"]!] as const
      })
      const cases: ReadonlyArray<readonly [Partial<Router.RoutedOptions>, Record<string, unknown>]> = [
        [{}, { max_tokens: 64, temperature: 0 }],
        [{ limits: { outputTokens: 40 } }, { max_tokens: 40, temperature: 0 }],
        [{ sampling: { temperature: 0.7, topK: 3, seed: 5 } }, { max_tokens: 64, temperature: 0, top_k: 3 }],
        [
          { phases: { classify: { outputTokens: 400, temperature: 0.2, topP: 0.5 } } },
          { max_tokens: 64, temperature: 0.2, top_p: 0.5 }
        ],
        [
          { thinking: true, phases: { classify: { thinking: true, stream: true } } },
          { thinking: false, stream: false }
        ]
      ]
      for (const [options, expected] of cases) {
        const [{ request }, recorded] = yield* asked(options)
        const { maxTokens, sampling } = request
        assert.deepInclude(recorded, expected)
        const { max_tokens, temperature, top_k, top_p } = recorded
        const { seed, ...rest } = sampling
        assert.deepStrictEqual([maxTokens, rest], [max_tokens, { temperature, topK: top_k, topP: top_p }] as never)
        assert.strictEqual(seed, options.sampling?.seed ?? 0)
      }
    }).pipe(
      Effect.provide(
        Layer.provideMerge(
          spying(requests),
          layerScripted({ turns: [], further: (at) => ({ text: at % 2 === 0 ? "task" : "x" }) })
        )
      )
    )
  )
})

describe("a talk", () => {
  it.effect("has no tools in its prompt and the small system text, and its own session", () =>
    Effect.gen(function* () {
      const { contexts, events, outcome, text } = yield* routed(["chat", "Hello!"], { task: "Hi" })
      assert.deepStrictEqual(outcome.stop, { _tag: "Completed", text: "Hello!" })
      assert.deepStrictEqual(shape(outcome), ["system", "user", "assistant:final"])
      const [classified, task, chat] = contexts
      assert.strictEqual(task, "")
      assert.include(classified, "answer with one word")
      assert.notInclude(chat, "<tools>")
      assert.include(chat, Router.chatSystem)
      assert.deepInclude(route(events)[0]!.data, {
        route: "chat",
        by: "model",
        reason: "word",
        text: "chat",
        output_tokens: 1
      })
      assert.deepStrictEqual(validateText(text).violations, [])
    })
  )

  it.effect("in every family, shows no tools", () =>
    Effect.gen(function* () {
      for (const id of ids) {
        const codec = Result.getOrThrow(byId(id))
        const { contexts } = yield* routed(["Hello!"], { task: "Hi", route: "chat", codec })
        assert.notMatch(contexts.join(""), /\badd\b|save_two/, id)
      }
    })
  )

  it.effect("that hands over leaves nothing behind: the task goes on with the same text, tools and budgets", () =>
    Effect.gen(function* () {
      const { contexts, events, outcome, performed, text } = yield* routed(["chat", "TASK()", add, "It is 5."])
      assert.deepStrictEqual(outcome.stop, { _tag: "Completed", text: "It is 5." })
      assert.deepStrictEqual([outcome.turns, performed.length], [3, 1])
      assert.include(contexts[1], "the task")
      assert.notInclude(contexts[1], "TASK()")
      assert.notInclude(contexts[2], "assistant\nTASK()")
      assert.deepStrictEqual(
        route(events).map(({ data }) => [data["route"], data["by"]]),
        [
          ["chat", "model"],
          ["task", "chat"]
        ]
      )
      assert.deepStrictEqual(validateText(text).violations, [])
    })
  )

  it.effect("that hands over is seen by nobody, however it arrives", () =>
    Effect.gen(function* () {
      const { registry } = yield* TestTools.make()
      for (const text of [
        ["\n\n", "TA", "SK", "()", "\n"],
        [" ", "<fin", "al>", "TASK()</final>"]
      ]) {
        const handle = yield* Router.start({ task: "t", tools: registry, route: "chat" }).pipe(
          Effect.provide(layerScripted({ turns: [{ text }, "Done."] }))
        )
        const seen = yield* Stream.runCollect(handle.events)
        assert.deepStrictEqual(
          seen.flatMap((event) => (event._tag === "Text" || event._tag === "Retracted" ? [event._tag] : [])),
          ["Text"]
        )
      }
    }).pipe(Effect.scoped)
  )

  it.effect("hands over only with the whole of its visible text", () =>
    Effect.gen(function* () {
      const { outcome } = yield* routed(["chat", "Write TASK() to start a task."])
      assert.strictEqual(outcome.text, "Write TASK() to start a task.")
    })
  )

  it.effect("counts against the limit of turns when it hands over", () =>
    Effect.gen(function* () {
      const { outcome } = yield* routed(["chat", "TASK()", "never"], { limits: { modelTurns: 1 } })
      assert.deepStrictEqual(outcome.stop, { _tag: "Limit", kind: "model_turns" })
    })
  )
})

describe("a route that the caller says", () => {
  it.effect("is not asked about, and is on record", () =>
    Effect.gen(function* () {
      const chat = yield* routed(["Hello!"], { route: "chat" })
      assert.deepInclude(route(chat.events)[0]!.data, { route: "chat", by: "caller", reason: "said" })
      const task = yield* routed([add, "It is 5."], { route: "task" })
      assert.deepInclude(route(task.events)[0]!.data, { route: "task", by: "caller", reason: "said" })
      assert.lengthOf(task.performed, 1)
    })
  )
})

describe("the record of a routed run", () => {
  it.effect("hides what the model wrote, without content", () =>
    Effect.gen(function* () {
      const { events, text } = yield* routed(["chat", "Hello!"], { trace: {} })
      assert.deepStrictEqual(Object.keys(route(events)[0]!.data["text"] as object), ["bytes", "hmac"])
      assert.deepStrictEqual(validateText(text).violations, [])
    })
  )

  it.effect("replays to the same events, talks and hand-overs included", () =>
    Effect.gen(function* () {
      const { registry } = yield* TestTools.make()
      for (const turns of [
        ["chat", "Hello!"],
        ["chat", "TASK()", add, "It is 5."],
        ["nonsense", add, "It is 5."]
      ]) {
        const { text } = yield* routed(turns)
        const verdict = yield* replay(recordsOf(text), { tools: registry })
        assert.deepStrictEqual([verdict.same, verdict.divergence], [true, undefined], JSON.stringify(turns))
      }
    })
  )

  it.effect("of a talk that was stopped goes on as a task; of one that handed over, with the task's context", () =>
    Effect.gen(function* () {
      const { registry } = yield* TestTools.make()
      const cut = (text: string, type: string) => {
        const records = recordsOf(text)
        return records.slice(0, records.findLastIndex(({ event_type }) => event_type === type) + 1)
      }
      const again = (traces: ReadonlyArray<TraceRecord>) =>
        resume({ traces: [traces], tools: registry, trace: { content: true } }).pipe(
          Effect.provide(layerScripted({ turns: ["It is 5."] }))
        )
      const talked = yield* again(cut((yield* routed(["chat", "Hello!"])).text, "model_call_started"))
      assert.deepStrictEqual([talked.text, shape(talked)], ["It is 5.", ["system", "user", "assistant:final"]])
      const handed = yield* again(cut((yield* routed(["chat", "TASK()", add, "x"])).text, "tool_result_committed"))
      assert.deepStrictEqual(shape(handed), ["system", "user", "assistant:calls", "tool:add", "assistant:final"])
    })
  )
})
