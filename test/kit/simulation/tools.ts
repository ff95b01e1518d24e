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
import { holds, pending } from "../../../src/tools/Terms.ts"
import { ToolContext } from "../../../src/tools/ToolContext.ts"
import { ToolError } from "../../../src/tools/ToolError.ts"
import { acts } from "../contracts.ts"
import { Add, Ask, Long, Poll, Wait } from "../tools.ts"

const To = Schema.Struct({ to: Schema.String })

/** A look at the world, told to it: the how manieth of its kind in this run, from 1. */
const look = (looking: "pre" | "post" | "probe") =>
  Effect.map(ToolContext, ({ settings: { fixtures } }) => {
    const seen = { run: fixtures["run"] ?? "", callId: "", tool: "", key: undefined, looking }
    return worlds.get(fixtures["world"] ?? "")?.(seen) ?? 1
  })

const found = [{ _tag: "Present", result: "sent" }, { _tag: "Unclear" }, { _tag: "Absent" }] as const

const Save = acts(
  "local-write",
  Tool.make("save", {
    description: "Saves a text.",
    parameters: Schema.Struct({ name: Schema.String, content: Schema.String }),
    success: Schema.Struct({ bytes: Schema.Finite })
  }),
  { ledger: "atomic" }
)

const Send = acts("external", Tool.make("send", { description: "Sends.", parameters: To, success: Schema.String }))

/** Everything that a contract can say about an effect: what it costs, when it may be, and how it is seen to be done. */
const Pay = acts("external", Tool.make("pay", { description: "Pays.", parameters: To, success: Schema.String }), {
  ledger: "external",
  retry: "safe",
  evidence: { source: "probe", describes: "the account" },
  settle: { everyMillis: 20, withinMillis: 100 },
  cost: () => 2,
  hazard: () => 0.5,
  pre: () => Effect.map(look("pre"), (nth) => (nth % 7 === 0 ? [{ path: "to", reason: "the account is closed" }] : [])),
  post: () => Effect.map(look("post"), (nth) => (nth % 5 < 2 ? pending() : holds({ nth })))
})

const SlowSend = acts(
  "external",
  Tool.make("slow_send", { description: "Sends slowly.", parameters: To, success: Schema.String }).annotate(
    Contract.Terminable,
    false
  ),
  { ledger: "observe", probe: () => Effect.map(look("probe"), (nth) => found[nth % 3]!) }
)

const Broken = acts(
  "local-write",
  Tool.make("broken", {
    description: "Fails.",
    parameters: Schema.Struct({ how: Schema.Literals(["error", "defect"]) }),
    success: Schema.String
  })
)

const toolkit = Toolkit.make(Add, Save, Send, Pay, SlowSend, Wait, Poll, Long, Broken, Ask)

/** A tool that really started. */
export interface Performed {
  readonly run: string
  readonly callId: string
  readonly tool: string
  readonly key: string | undefined
  /** Nothing was done, only looked at. */
  readonly looking?: "pre" | "post" | "probe"
}

/** Who is told, by the name of the world; answers how many looks of this kind there were in the run. */
export const worlds = new Map<string, (performed: Performed) => number>()

const note = (tool: string) =>
  Effect.map(ToolContext, ({ settings: { fixtures, idempotencyKey } }) => {
    const performed = { run: fixtures["run"] ?? "", callId: fixtures["call"] ?? "", tool, key: idempotencyKey }
    worlds.get(fixtures["world"] ?? "")?.(performed)
  })

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
