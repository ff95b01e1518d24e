import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Agent from "../../src/effects/Agent.ts"
import { fromGrants } from "../../src/effects/Authority.ts"
import { Approval, type Approver, allowAll } from "../../src/effects/Policy.ts"
import { resume } from "../../src/effects/Resume.ts"
import { replay } from "../../src/effects/trace/Replay.ts"
import { readLine, type TraceRecord } from "../../src/effects/trace/TraceReader.ts"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import { layerScripted, MemoryTraces, type Script } from "../../src/testing.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { ToolContext, type ToolSettings } from "../../src/tools/ToolContext.ts"
import { call, lines } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

const records = (text: string): ReadonlyArray<TraceRecord> =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => readLine(Buffer.from(line)) as TraceRecord)

const trace = { content: true }
const ask = (task: string) => call("helper", { task })
const send = call("send", { to: "bob" })
const slowSend = call("slow_send", { to: "bob" })

/** An outer run's tools: some of the kit's, and one that is a run with some of the kit's. */
const made = Effect.fnUntraced(function* (inner: ReadonlyArray<string>, more: Partial<Agent.AgentToolOptions> = {}) {
  const { performed, registry } = yield* TestTools.make()
  const tools = yield* Registry.pick(registry, inner)
  const agent = yield* Agent.asTool({ name: "helper", description: "Does a task.", tools, ...more })
  const own = yield* Registry.pick(registry, ["add", "send"])
  return { agent, performed, tools: yield* Registry.merge(own, agent.registry) }
})

const allValid = Effect.gen(function* () {
  const memory = yield* MemoryTraces
  for (const id of memory.runs()) assert.deepStrictEqual(validateText(memory.text(id)).violations, [], id)
  return memory
})

const answers = (text: string) =>
  lines(text)
    .filter(({ event_type }) => event_type === "tool_result_committed" || event_type === "tool_result_uncommitted")
    .map(({ data }) => JSON.parse(String(data["answer"])) as Record<string, unknown>)

describe("a run as a tool of another", () => {
  it.effect("answers with the inner run's text, and each record names the other", () =>
    Effect.gen(function* () {
      const { agent, tools } = yield* made(["add"])
      const outcome = yield* Agent.run({ task: "t", tools, trace }).pipe(Effect.provide(agent.layer))
      assert.strictEqual(outcome.text, "They make 5.")
      const memory = yield* allValid
      assert.deepStrictEqual(memory.runs(), ["run-1", "run-1.call-0-0"])
      const outer = memory.text("run-1")
      assert.deepStrictEqual(answers(outer), [{ ok: true, result: "It is 5." }])
      const link = lines(outer).find(({ event_type }) => event_type === "child_run_started")
      assert.deepStrictEqual(link?.data, { call: "call-0-0", tool: "helper", run: "run-1.call-0-0", depth: 1 })
      const inner = lines(memory.text("run-1.call-0-0"))[0]
      assert.deepStrictEqual(inner?.data["parent"], { run: "run-1", call: "call-0-0", depth: 1 })
      assert.strictEqual(inner?.data["task"], "Add 2 and 3.")
      const verdict = yield* replay(records(outer), { tools })
      assert.deepStrictEqual([verdict.same, verdict.divergence], [true, undefined])
    }).pipe(
      Effect.provide(
        layerScripted({ turns: [ask("Add 2 and 3."), call("add", { a: 2, b: 3 }), "It is 5.", "They make 5."] })
      )
    )
  )

  it.effect("works without its layer where tools run in this thread", () =>
    Effect.gen(function* () {
      const { tools } = yield* made([])
      const outcome = yield* Agent.run({ task: "t", tools, trace })
      assert.strictEqual(outcome.text, "done")
      yield* allValid
    }).pipe(Effect.provide(layerScripted({ turns: [ask("Say hi."), "hi", "done"] })))
  )

  it.effect("reads where all that the inner run can do is read, and otherwise owes what its tools owe", () =>
    Effect.gen(function* () {
      const contract = Effect.fnUntraced(function* (...args: Parameters<typeof made>) {
        return (yield* made(...args)).agent.registry.tools[0]!.contract
      })
      assert.include(yield* contract(["add", "wait"]), { risk: "read", ledger: "none" })
      assert.include(yield* contract(["add", "save"]), { risk: "local-write", ledger: "external", retry: "never" })
      assert.include(yield* contract(["add", "send"]), { risk: "external", ledger: "external", retry: "never" })
      const sampling = { ledger: "none", retry: "never" } as const
      assert.include(yield* contract(["send"], { sampling: { temperature: 1 } }), sampling)
      assert.include(yield* contract(["send"], { phases: { tool: { temperature: 0.7 } } }), sampling)
      assert.include(yield* contract(["send"], { phases: { tool: { temperature: 0 } } }), { ledger: "external" })
    }).pipe(Effect.provide(layerScripted({ turns: [] })))
  )
})

describe("what the inner run is permitted", () => {
  const both = (outer: ReadonlyArray<string>, inner: ReadonlyArray<string> | undefined) =>
    Effect.gen(function* () {
      const grants = (names: ReadonlyArray<string>) =>
        fromGrants({
          scopes: "all",
          resources: names.map((name) => ({ verb: "execute" as const, pattern: `tool:${name}` }))
        })
      const more = inner === undefined ? {} : { gates: { authority: grants(inner) } }
      const { agent, performed, tools } = yield* made(["send"], more)
      const gates = { authority: grants(outer) }
      yield* Agent.run({ task: "t", tools, trace, gates }).pipe(Effect.provide(agent.layer))
      const runs = (yield* allValid).runs()
      // Where there is no inner run, what it was to say is said by the outer one.
      return runs.length === 1 ? undefined : performed
    }).pipe(
      Effect.provideService(Approval, allowAll),
      Effect.provide(layerScripted({ turns: [ask("Send it."), send, "inner", "outer"] }))
    )

  it.effect("is what both permit: neither the outer run nor its own grants alone are enough", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* both(["helper", "send"], ["send"]), ['send:{"to":"bob"}'])
      assert.deepStrictEqual(yield* both(["helper", "send"], undefined), ['send:{"to":"bob"}'])
      assert.deepStrictEqual(yield* both(["helper"], ["send"]), [])
      assert.deepStrictEqual(yield* both(["helper"], undefined), [])
      assert.deepStrictEqual(yield* both(["helper", "send"], []), [])
      assert.isUndefined(yield* both(["send"], ["send"]), "the outer run may not execute the tool at all")
    })
  )

  it.effect("asks whoever the outer run asks", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const { agent, performed, tools } = yield* made(["send"])
      const approver: Approver = {
        name: "test",
        decide: ({ tool }) => {
          asked.push(tool)
          return Effect.succeed(tool === "helper" ? "allow" : "deny")
        }
      }
      yield* Agent.run({ task: "t", tools, trace }).pipe(
        Effect.provide(agent.layer),
        Effect.provideService(Approval, approver)
      )
      assert.deepStrictEqual([asked, performed], [["helper", "send"], []])
      yield* allValid
    }).pipe(Effect.provide(layerScripted({ turns: [ask("Send it."), send, "inner", "outer"] })))
  )

  it.effect("reaches what the outer run reaches, unless something else is said", () =>
    Effect.gen(function* () {
      const looks = Effect.fnUntraced(function* (settings: Partial<ToolSettings> | undefined) {
        const seen: Array<Partial<ToolSettings>> = []
        const look = yield* Registry.fromDynamic([
          {
            name: "look",
            description: "Looks around.",
            schema: { type: "object", properties: {} },
            contract: { risk: "read" },
            run: () => Effect.map(ToolContext, ({ settings }) => void seen.push(settings))
          }
        ])
        const more = settings === undefined ? {} : { settings }
        const agent = yield* Agent.asTool({ name: "helper", description: "Does a task.", tools: look, ...more })
        yield* Agent.run({
          task: "t",
          tools: agent.registry,
          trace,
          settings: { workspace: "/outer", fixtures: { a: "1" } }
        }).pipe(Effect.provide(agent.layer))
        return seen[0]
      })
      const turns = [ask("Look."), call("look", {}), "inner", "outer"]
      const scripted = Effect.provide(layerScripted({ turns }))
      assert.include(yield* scripted(looks(undefined)), { workspace: "/outer" })
      assert.deepStrictEqual((yield* scripted(looks(undefined)))?.fixtures, { a: "1" })
      assert.include(yield* scripted(looks({ workspace: "/inner" })), { workspace: "/inner" })
    })
  )

  it.effect("can begin where the outer run samples each turn several times and the inner one does not sample", () =>
    Effect.gen(function* () {
      const { agent, tools } = yield* made([])
      const gates = { candidates: 2 }
      const running = Agent.run({ task: "t", tools, trace, gates, sampling: { temperature: 1 } })
      yield* Effect.provide(running, agent.layer)
      const memory = yield* allValid
      assert.include(memory.runs(), "run-1.call-0-0")
      assert.deepStrictEqual(answers(memory.text("run-1"))[0], { ok: true, result: "inner" })
    }).pipe(
      Effect.provide(layerScripted({ turns: [ask("Do."), ask("Do."), ask("Do."), "inner", "outer", "outer", "outer"] }))
    )
  )

  it.effect("records no content where the outer run does not", () =>
    Effect.gen(function* () {
      const { agent, tools } = yield* made([])
      yield* Agent.run({ task: "t", tools }).pipe(Effect.provide(agent.layer))
      const memory = yield* allValid
      assert.notInclude(memory.text("run-1.call-0-0"), "canary")
    }).pipe(Effect.provide(layerScripted({ turns: [ask("canary"), "canary", "done"] })))
  )
})

describe("what the inner run may cost", () => {
  it.effect("has limits of its own, and reaching one is a failed call with the reason", () =>
    Effect.gen(function* () {
      const { agent, tools } = yield* made(["add"], { limits: { modelTurns: 1 } })
      const outcome = yield* Agent.run({ task: "t", tools, trace }).pipe(Effect.provide(agent.layer))
      assert.strictEqual(outcome.text, "sorry")
      const memory = yield* allValid
      const [answer] = answers(memory.text("run-1"))
      assert.include(answer, { ok: false, kind: "execution_failed" })
      assert.match(JSON.stringify(answer), /limit of model turns \(run run-1\.call-0-0\)/)
    }).pipe(Effect.provide(layerScripted({ turns: [ask("Add."), call("add", { a: 1, b: 1 }), "sorry"] })))
  )

  it.effect("never has more time than is left of the outer run, and says so in its own record", () =>
    Effect.gen(function* () {
      const { agent, tools } = yield* made([])
      const running = Agent.run({ task: "t", tools, trace, limits: { wallMillis: 10_000 } }).pipe(
        Effect.provide(agent.layer)
      )
      const fiber = yield* Effect.forkChild(running, { startImmediately: true })
      yield* TestClock.adjust("9600 millis")
      const memory = yield* MemoryTraces
      const inner = lines(memory.text("run-1.call-0-0"))
      assert.isAtMost(Number((inner[0]!.data["limits"] as Record<string, number>)["wallMillis"]), 9_500)
      assert.strictEqual(inner.at(-1)?.event_type, "run_terminated")
      assert.strictEqual(inner.at(-1)?.data["limit_hit"], "wall_time")
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(fiber)
      yield* allValid
    }).pipe(Effect.provide(layerScripted({ turns: [ask("Wait."), { text: "never", prefillMillis: 60_000 }, "outer"] })))
  )

  it.effect("tells what kind of end it was: a question, a broken engine", () =>
    Effect.gen(function* () {
      const said = Effect.fnUntraced(function* (inner: Parameters<typeof layerScripted>[0]["turns"][number]) {
        return yield* Effect.gen(function* () {
          const { agent, tools } = yield* made(["clarify"])
          yield* Agent.run({ task: "t", tools, trace }).pipe(Effect.provide(agent.layer))
          return JSON.stringify(answers((yield* allValid).text("run-1"))[0])
        }).pipe(Effect.provide(layerScripted({ turns: [ask("Do."), inner, "outer"] })))
      })
      assert.match(yield* said(call("clarify", { question: "Which file?" })), /it needs to know: Which file\?/)
      assert.match(yield* said({ text: "x", fault: { before: 0, kind: "failed" } }), /it failed \(engine\)/)
    })
  )

  it.effect("goes no deeper than it may", () =>
    Effect.gen(function* () {
      const { registry } = yield* TestTools.make()
      let tools = yield* Registry.pick(registry, ["add"])
      const layers: Array<Agent.AgentTool["layer"]> = []
      for (let depth = 0; depth < 4; depth++) {
        const agent = yield* Agent.asTool({ name: "helper", description: "Does a task.", tools, maxDepth: 2 })
        layers.push(agent.layer)
        tools = agent.registry
      }
      const all = layers.reduce((below, layer) => Layer.provideMerge(layer, below) as never)
      const outcome = yield* Agent.run({ task: "t", tools, trace }).pipe(Effect.provide(all))
      assert.strictEqual(outcome.text, "outer")
      const memory = yield* allValid
      assert.deepStrictEqual(memory.runs(), ["run-1", "run-1.call-0-0", "run-1.call-0-0.call-0-0"])
      const [answer] = answers(memory.text("run-1.call-0-0.call-0-0"))
      assert.match(JSON.stringify(answer), /2 deep already/)
    }).pipe(Effect.provide(layerScripted({ turns: [ask("1"), ask("2"), ask("3"), "third", "second", "outer"] })))
  )
})

describe("an inner run and the end of the outer one", () => {
  it.effect("is cancelled with it, and closes its record", () =>
    Effect.gen(function* () {
      const { agent, tools } = yield* made([])
      const pool = yield* Layer.build(agent.layer)
      const handle = yield* Agent.start({ task: "t", tools, trace }).pipe(Effect.provideContext(pool))
      yield* Stream.runForEachWhile(handle.events, (event) => Effect.sync(() => event._tag !== "CallStarted"))
      yield* TestClock.adjust(10)
      yield* handle.cancel
      const { stop } = yield* handle.outcome
      assert.deepStrictEqual(stop, { _tag: "Cancelled", at: "tool" })
      const memory = yield* allValid
      assert.strictEqual(lines(memory.text("run-1.call-0-0")).at(-1)?.event_type, "run_cancelled")
    }).pipe(
      Effect.scoped,
      Effect.provide(layerScripted({ turns: [ask("Wait."), { text: "x", prefillMillis: 60_000 }] }))
    )
  )

  it.effect("does not repeat an effect when the outer run goes on after it broke off in the middle", () =>
    Effect.gen(function* () {
      const { agent, performed, tools } = yield* made(["send"])
      const pool = yield* Layer.build(agent.layer)
      const handle = yield* Agent.start({ task: "t", tools, trace }).pipe(Effect.provideContext(pool))
      yield* Stream.runForEachWhile(handle.events, (event) => Effect.sync(() => event._tag !== "CallStarted"))
      yield* TestClock.adjust(10)
      const memory = yield* MemoryTraces
      assert.deepStrictEqual(performed, ['send:{"to":"bob"}'])
      yield* handle.cancel
      yield* handle.outcome
      const left = records(memory.text("run-1"))
      const ended = left.find(({ event_type }) => event_type === "tool_execution_finished")
      assert.strictEqual(ended?.data["effect"], "unknown", "nobody knows what the outer call came to")
      const again = yield* Effect.forkChild(
        resume({ traces: [left], tools, trace }).pipe(Effect.provideContext(pool)),
        { startImmediately: true }
      )
      // A lost attempt is asked about again after a pause.
      yield* TestClock.adjust("5 minutes")
      assert.strictEqual((yield* Fiber.join(again)).text, "outer")
      assert.deepStrictEqual(performed, ['send:{"to":"bob"}'])
      const second = lines(memory.text("run-1.call-0-0-r2"))
      assert.isTrue(second.some(({ data, event_type }) => event_type === "effect_settled" && data["replayed"] === true))
      yield* allValid
    }).pipe(
      Effect.scoped,
      Effect.provideService(Approval, allowAll),
      Effect.provide(
        layerScripted({
          turns: [ask("Send it."), send, { text: "lost", prefillMillis: 600_000 }, send, "inner", "outer"]
        })
      )
    )
  )

  it.effect("is not tried again when nobody knows what its effects came to: the outer run is escalated at once", () =>
    Effect.gen(function* () {
      const { agent, performed, tools } = yield* made(["slow_send"])
      for (const layer of [agent.layer, Layer.empty]) {
        performed.length = 0
        const running = Agent.run({ task: "t", tools, trace, limits: { toolMillis: 10_000 } })
        const fiber = yield* Effect.forkChild(Effect.provide(running, layer), { startImmediately: true })
        // The inner run has no more time than this, and what it sends has not arrived by then.
        yield* TestClock.adjust("10 seconds")
        yield* TestClock.adjust("5 minutes")
        const { runId, stop } = yield* Fiber.join(fiber)
        assert.strictEqual(stop._tag, "Escalated")
        assert.deepStrictEqual(performed, ['slow_send:{"to":"bob"}'])
        const memory = yield* allValid
        assert.deepStrictEqual(
          memory.runs().filter((id) => id.startsWith(runId)),
          [runId, `${runId}.call-0-0`]
        )
        const verdict = yield* replay(records(memory.text(runId)), { tools })
        assert.deepStrictEqual([verdict.same, verdict.divergence], [true, undefined])
      }
    }).pipe(
      Effect.provideService(Approval, allowAll),
      Effect.provide(layerScripted({ turns: [ask("Send it."), slowSend, ask("Send it."), slowSend, slowSend] }))
    )
  )

  /** An outer run that was cancelled in the middle of its call, and goes on. */
  const brokenOff = (more: Partial<Agent.AgentToolOptions>, last: Script["turns"][number] = "inner") =>
    Effect.gen(function* () {
      const { agent, performed, tools } = yield* made(["send"], more)
      const pool = yield* Layer.build(agent.layer)
      const handle = yield* Agent.start({ task: "t", tools, trace }).pipe(Effect.provideContext(pool))
      yield* Stream.runForEachWhile(handle.events, (event) => Effect.sync(() => event._tag !== "CallStarted"))
      yield* TestClock.adjust(10)
      yield* handle.cancel
      yield* handle.outcome
      const memory = yield* MemoryTraces
      const outcome = yield* resume({ traces: [records(memory.text("run-1"))], tools, trace }).pipe(
        Effect.provideContext(pool)
      )
      assert.deepStrictEqual(performed, ['send:{"to":"bob"}'])
      return { outcome, memory: yield* allValid }
    }).pipe(
      Effect.scoped,
      Effect.provideService(Approval, allowAll),
      Effect.provide(
        layerScripted({
          turns: [ask("Send it."), send, { text: "lost", prefillMillis: 600_000 }, send, last, "outer"]
        })
      )
    )

  it.effect(
    "is not performed again where the inner run samples, as a whole or in a phase: it might do something else",
    () =>
      Effect.gen(function* () {
        for (const more of [{ sampling: { temperature: 1 } }, { phases: { plan: { temperature: 1 } } }]) {
          const { memory, outcome } = yield* brokenOff(more)
          assert.strictEqual(outcome.stop._tag, "Escalated", JSON.stringify(more))
          assert.deepStrictEqual(memory.runs(), ["run-1", "run-1.call-0-0", "run-1-r2"])
        }
      })
  )

  it.effect("tells of what is left, also where the ledger knew of it and nothing was done anew", () =>
    Effect.gen(function* () {
      const { memory } = yield* brokenOff({}, { text: "x", fault: { before: 0, kind: "failed" } })
      const ended = lines(memory.text("run-1-r2")).find(({ event_type }) => event_type === "tool_execution_finished")
      assert.include(ended?.data, { ok: false, failure_kind: "execution_failed", effect: "present" })
    })
  )
})
