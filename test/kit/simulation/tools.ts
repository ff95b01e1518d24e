/**
 * The tools of the simulation: one of every kind a contract can describe. Registered once; where a call is noted follows
 * from its settings (`fixtures.world`, `.run`, `.call`), so that many worlds can share them.
 */
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Contract from "../../../src/tools/Contract.ts"
import * as Registry from "../../../src/tools/Registry.ts"
import { ToolContext } from "../../../src/tools/ToolContext.ts"
import { ToolError } from "../../../src/tools/ToolError.ts"

const To = Schema.Struct({ to: Schema.String })

const Add = Tool.make("add", {
  description: "Adds.",
  parameters: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
  success: Schema.Finite
}).annotate(Contract.Risk, "read")

const Save = Tool.make("save", {
  description: "Saves a text.",
  parameters: Schema.Struct({ name: Schema.String, content: Schema.String }),
  success: Schema.Struct({ bytes: Schema.Finite })
})
  .annotate(Contract.Risk, "local-write")
  .annotate(Contract.Ledger, "atomic")

const Send = Tool.make("send", { description: "Sends.", parameters: To, success: Schema.String }).annotate(
  Contract.Risk,
  "external"
)

const Pay = Tool.make("pay", { description: "Pays.", parameters: To, success: Schema.String })
  .annotate(Contract.Risk, "external")
  .annotate(Contract.Ledger, "external")

const SlowSend = Tool.make("slow_send", { description: "Sends slowly.", parameters: To, success: Schema.String })
  .annotate(Contract.Risk, "external")
  .annotate(Contract.Ledger, "observe")
  .annotate(Contract.Terminable, false)

const Wait = Tool.make("wait", {
  description: "Waits.",
  parameters: Schema.Struct({ millis: Schema.Finite }),
  success: Schema.Finite
}).annotate(Contract.Risk, "read")

const Poll = Tool.make("poll", { description: "Polls.", parameters: Schema.Struct({}), success: Schema.String })
  .annotate(Contract.Risk, "read")
  .annotate(Contract.Polling, true)

const Long = Tool.make("long", {
  description: "Says much.",
  parameters: Schema.Struct({ length: Schema.Finite }),
  success: Schema.String
}).annotate(Contract.Risk, "read")

const Broken = Tool.make("broken", {
  description: "Fails.",
  parameters: Schema.Struct({ how: Schema.Literals(["error", "defect"]) }),
  success: Schema.String
}).annotate(Contract.Risk, "local-write")

const Ask = Tool.make("clarify", {
  description: "Asks the user.",
  parameters: Schema.Struct({ question: Schema.String }),
  success: Schema.String
})
  .annotate(Contract.Risk, "read")
  .annotate(Contract.AsksUser, true)

const toolkit = Toolkit.make(Add, Save, Send, Pay, SlowSend, Wait, Poll, Long, Broken, Ask)

/** A tool that really started. */
export interface Performed {
  readonly run: string
  readonly callId: string
  readonly tool: string
  readonly key: string | undefined
}

/** Who is told, by the name of the world. */
export const worlds = new Map<string, (performed: Performed) => void>()

const note = (tool: string) =>
  Effect.map(ToolContext, ({ settings: { fixtures, idempotencyKey } }) =>
    worlds.get(fixtures["world"] ?? "")?.({
      run: fixtures["run"] ?? "",
      callId: fixtures["call"] ?? "",
      tool,
      key: idempotencyKey
    })
  )

const make = Registry.fromToolkit(toolkit, {
  add: ({ a, b }) => Effect.as(note("add"), a + b),
  save: Effect.fnUntraced(function* ({ content, name }) {
    yield* note("save")
    const { produce } = yield* ToolContext
    produce({ name, mediaType: "text/plain", bytes: Buffer.from(content) })
    return { bytes: content.length }
  }),
  send: () => Effect.as(note("send"), "sent"),
  pay: () => Effect.as(note("pay"), "paid"),
  slow_send: () => Effect.andThen(note("slow_send"), Effect.as(Effect.sleep(30_000), "sent")),
  wait: ({ millis }) => Effect.andThen(note("wait"), Effect.as(Effect.sleep(millis), millis)),
  poll: () => Effect.as(note("poll"), "not yet"),
  long: ({ length }) => Effect.as(note("long"), "ab€𝄞".repeat(Math.ceil(length / 5)).slice(0, length)),
  broken: ({ how }) =>
    Effect.andThen(
      note("broken"),
      how === "error"
        ? Effect.fail(new ToolError({ kind: "execution_failed", message: "it broke" }))
        : Effect.die(new Error("a bug in the tool"))
    ),
  clarify: () => Effect.die(new Error("never executed"))
})

/** The registry, made once. */
export const registry: Registry.Registry = Effect.runSync(make)
