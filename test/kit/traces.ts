/** Good traces of runs of every shape, made by the loop itself. Each is what the validator must accept. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Agent from "../../src/effects/Agent.ts"
import type { AgentEvent } from "../../src/effects/AgentEvent.ts"
import { Approval, type Approver, allowAll, suspendAll } from "../../src/effects/Policy.ts"
import { resume } from "../../src/effects/Resume.ts"
import { Lines } from "../../src/effects/trace/TraceReader.ts"
import type { Script } from "../../src/engine/ScriptedModel.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { answered, routed } from "./routes.ts"
import { type KitOptions, play, playUntil } from "./run.ts"
import { call, calls } from "./script.ts"
import * as TestTools from "./tools.ts"

const add = (a: number) => call("add", { a, b: 1 })
const bad = "<tool_call>\n{\n</tool_call>"

type Traced = Effect.Effect<string, unknown, Scope.Scope>

const run = (turns: Script["turns"], options: KitOptions = {}, approver?: Approver): Traced => {
  const played = Effect.map(play(turns, options), ({ text }) => text)
  return approver === undefined ? played : Effect.provideService(played, Approval, approver)
}

/** Runs while the clock moves on by `millis`. */
const timed = (turns: Script["turns"], millis: number, options: KitOptions = {}): Traced =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(run(turns, options), { startImmediately: true })
    yield* TestClock.adjust(millis)
    return yield* Fiber.join(fiber)
  })

const until = (
  turns: Script["turns"],
  when: (event: AgentEvent) => boolean,
  options: KitOptions & { readonly afterwards?: Effect.Effect<void> } = {},
  approver?: Approver
): Traced => {
  const played = Effect.map(playUntil(turns, when, options), ({ text }) => text)
  return approver === undefined ? played : Effect.provideService(played, Approval, approver)
}

const enters = (state: string) => (event: AgentEvent) => event._tag === "StateEntered" && event.state === state

/** Two tasks in one session; the first is cancelled in a tool, the second answers for it first. The trace of either. */
const second = (which: 1 | 2): Traced =>
  Effect.gen(function* () {
    const { registry } = yield* TestTools.make()
    const session = yield* Agent.session({ tools: registry })
    const handle = yield* Agent.startIn(session, "first", { trace: { content: true } })
    yield* TestClock.adjust(10)
    yield* handle.cancel
    yield* handle.outcome
    yield* Agent.runIn(session, "second", { trace: { content: true } })
    return (yield* MemoryTraces).text(`run-${which}`)
  }).pipe(Effect.scoped, Effect.provide(layerScripted({ turns: [call("wait", { millis: 60_000 }), "hello"] })))

/** Three tasks in one session, of which the third, or its turn, does not fit beside the first two. Its trace. */
const compactedTask = (what: "task" | "turn"): Traced =>
  Effect.gen(function* () {
    const limits = { outputTokens: 16 }
    const tasks = (count: number) =>
      Effect.gen(function* () {
        const { registry } = yield* TestTools.make()
        const session = yield* Agent.session({ tools: registry })
        const options = { trace: { content: true }, limits, context: { onFull: "compact" } } as const
        for (let at = 0; at < count; at++) yield* Agent.runIn(session, `task ${at} ${"x".repeat(100)}`, options)
        return { length: yield* session.context.length, text: (yield* MemoryTraces).text(`run-${count}`) }
      }).pipe(Effect.scoped)
    const turns = ["one", "two", "three"]
    const { length } = yield* tasks(what === "task" ? 2 : 3).pipe(Effect.provide(layerScripted({ turns })))
    const contextTokens = what === "task" ? length + 20 : length
    return (yield* tasks(3).pipe(Effect.provide(layerScripted({ turns, contextTokens })))).text
  })

/** A run that is stopped when `when` sees its event, and then resumed. The traces of both parts. */
const resumedParts = (turns: Script["turns"], when: (event: AgentEvent) => boolean, answer?: string) =>
  Effect.gen(function* () {
    const { registry } = yield* TestTools.make()
    const options = { tools: registry, trace: { content: true } }
    const handle = yield* Agent.start({ task: "the task", system: "S", ...options })
    yield* Stream.runForEachWhile(handle.events, (event) => Effect.sync(() => !when(event)))
    yield* handle.cancel
    yield* handle.outcome
    const memory = yield* MemoryTraces
    const lines = new Lines()
    const items = lines.push(Buffer.from(memory.text("run-1")))
    const first = items.flatMap((item) => (item._tag === "Event" ? [item.record] : []))
    const { runId } = yield* resume({ ...options, traces: [first], ...(answer === undefined ? {} : { answer }) })
    return { first: memory.text("run-1"), second: memory.text(runId) }
  }).pipe(Effect.scoped, Effect.provideService(Approval, allowAll), Effect.provide(layerScripted({ turns })))

/** A run, or the one inside it that one of its calls was. */
const inside = (which: "run-1" | "run-1.call-0-0"): Traced =>
  Effect.gen(function* () {
    const { registry } = yield* TestTools.make()
    const tools = yield* Registry.pick(registry, ["add"])
    const agent = yield* Agent.asTool({ name: "helper", description: "Helps.", tools })
    const options = { task: "the task", tools: agent.registry, trace: { content: true } }
    yield* Agent.run(options).pipe(Effect.provide(agent.layer))
    return (yield* MemoryTraces).text(which)
  }).pipe(Effect.provide(layerScripted({ turns: [call("helper", { task: "help" }), add(1), "It is 2.", "done"] })))

/** Runs that were resumed, both parts. */
export const resumedRuns = {
  "resumed in a turn with one call done": resumedParts(
    [calls(["send", { to: "ann" }], ["slow_send", { to: "bob" }], ["add", { a: 1, b: 1 }]), "done"],
    (event) => event._tag === "CallStarted" && event.tool === "slow_send"
  ),
  "resumed in generation": resumedParts(
    [add(1), { text: ["a", "b"], millisPerToken: 100 }, "done"],
    (event) => event._tag === "StateEntered" && event.state === "Generating" && event.turn === 1
  ),
  "resumed with an answer": resumedParts(
    [call("clarify", { question: "Which?" }), "that one"],
    (event) => event._tag === "Finished",
    "This one."
  ),
  "resumed with an answer to a question that was said": resumedParts(
    [`CLARIFY("Which?")\n${add(1)}`, "that one"],
    (event) => event._tag === "Finished",
    "This one."
  )
}

/** The trace of the second part. */
const resumed = (name: keyof typeof resumedRuns): Traced => Effect.map(resumedRuns[name], ({ second }) => second)

/** A tool that outlives its deadline and answers before the run ends. */
const late: Traced = Effect.gen(function* () {
  const slow = { text: ["so", "rry"], millisPerToken: 400 }
  const options = { limits: { toolMillis: 150 } }
  const fiber = yield* Effect.forkChild(run([call("wait", { millis: 500 }), slow], options), { startImmediately: true })
  yield* TestClock.adjust(150)
  yield* TestClock.adjust(350)
  yield* TestClock.adjust(10_000)
  return yield* Fiber.join(fiber)
})

const never: Approver = { name: "slow", decide: () => Effect.never }

/** By what is particular about them. */
export const good = {
  "a talk": Effect.map(routed(["chat", "Hello!"]), ({ text }) => text),
  "a talk, no content": Effect.map(routed(["chat", "Hello!"], { trace: {} }), ({ text }) => text),
  "handed over": Effect.map(routed(["chat", "TASK()", add(1), "It is 2."]), ({ text }) => text),
  "routed to a task": Effect.map(routed(["a chat or a task", "fine"]), ({ text }) => text),
  "a question that is said": run([add(1), 'CLARIFY("Which?")']),
  "a question beside a call": run([`CLARIFY("Which?")\n${add(1)}`]),
  "a question that is none": run(['CLARIFY("Which?") CLARIFY("What?")', "sorry"]),
  "answered in the session": Effect.map(
    answered([add(1), 'CLARIFY("Which?")', add(2), "done"], "This."),
    ({ texts }) => texts[1]
  ),
  "a call answered in the session": Effect.map(
    answered([call("clarify", { question: "Which?" }), add(2), "done"], "This."),
    ({ texts }) => texts[1]
  ),
  "resumed with an answer to a question that was said": resumed("resumed with an answer to a question that was said"),
  "one tool": run([add(1), "It is 2."]),
  "one tool, no content": run([add(1), "It is 2."], { trace: { content: false } }),
  "token events": run([add(1), { text: ["It ", "is ", "2."] }], { trace: { content: true, tokenEvents: true } }),
  "token events, no content": run([{ text: ["It ", "is ", "2."] }], { trace: { content: false, tokenEvents: true } }),
  "final answer": run(["Hello."]),
  redacted: run(
    [call("add", { a: "Sq9-1" }), calls(["save", { name: "Sq9.txt", content: "x" }], ["Sq9-2", {}]), add(1), "Sq9-3"],
    {
      task: "Sq9-4",
      trace: { content: true, redact: [{ name: "secret", pattern: "Sq9(?:-\\d)?" }] }
    }
  ),
  "three turns": run([add(1), add(2), "done"]),
  "two calls": run([calls(["add", { a: 1, b: 1 }], ["add", { a: 2, b: 2 }]), "ok"]),
  "parallel reads": run([calls(["wait", { millis: 0 }], ["add", { a: 2, b: 2 }]), "ok"], { calls: "parallel" }),
  "parallel reads that wait": timed([calls(["wait", { millis: 20 }], ["wait", { millis: 10 }]), "ok"], 20, {
    calls: "parallel"
  }),
  "single call policy": run([calls(["add", { a: 1, b: 1 }], ["add", { a: 2, b: 2 }]), "ok"], { calls: "single" }),
  "failing tool": run([call("broken", { how: "error" }), "sorry"]),
  "crashing tool": run([call("broken", { how: "defect" }), "sorry"]),
  "unknown tool": run([call("subtract", {}), "sorry"]),
  "unknown tool, no content": run([call("subtract", {}), "sorry"], { trace: { content: false } }),
  "invalid arguments": run([call("add", { a: "x", c: 1 }), "sorry"]),
  "invalid arguments, no content": run([call("add", { a: "x", c: 1 }), "sorry"], { trace: { content: false } }),
  malformed: run([bad, "sorry"]),
  "malformed, no content": run([bad, "sorry"], { trace: { content: false } }),
  "empty turn": run(["", "ok"]),
  denied: run([call("send", { to: "bob" }), "could not"]),
  approved: run([call("send", { to: "bob" }), "done"], {}, allowAll),
  "approved, no content": run([call("send", { to: "bob" }), "done"], { trace: { content: false } }, allowAll),
  suspended: run([calls(["add", { a: 1, b: 1 }], ["send", { to: "bob" }])], {}, suspendAll),
  "needs input": run([call("clarify", { question: "Which file?" })]),
  artifact: run([call("save", { name: "a.txt", content: "hi" }), "saved"]),
  "artifact, no content": run([call("save", { name: "a.txt", content: "hi" }), "saved"], { trace: { content: false } }),
  "long result": run([call("long", { length: 50_000 }), "ok"], { limits: { resultBytes: 1_000 } }),
  "long result, no content": run([call("long", { length: 50_000 }), "ok"], {
    limits: { resultBytes: 1_000 },
    trace: { content: false }
  }),
  "engine opened again": run([
    add(1),
    { text: ["He", "llo"], fault: { before: 1, kind: "restarted" } },
    { text: ["He", "llo"], fault: { before: 0, kind: "restarted" } },
    "ok"
  ]),
  "engine failure": run([{ text: ["He", "llo"], fault: { before: 1, kind: "lost" } }]),
  "script that runs out": run([add(1)]),
  "model turns": run([add(1), add(2), "never"], { limits: { modelTurns: 2 } }),
  "no model turns": run(["never"], { limits: { modelTurns: 0 } }),
  "tool calls across turns": run([add(1), add(2), add(3)], { limits: { toolCalls: 2 } }),
  "tool calls in a turn": run([calls(["add", { a: 1, b: 1 }], ["add", { a: 2, b: 2 }], ["add", { a: 3, b: 3 }])], {
    limits: { toolCalls: 2 }
  }),
  "no wall time": run(["never"], { limits: { wallMillis: 0 } }),
  "wall time in generation": timed([{ text: ["a", "b", "c"], millisPerToken: 1_000 }], 1_500, {
    limits: { wallMillis: 1_500 }
  }),
  "wall time in a tool": timed([call("wait", { millis: 60_000 })], 5_000, { limits: { wallMillis: 5_000 } }),
  "tool deadline": timed([call("wait", { millis: 10_000 }), "ok"], 150, { limits: { toolMillis: 150 } }),
  "late outcome": late,
  "continued answer": run([{ text: ["one ", "two ", "three "] }, { text: ["three ", "four"] }], {
    limits: { outputTokens: 2 }
  }),
  "half an answer": run([{ text: ["a", "b", "c"] }, { text: ["a", "b", "c"] }], { limits: { outputTokens: 2 } }),
  repairs: run([bad, call("nope", {}), bad, "never"], { limits: { repairs: 2 } }),
  "repairs by refusals": run([call("nope", {}), call("nope", {}), "never"], { limits: { repairs: 1 } }),
  "repairs with a call between": run([bad, add(1), bad, add(2), "done"], { limits: { repairs: 1 } }),
  loop: run([add(1), add(1), add(1), "never"]),
  "no room": run(["never"], { script: { contextTokens: 700 }, task: "x".repeat(800) }),
  "cancelled in prefill": until([{ text: "Hello", prefillMillis: 1_000 }], enters("Generating")),
  "cancelled in generation": until([{ text: ["He", "llo ", "you"], millisPerToken: 100 }], enters("Generating"), {
    afterwards: TestClock.adjust(250)
  }),
  "cancelled in a tool": until(
    [calls(["wait", { millis: 60_000 }], ["add", { a: 1, b: 1 }]), "never"],
    (event) => event._tag === "CallStarted"
  ),
  "cancelled in an external tool": until(
    [call("slow_send", { to: "bob" })],
    (event) => event._tag === "CallStarted",
    {},
    allowAll
  ),
  "cancelled while asked": until(
    [call("send", { to: "bob" })],
    enters("Admitting"),
    { afterwards: Effect.yieldNow },
    never
  ),
  "resumed in a turn with one call done": resumed("resumed in a turn with one call done"),
  "resumed in generation": resumed("resumed in generation"),
  "resumed with an answer": resumed("resumed with an answer"),
  "around another run": inside("run-1"),
  "inside another run": inside("run-1.call-0-0"),
  "a session's first task": second(1),
  "a session's second task": second(2),
  "a session's third task, compacted": compactedTask("task"),
  "a session's third task, compacted in its turn": compactedTask("turn")
} satisfies Readonly<Record<string, Traced>>

export type GoodName = keyof typeof good
