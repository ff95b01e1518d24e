/** An office that makes invoices: its tools, what they really did, and runs that call them. In this process, in memory. */
import { deepStrictEqual } from "node:assert/strict"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Agent from "../../src/effects/Agent.ts"
import type { Outcome } from "../../src/effects/Outcome.ts"
import { Approval, type Approver, allowAll } from "../../src/effects/Policy.ts"
import type { RunOptions } from "../../src/effects/Run.ts"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import * as ScriptedModel from "../../src/engine/ScriptedModel.ts"
import { MemoryTraces } from "../../src/testing.ts"
import type { PlainTerms } from "../../src/tools/Contract.ts"
import * as Contract from "../../src/tools/Contract.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { holds, type Terms } from "../../src/tools/Terms.ts"
import { ToolContext } from "../../src/tools/ToolContext.ts"
import { ToolError } from "../../src/tools/ToolError.ts"
import { type Line, lines } from "./script.ts"

export interface Invoice {
  readonly id: string
  readonly order: string
  readonly cents: number
  readonly key: string
}

/** What is true outside, and how often anybody came by. */
export interface Office {
  readonly invoices: Array<Invoice>
  /** When the tool ran, by the run's clock. */
  readonly visits: Array<number>
  /** The keys it ran under, attempt by attempt. */
  readonly keys: Array<string>
  /** What the precondition looks at. */
  open: boolean
  /** How often the precondition, and the postcondition, were looked at. */
  looks: number
  judgements: number
}

export interface Order {
  readonly order: string
  readonly cents: number
}
interface Made {
  readonly invoice: string
}
type OrderTerms = Partial<PlainTerms> & Terms<Order, Made>

const Create = Tool.make("create_invoice", {
  description: "Makes the invoice of an order.",
  parameters: Schema.Struct({ order: Schema.String, cents: Schema.Int }),
  success: Schema.Struct({ invoice: Schema.String })
})

const Cancel = Tool.make("cancel_invoice", {
  description: "Takes an invoice back.",
  parameters: Schema.Struct({ order: Schema.String }),
  success: Schema.String
})

const Look = Tool.make("list_invoices", {
  description: "Lists what was invoiced.",
  parameters: Schema.Struct({ order: Schema.String }),
  success: Schema.Array(Schema.String)
}).annotate(Contract.Risk, "read")

export interface Opening {
  /** On top of: external, ledger by key, safe to repeat, reversible, judged by a look. */
  readonly terms?: (office: Office) => OrderTerms
  /** Instead of making the invoice and saying so. `visit` counts from 1. */
  readonly act?: (
    office: Office,
    order: Order,
    visit: number,
    key: string
  ) => Effect.Effect<Made, ToolError, ToolContext>
}

/** Makes the invoice, once per key, as a service that honours keys does. */
export const make = (office: Office, { cents, order }: Order, key: string): Made => {
  const known = office.invoices.find((invoice) => invoice.key === key)
  if (known !== undefined) return { invoice: known.id }
  const id = `INV-${office.invoices.length + 1}`
  office.invoices.push({ id, order, cents, key })
  return { invoice: id }
}

/** The other side was not reached, or did not answer. */
export const silent = (effect: "none" | "unknown" = "unknown") =>
  new ToolError({ kind: "unavailable", message: "no answer from the billing service", effect })

const standard = (office: Office): OrderTerms => ({
  risk: "external",
  ledger: "external",
  retry: "safe",
  reversible: true,
  evidence: { source: "probe", describes: "the invoice is in the books" },
  pre: () => {
    office.looks++
    return Effect.succeed(office.open ? [] : [{ reason: "the books are closed" }])
  },
  post: ({ order }, { invoice }) => {
    office.judgements++
    const found = office.invoices.some((one) => one.id === invoice && one.order === order)
    return Effect.succeed(found ? holds({ invoice }) : { _tag: "Broken", unmet: [{ reason: "no such invoice" }] })
  }
})

/** Named by the order: the same attempt in every run. */
export const byOrder: OrderTerms = { key: ({ order }) => `invoice:${order}:v1` }

/** An office and its tools. */
export const open = Effect.fnUntraced(function* (opening: Opening = {}) {
  const office: Office = { invoices: [], visits: [], keys: [], open: true, looks: 0, judgements: 0 }
  const terms = { ...standard(office), ...opening.terms?.(office) }
  const stated = Contract.declare(Create, terms as Parameters<typeof Contract.declare<typeof Create>>[1])
  const cancel = Contract.declare(Cancel, {
    risk: "external",
    ledger: "external",
    retry: "safe",
    reversible: true,
    evidence: { source: "self", describes: "its own answer" },
    post: "result"
  })
  const registry = yield* Registry.fromToolkit(Toolkit.make(stated, cancel, Look), {
    create_invoice: Effect.fnUntraced(function* (order) {
      const { settings } = yield* ToolContext
      const key = settings.idempotencyKey ?? ""
      office.visits.push(yield* Clock.currentTimeMillis)
      office.keys.push(key)
      if (opening.act !== undefined) return yield* opening.act(office, order, office.visits.length, key)
      return make(office, order, key)
    }),
    cancel_invoice: ({ order }) =>
      Effect.sync(() => {
        const at = office.invoices.findIndex((invoice) => invoice.order === order)
        if (at >= 0) office.invoices.splice(at, 1)
        return "taken back"
      }),
    list_invoices: ({ order }) =>
      Effect.sync(() => office.invoices.filter((invoice) => invoice.order === order).map(({ id }) => id))
  })
  return { office, registry }
})

export interface Billed {
  readonly outcome: Outcome
  readonly text: string
  readonly events: ReadonlyArray<Line>
  /** What the model was told about its calls, byte for byte. */
  readonly answers: ReadonlyArray<string>
}

export interface BillOptions extends RunOptions {
  readonly tools: Registry.Registry
  readonly approver?: Approver
  readonly system?: string
}

/** A run whose model says `turns`. Ledger, store and record are those around it. */
export const bill = (turns: ScriptedModel.Script["turns"], { approver = allowAll, ...options }: BillOptions) =>
  Agent.run({ task: "Bill the order.", trace: { content: true }, ...options }).pipe(
    Effect.provideService(Approval, approver),
    Effect.provide(ScriptedModel.layer({ turns }), { local: true }),
    Effect.flatMap((outcome) =>
      Effect.map(MemoryTraces, (traces): Billed => {
        const text = traces.text(outcome.runId)
        // Whatever else a test looks at: the record has to hold together.
        deepStrictEqual(validateText(text).violations, [])
        const told = outcome.transcript.flatMap((entry) => (entry.kind === "tool" ? [entry.content] : []))
        return { outcome, text, events: lines(text), answers: told }
      })
    )
  )

/** Lets the clock run while `effect` does. */
export const unwound = <A, E, R>(effect: Effect.Effect<A, E, R>, millis = 300_000) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(effect, { startImmediately: true })
    yield* TestClock.adjust(millis)
    return yield* Fiber.join(fiber)
  })

/** The data of the events of one type, in order. */
export const of = (events: ReadonlyArray<Line>, type: string): ReadonlyArray<Record<string, unknown>> =>
  events.flatMap(({ data, event_type }) => (event_type === type ? [data] : []))

const path = { parameters: Schema.Struct({ path: Schema.String }), success: Schema.String }
const writes: PlainTerms & Terms<{ readonly path: string }, string> = {
  risk: "local-write",
  ledger: "atomic",
  retry: "safe",
  reversible: true,
  evidence: { source: "self", describes: "its own answer" },
  post: "result",
  touches: ({ path }) => [{ verb: "write", resource: `workspace:${path}` }]
}

/** Two tools that change the same files; one of them reaches further. `office` lists what was written through which. */
export const twoDoors = Effect.gen(function* () {
  const office: Array<string> = []
  const enter = (tool: string) => (args: { readonly path: string }) =>
    Effect.sync(() => {
      office.push(`${tool}:${args.path}`)
      return "written"
    })
  const WriteFile = Contract.declare(Tool.make("write_file", { description: "Writes.", ...path }), writes)
  const RunShell = Contract.declare(Tool.make("run_shell", { description: "Does.", ...path }), {
    ...writes,
    risk: "external"
  })
  const registry = yield* Registry.fromToolkit(Toolkit.make(WriteFile, RunShell), {
    write_file: enter("write_file"),
    run_shell: enter("run_shell")
  })
  return { office, registry }
})
