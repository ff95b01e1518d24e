/** Tools for tests of the loop: small, in-process, counted. */

import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Contract from "../../src/tools/Contract.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { ToolContext } from "../../src/tools/ToolContext.ts"
import { ToolError } from "../../src/tools/ToolError.ts"
import { acts } from "./contracts.ts"

export const Add = Tool.make("add", {
  description: "Adds two numbers.",
  parameters: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
  success: Schema.Finite
}).annotate(Contract.Risk, "read")

const Save = acts(
  "local-write",
  Tool.make("save", {
    description: "Saves a text.",
    parameters: Schema.Struct({ name: Schema.String, content: Schema.String }),
    success: Schema.Struct({ bytes: Schema.Finite })
  })
)

const SaveTwo = acts(
  "local-write",
  Tool.make("save_two", {
    description: "Saves one text, and one under a name that no store takes.",
    parameters: Schema.Struct({}),
    success: Schema.String
  })
)

const Send = acts(
  "external",
  Tool.make("send", {
    description: "Sends a message to somebody.",
    parameters: Schema.Struct({ to: Schema.String }),
    success: Schema.String
  })
)

const SlowSend = acts(
  "external",
  Tool.make("slow_send", {
    description: "Sends a message slowly.",
    parameters: Schema.Struct({ to: Schema.String }),
    success: Schema.String
  })
)

export const Wait = Tool.make("wait", {
  description: "Waits.",
  parameters: Schema.Struct({ millis: Schema.Finite }),
  success: Schema.Finite
}).annotate(Contract.Risk, "read")

export const Poll = Tool.make("poll", {
  description: "Asks whether it is done.",
  parameters: Schema.Struct({}),
  success: Schema.String
})
  .annotate(Contract.Risk, "read")
  .annotate(Contract.Polling, true)

export const Long = Tool.make("long", {
  description: "Returns a long text.",
  parameters: Schema.Struct({ length: Schema.Finite }),
  success: Schema.String
}).annotate(Contract.Risk, "read")

const Broken = Tool.make("broken", {
  description: "Fails as told.",
  parameters: Schema.Struct({ how: Schema.Literals(["error", "defect"]) }),
  success: Schema.String
}).annotate(Contract.Risk, "read")

export const Ask = Tool.make("clarify", {
  description: "Ask the user for missing information.",
  parameters: Schema.Struct({ question: Schema.String }),
  success: Schema.String
})
  .annotate(Contract.Risk, "read")
  .annotate(Contract.AsksUser, true)

export const toolkit = Toolkit.make(Add, Save, Send, SlowSend, Wait, Poll, Long, Broken, Ask, SaveTwo)

/** What really ran, in order: `tool:arguments`. */
export class Performed extends Context.Service<Performed, Array<string>>()("effect-writ/test/Performed") {}

/** The test tools as a registry, with the list of what they did. */
export const make = Effect.fnUntraced(function* () {
  const performed: Array<string> = []
  const note = (name: string, args: unknown) =>
    Effect.sync(() => void performed.push(`${name}:${JSON.stringify(args)}`))
  const registry = yield* Registry.fromToolkit(toolkit, {
    add: (args) => Effect.as(note("add", args), args.a + args.b),
    save: Effect.fnUntraced(function* (args) {
      yield* note("save", args)
      const { produce } = yield* ToolContext
      produce({ name: args.name, mediaType: "text/plain", bytes: Buffer.from(args.content) })
      return { bytes: args.content.length }
    }),
    save_two: Effect.fnUntraced(function* () {
      const { produce } = yield* ToolContext
      produce({ name: "one.txt", mediaType: "text/plain", bytes: Buffer.from("1") })
      produce({ name: "../two.txt", mediaType: "text/plain", bytes: Buffer.from("2") })
      return "saved"
    }),
    send: (args) => Effect.as(note("send", args), "sent"),
    slow_send: (args) => Effect.andThen(note("slow_send", args), Effect.as(Effect.sleep(60_000), "sent")),
    wait: Effect.fnUntraced(function* (args) {
      yield* note("wait", args)
      yield* Effect.sleep(args.millis)
      return args.millis
    }),
    poll: (args) => Effect.as(note("poll", args), "not yet"),
    long: ({ length }) => Effect.as(note("long", { length }), "ab€𝄞".repeat(Math.ceil(length / 5)).slice(0, length)),
    broken: ({ how }) =>
      how === "error"
        ? Effect.fail(new ToolError({ kind: "execution_failed", message: "it broke" }))
        : Effect.die(new Error("a bug in the tool")),
    clarify: () => Effect.die(new Error("never executed"))
  })
  return { registry, performed }
})
