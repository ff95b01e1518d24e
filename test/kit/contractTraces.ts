/** Good traces of calls with contracts in full: prices, second looks, lost answers, retries, looks, escalations, dry runs. */
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Agent from "../../src/effects/Agent.ts"
import { Approval, type Approver, allowAll, denyAll } from "../../src/effects/Policy.ts"
import { cautious, exploratory } from "../../src/effects/Profile.ts"
import { resume } from "../../src/effects/Resume.ts"
import type { RunOptions } from "../../src/effects/Run.ts"
import { Lines, type TraceRecord } from "../../src/effects/trace/TraceReader.ts"
import { layerScripted, MemoryTraces, ScriptedSessions } from "../../src/testing.ts"
import * as Contract from "../../src/tools/Contract.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { holds, pending } from "../../src/tools/Terms.ts"
import { ToolError } from "../../src/tools/ToolError.ts"
import { acts } from "./contracts.ts"
import { call, calls } from "./script.ts"

/** What the world does next: each list is used up from its beginning, and where it is empty everything is well. */
export interface World {
  /** How attempts to act end. */
  readonly acting: Array<"lost" | "done">
  /** What looking for an effect finds. */
  readonly looking: Array<"present" | "absent" | "unclear">
  /** Whether the precondition holds. */
  readonly ready: Array<boolean>
  /** Whether the promise is decided yet. */
  readonly settled: Array<boolean>
}

const parameters = Schema.Struct({ to: Schema.String, worth: Schema.optionalKey(Schema.Finite) })

const sees = { source: "probe", describes: "the account is looked at" } as const

/** Tools over one world. */
const make = Effect.fnUntraced(function* (world: World) {
  const act = Effect.suspend(() =>
    world.acting.shift() === "lost"
      ? Effect.fail(new ToolError({ kind: "unavailable", message: "no answer", effect: "unknown" }))
      : Effect.succeed("done")
  )
  const tool = <const N extends string>(name: N) =>
    Tool.make(name, { description: `Does ${name}.`, parameters, success: Schema.String })
  const keyed = { ledger: "external", retry: "safe", evidence: sees } as const
  const Pay = acts("external", tool("pay"), {
    ...keyed,
    compensation: "refund",
    touches: ({ to }) => [{ verb: "send", resource: `account:${to}` }],
    pre: () =>
      Effect.sync(() => (world.ready.shift() === false ? [{ path: "to", reason: "the account is closed" }] : [])),
    post: () => Effect.sync(() => holds({ balance: 1 }))
  })
  const Refund = acts("external", tool("refund"), { ...keyed, post: () => Effect.sync(() => holds()) })
  const Order = acts("local-write", tool("order"), {
    cost: ({ worth }) => worth ?? 1,
    hazard: ({ worth }) => (worth === undefined ? 0.5 : worth / 4)
  })
  const Book = acts("local-write", tool("book"), {
    ledger: "observe",
    retry: "safe",
    evidence: sees,
    post: () => Effect.sync(() => holds()),
    probe: () =>
      Effect.sync(() => {
        const found = world.looking.shift() ?? "unclear"
        if (found === "present") return { _tag: "Present", result: "done" } as const
        return found === "absent" ? ({ _tag: "Absent" } as const) : ({ _tag: "Unclear" } as const)
      })
  })
  const Deploy = acts("local-write", tool("deploy"), {
    settle: { everyMillis: 100, withinMillis: 1_000 },
    post: () => Effect.sync(() => (world.settled.shift() === false ? pending() : holds({ up: true })))
  })
  const Ask = Contract.declare(tool("ask"), { risk: "read", retry: "safe" })
  const toolkit = Toolkit.make(Pay, Refund, Order, Book, Deploy, Ask)
  return yield* Registry.fromToolkit(toolkit, {
    pay: () => act,
    refund: () => act,
    order: () => act,
    book: () => act,
    deploy: () => act,
    ask: () =>
      Effect.suspend(() =>
        world.acting.shift() === "lost"
          ? Effect.fail(new ToolError({ kind: "unavailable", message: "nobody there" }))
          : Effect.succeed("yes")
      )
  })
})

interface Played extends RunOptions {
  /** When the run is cancelled, in virtual milliseconds. */
  readonly cancelAt?: number
  readonly world?: Partial<World>
  readonly approver?: Approver
}

const plain = { trace: { content: true }, system: "S" }

const worldOf = ({ acting = [], looking = [], ready = [], settled = [] }: Partial<World> = {}): World => ({
  acting: [...acting],
  looking: [...looking],
  ready: [...ready],
  settled: [...settled]
})

/** Runs to its end under virtual time; the text of its trace. */
const played = (turns: ReadonlyArray<string>, { approver = allowAll, cancelAt, world, ...options }: Played = {}) =>
  Effect.gen(function* () {
    const tools = yield* make(worldOf(world))
    const handle = yield* Agent.start({ task: "the task", tools, ...plain, ...options })
    const fiber = yield* Effect.forkChild(handle.outcome, { startImmediately: true })
    yield* TestClock.adjust(cancelAt ?? "10 minutes")
    if (cancelAt !== undefined) yield* handle.cancel
    yield* Fiber.join(fiber)
    return (yield* MemoryTraces).text(handle.runId)
  }).pipe(Effect.scoped, Effect.provideService(Approval, approver), Effect.provide(layerScripted({ turns })))

/** What a run, or one that goes on from the first events of another, has put before the model, and its trace. */
export const contextOf = (
  turns: ReadonlyArray<string>,
  { approver = allowAll, cancelAt: _, world, ...options }: Played,
  before?: ReadonlyArray<TraceRecord>
) =>
  Effect.gen(function* () {
    const tools = yield* make(worldOf(world))
    const run =
      before === undefined
        ? Agent.run({ task: "the task", tools, ...plain, ...options })
        : resume({ tools, ...plain, ...options, traces: [before] })
    const fiber = yield* Effect.forkChild(run, { startImmediately: true })
    yield* TestClock.adjust("10 minutes")
    const { runId, stop } = yield* Fiber.join(fiber)
    const context = (yield* ScriptedSessions).map((log) => log.committed()).join("")
    return { context, stop, text: (yield* MemoryTraces).text(runId) }
  }).pipe(Effect.scoped, Effect.provideService(Approval, approver), Effect.provide(layerScripted({ turns })))

/** A run whose effect was lost, and the run that goes on with it, in the same ledger. */
const continued = (turns: ReadonlyArray<string>, { approver = allowAll, world, ...options }: Played = {}) =>
  Effect.gen(function* () {
    const tools = yield* make(worldOf(world))
    const first = yield* Effect.forkChild(Agent.run({ task: "the task", tools, ...plain, ...options }), {
      startImmediately: true
    })
    yield* TestClock.adjust("10 minutes")
    const before = yield* Fiber.join(first)
    const memory = yield* MemoryTraces
    const items = new Lines().push(Buffer.from(memory.text(before.runId)))
    const records = items.flatMap((item) => (item._tag === "Event" ? [item.record] : []))
    const second = yield* Effect.forkChild(resume({ tools, ...plain, ...options, traces: [records] }), {
      startImmediately: true
    })
    yield* TestClock.adjust("10 minutes")
    const { runId } = yield* Fiber.join(second)
    return { first: memory.text(before.runId), second: memory.text(runId) }
  }).pipe(Effect.scoped, Effect.provideService(Approval, approver), Effect.provide(layerScripted({ turns })))

const harmless = { gates: { profile: { ...exploratory, evidence: "observable" as const } } }
const pay = call("pay", { to: "ann" })
const book = call("book", { to: "ann" })

/** Runs that were left to a person and resumed: both parts. */
export const continuedRuns = {
  "escalated, then resumed": continued([book, "done"], {
    world: { acting: ["lost"], looking: ["unclear", "unclear", "unclear", "unclear", "present"] }
  }),
  "escalated, then tried again": continued([pay, "done"], {
    gates: { retry: { attempts: 1, delayMillis: 1_000, factor: 2 }, profile: cautious },
    world: { acting: ["lost", "done"] }
  })
}

const secondOf = (name: keyof typeof continuedRuns) => Effect.map(continuedRuns[name], ({ second }) => second)

/** The tools of these runs, over a world of which nothing may be asked. */
export const contractedTools = make(
  new Proxy({} as World, {
    get: (_, name) => {
      throw new Error(`${String(name)}: the world was asked`)
    }
  })
)

/** By what is particular about them. */
export const contracted = {
  "paid and undone": played([pay, call("refund", { to: "ann" }), "done"]),
  "worth it": played([call("order", { to: "x" }), "done"]),
  "not worth it": played([call("order", { to: "x", worth: 9 }), "too dear"]),
  sampled: played(
    [
      call("order", { to: "x", worth: 4 }),
      call("order", { to: "y", worth: 2 }),
      call("order", { to: "y", worth: 2 }),
      "a",
      "b",
      "a"
    ],
    {
      gates: { candidates: 2 },
      sampling: { temperature: 0.5 }
    }
  ),
  "not worth it, no content": played([call("order", { to: "x", worth: 9 }), "too dear"], { trace: { content: false } }),
  "not ready": played([pay, "closed"], { world: { ready: [false] } }),
  "no longer ready": played([pay, "closed"], { world: { ready: [true, false] } }),
  "approval that expired": played([calls(["pay", { to: "ann" }], ["pay", { to: "bob" }]), "late"], {
    gates: { approvalMillis: 10 },
    approver: { name: "slow", decide: () => Effect.delay(Effect.succeed("allow" as const), 20) }
  }),
  "denied twice": played([pay, pay, "no"], { approver: denyAll }),
  "proposed twice": played([pay, call("ask", { to: "x" }), pay, "done"]),
  "retried by key": played([pay, "done"], { world: { acting: ["lost", "lost", "done"] } }),
  "cancelled before another try": played([pay, "never"], { world: { acting: ["lost"] }, cancelAt: 500 }),
  "cancelled while accepted": played([call("deploy", { to: "x" }), "never"], {
    world: { settled: Array.from({ length: 9 }, () => false) },
    cancelAt: 250
  }),
  "retried until nobody knows": played([pay, "never"], { world: { acting: ["lost", "lost", "lost", "lost"] } }),
  "retried read": played([call("ask", { to: "x" }), "done"], { ...harmless, world: { acting: ["lost", "done"] } }),
  "lost and found": played([book, "done"], { world: { acting: ["lost"], looking: ["present"] } }),
  "lost and not there": played([book, "done"], { world: { acting: ["lost", "done"], looking: ["absent"] } }),
  "lost and unclear": played([book, "never"], { world: { acting: ["lost"] } }),
  "lost and unclear, then not there": played([book, "done"], {
    world: { acting: ["lost", "done"], looking: ["unclear", "absent"] }
  }),
  "accepted, then done": played([call("deploy", { to: "x" }), "done"], { world: { settled: [false, false] } }),
  "accepted, never done": played([call("deploy", { to: "x" }), "never"], {
    world: { settled: Array.from({ length: 20 }, () => false) }
  }),
  "never retried": played([call("order", { to: "x" }), "never"], { world: { acting: ["lost"] } }),
  "dry run": played([calls(["ask", { to: "x" }], ["pay", { to: "ann" }]), "done"], { gates: { dryRun: true } }),
  "escalated, then resumed": secondOf("escalated, then resumed"),
  "escalated, then tried again": secondOf("escalated, then tried again")
}

export type ContractedName = keyof typeof contracted
