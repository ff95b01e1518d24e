/**
 * A process that bills an order and dies where it is told to: `node billingChild.ts JSON` with a `Job`. Run again in the
 * same directory it resumes. With `deliveries` it waits for a line on stdin and then bills the same order as often, each
 * time in a run of its own. What it came to is a JSON line on stdout.
 */
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as ArtifactStore from "../../src/actors/ArtifactStore.ts"
import { EffectLedger } from "../../src/actors/EffectLedger.ts"
import { layerSqlite } from "../../src/actors/EffectLedgerSqlite.ts"
import { Ids } from "../../src/actors/Ids.ts"
import * as ToolPool from "../../src/actors/ToolPool.ts"
import * as TraceWriter from "../../src/actors/TraceWriter.ts"
import * as Agent from "../../src/effects/Agent.ts"
import { exitCode, type Outcome } from "../../src/effects/Outcome.ts"
import { Approval, allowAll } from "../../src/effects/Policy.ts"
import { resume } from "../../src/effects/Resume.ts"
import * as ScriptedModel from "../../src/engine/ScriptedModel.ts"
import type { LedgerMode, PlainTerms } from "../../src/tools/Contract.ts"
import * as Contract from "../../src/tools/Contract.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { type Found, holds, type Terms, type Verdict } from "../../src/tools/Terms.ts"
import { ToolContext } from "../../src/tools/ToolContext.ts"
import { ToolError } from "../../src/tools/ToolError.ts"
import { kept, parts } from "./crashParts.ts"
import { call } from "./script.ts"

export interface Job {
  readonly directory: string
  readonly mode: LedgerMode
  /** The billing service, up to its book. */
  readonly service: string
  /** `PLACE:N`, or `never`. */
  readonly where: string
  readonly deliveries?: number
}

/** What a process says at its end, unless it was killed. */
export interface Ended {
  readonly stop: Outcome["stop"]
  readonly exit: number
  readonly answers: ReadonlyArray<string>
}

const { deliveries, directory, mode, service, where } = JSON.parse(process.argv[2] ?? "{}") as Job
const [place, ordinal] = where.split(":")

const die = (): never => {
  process.kill(process.pid, "SIGKILL")
  throw new Error("still here")
}

const visits = new Map<string, number>()

/** Dies here, if this is where and when. */
const here = (name: string) =>
  Effect.sync(() => {
    const visit = (visits.get(name) ?? 0) + 1
    visits.set(name, visit)
    if (place === name && visit === Number(ordinal)) die()
  })

interface Invoice {
  readonly id: string
}

const unreachable = () => new ToolError({ kind: "unavailable", message: "no answer", effect: "unknown" })

const request = (path: string, init?: RequestInit): Effect.Effect<unknown, ToolError> =>
  Effect.tryPromise({
    try: async (signal) => (await fetch(`${service}${path}`, { ...init, signal })).json(),
    catch: unreachable
  })

/** Own files instead of a service: an invoice has the name of its key, so it is there once or not at all. */
const files = join(directory, "invoices")

const publish = (order: string, key: string): Invoice => {
  mkdirSync(files, { recursive: true })
  const file = join(files, `${key}.json`)
  if (!existsSync(file)) {
    const draft = join(directory, `draft-${process.pid}`)
    writeFileSync(draft, JSON.stringify({ id: `INV-${readdirSync(files).length + 1}`, order }))
    linkSync(draft, file)
    rmSync(draft)
  }
  return JSON.parse(readFileSync(file, "utf8")) as Invoice
}

const published = (order: string): ReadonlyArray<Invoice> =>
  (existsSync(files) ? readdirSync(files) : [])
    .map((name) => JSON.parse(readFileSync(join(files, name), "utf8")) as Invoice & { readonly order: string })
    .filter((invoice) => invoice.order === order)

const made = (order: string) =>
  mode === "atomic"
    ? Effect.sync(() => published(order))
    : Effect.map(request(`?order=${order}`), (all) => all as ReadonlyArray<Invoice>)

/** The request is on its way and nobody answers; dies as soon as the invoice is there. */
const lostInFlight = (order: string, init: RequestInit) =>
  Effect.gen(function* () {
    yield* Effect.forkDetach(Effect.ignore(request("?hold", init)))
    while ((yield* made(order)).length === 0) yield* Effect.sleep(5)
    return die()
  })

const send = Effect.fnUntraced(function* (order: string, key: string) {
  const init = {
    method: "POST",
    body: JSON.stringify({ order }),
    // One of the modes relies on it; the other two are for a service that would not look at it.
    headers: mode === "external" ? { "idempotency-key": key } : {}
  }
  if (mode === "atomic") return publish(order, key)
  if (place === "in-flight") return yield* lostInFlight(order, init)
  return (yield* request("", init)) as Invoice
})

interface Order {
  readonly order: string
}

const terms = (): PlainTerms & Terms<Order, Invoice> => ({
  risk: "external",
  ledger: mode,
  retry: mode === "none" ? "never" : "safe",
  reversible: true,
  evidence: { source: "probe", describes: "the invoice is in the books" },
  // False once the invoice is there, as it should be: who asks again is owed the outcome, not this.
  pre: ({ order }) =>
    Effect.map(made(order), (all) => (all.length === 0 ? [] : [{ reason: "the order was invoiced before" }])),
  post: ({ order }, { id }) =>
    Effect.map(
      made(order),
      (all): Verdict =>
        all.some((one) => one.id === id) ? holds(id) : { _tag: "Broken", unmet: [{ reason: "no such invoice" }] }
    ),
  ...(mode === "observe"
    ? {
        probe: ({ order }) =>
          Effect.map(
            made(order),
            ([found]): Found<Invoice> =>
              found === undefined ? { _tag: "Absent" } : { _tag: "Present", result: { id: found.id } }
          )
      }
    : {}),
  ...(deliveries === undefined ? {} : { key: ({ order }) => `invoice:${order}:v1` })
})

const Create = Tool.make("create_invoice", {
  description: "Makes the invoice of an order.",
  parameters: Schema.Struct({ order: Schema.String }),
  success: Schema.Struct({ id: Schema.String })
})

const stated = Contract.declare(Create, terms() as Parameters<typeof Contract.declare<typeof Create>>[1])

const registry = await Effect.runPromise(
  Registry.fromToolkit(Toolkit.make(stated), {
    create_invoice: Effect.fnUntraced(function* ({ order }) {
      const { settings } = yield* ToolContext
      yield* here("before-request")
      const { id } = yield* send(order, settings.idempotencyKey ?? "")
      yield* here("after-answer")
      return { id }
    })
  })
)

const layerLedger = Layer.effect(
  EffectLedger,
  Effect.map(EffectLedger, (ledger) =>
    EffectLedger.of({
      ...ledger,
      begin: (intent) =>
        Effect.tap(Effect.andThen(here("before-begin"), ledger.begin(intent)), () => here("after-begin")),
      retake: (intent) => Effect.tap(ledger.retake(intent), () => here("after-retake")),
      settle: (key, outcome) =>
        Effect.andThen(
          here("before-settle"),
          Effect.tap(ledger.settle(key, outcome), () => here("after-settle"))
        )
    })
  )
).pipe(Layer.provide(layerSqlite({ path: join(directory, "ledger.sqlite") })))

let runs = 0
const nextId = Effect.sync(() => (deliveries === undefined ? "run" : `run-${process.pid}-${++runs}`))

const services = Layer.mergeAll(
  layerLedger,
  ArtifactStore.layerDirectory(() => join(directory, "artifacts")),
  ToolPool.layerInline(),
  TraceWriter.layerFile((runId) => join(directory, `${runId}.jsonl`)),
  Layer.succeed(Ids, Ids.of({ run: nextId })),
  Layer.succeed(Approval, allowAll)
)

const turns = [call("create_invoice", { order: "order-431" }), "The invoice is made."]
// Attempts follow one another quickly: what is tested is what they may do, not how long they wait.
const gates = { retry: { attempts: 4, delayMillis: 5, factor: 1.5 } }
const options = { tools: registry, trace: { content: true, tokenEvents: false }, gates }

const said = ({ stop, transcript }: Outcome): Ended => ({
  stop,
  exit: exitCode(stop),
  answers: transcript.flatMap((entry) => (entry.kind === "tool" ? [entry.content] : []))
})

const fresh = Agent.run({ ...options, task: "Bill order-431." })

/** The run, or what is left of it to do. */
const once = Effect.suspend(() => {
  const traces = parts(directory)
  const run: Effect.Effect<Outcome, unknown, Agent.Services> =
    traces.length === 0 ? fresh : resume({ ...options, traces })
  return Effect.map(Effect.provide(run, ScriptedModel.layer({ turns: turns.slice(kept(traces)) })), said)
})

const told = Effect.callback<void>((next) => {
  const lines = createInterface({ input: process.stdin })
  lines.once("line", () => {
    lines.close()
    next(Effect.void)
  })
  process.stdout.write("ready\n")
})

const oneDelivery = Effect.map(Effect.provide(fresh, ScriptedModel.layer({ turns }), { local: true }), said)

const work: Effect.Effect<unknown, unknown, Exclude<Agent.Services, never>> = deliveries === undefined
  ? Effect.provide(once, services)
  : Effect.andThen(
      told,
      Effect.all(
        Array.from({ length: deliveries }, () => oneDelivery),
        { concurrency: "unbounded" }
      )
    )

process.stdout.write(
  `${JSON.stringify(await Effect.runPromise(Effect.provide(work, services) as Effect.Effect<unknown>))}\n`
)
