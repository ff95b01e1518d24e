/** The invoice tool: what it does, and what it owes. */
import { Clock, Console, Effect, Schema } from "effect"
import { Tool, Toolkit } from "effect/ai"
import { Contract, Registry, Terms, ToolError } from "../../src/index.ts"
import { type Invoice, invoicesAt, request } from "./service.ts"

const Create = Tool.make("create_invoice", {
  description: "Issues the invoice of an order. The amount is in cents.",
  parameters: Schema.Struct({
    order: Schema.String.check(Schema.isPattern(/^order-\d+$/)),
    cents: Schema.Int.check(Schema.isGreaterThan(0)),
    idempotencyKey: Schema.String
  }),
  success: Schema.Struct({ invoice: Schema.String })
})

/** No answer is not "nothing happened": the invoice may be there. */
const unanswered = () =>
  new ToolError.ToolError({ kind: "unavailable", message: "the billing service did not answer", effect: "unknown" })

const euros = (cents: number): string => `${(cents / 100).toFixed(2)} EUR`

/** The tools of a run that bills through the service at `url`. */
export const toolsFor = Effect.fnUntraced(function* (url: string) {
  const began = yield* Clock.currentTimeMillis
  const say = (text: string) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Console.log(`  ${((now - began) / 1000).toFixed(1).padStart(5)} s  ${text}`)
    )

  const ofOrder = (order: string) =>
    Effect.mapError(
      Effect.map(invoicesAt(url), (all) => all.filter((one) => one.order === order && one.status !== "rejected")),
      unanswered
    )

  const create = Contract.declare(Create, {
    risk: "external",
    // The service makes one invoice per key, so an attempt without an answer may be repeated with its key.
    ledger: "external",
    retry: "safe",
    keyParameter: "idempotencyKey",
    // The same order is the same invoice: in this run, in the next, and in another process.
    key: ({ order }) => `invoice:${order}:v1`,
    scopes: ["billing"],
    touches: ({ order }) => [{ verb: "write", resource: `invoice:${order}` }],
    pre: ({ order }) =>
      Effect.map(ofOrder(order), (found) =>
        found.length === 0 ? [] : [{ path: "order", reason: `it was invoiced before, as ${found[0]!.id}` }]
      ),
    // An invoice cannot be unsent. So its own word is not enough: the books are looked at.
    reversible: false,
    evidence: { source: "probe", describes: "GET /invoices/ID says that the invoice is issued" },
    post: (_, { invoice }) =>
      Effect.mapError(request(`${url}/invoices/${invoice}`), unanswered).pipe(
        Effect.map(({ body }) => body as Invoice),
        Effect.tap(({ status }) => say(`GET  /invoices/${invoice}: ${status}`)),
        Effect.map(({ status }) => {
          if (status === "issued") return Terms.holds({ status })
          return status === "pending"
            ? Terms.pending()
            : Terms.broken("the service turned the invoice down", { status })
        })
      ),
    settle: { everyMillis: 300, withinMillis: 1_200 },
    cost: () => 1,
    preview: ({ cents, order }) => Effect.succeed(`+ invoice of ${euros(cents)} for ${order}`)
  })

  return yield* Registry.fromToolkit(Toolkit.make(create), {
    create_invoice: ({ cents, idempotencyKey, order }) =>
      request(`${url}/invoices`, {
        method: "POST",
        headers: { "idempotency-key": idempotencyKey },
        body: JSON.stringify({ order, cents })
      }).pipe(
        Effect.tapError(() => say(`POST /invoices  key ${idempotencyKey.slice(0, 8)}…  no answer`)),
        Effect.mapError(unanswered),
        Effect.tap(({ status }) => say(`POST /invoices  key ${idempotencyKey.slice(0, 8)}…  ${status}`)),
        Effect.map(({ body }) => ({ invoice: (body as Invoice).id }))
      )
  })
})
