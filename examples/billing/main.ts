/**
 * An agent that issues an invoice while the billing service misbehaves: `node examples/billing/main.ts --fault lost-answer`.
 * The model is a script of two turns unless `--model FILE.gguf` names a real one. README.md tells the story.
 */
import { parseArgs } from "node:util"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Layer } from "effect"
import { Agent, Authority, Gates, Outcome, Policy, Wiring } from "../../src/index.ts"
import { layerEngine } from "../../src/testing.ts"
import { type Fault, faults, invoicesAt, service } from "./service.ts"
import { toolsFor } from "./tools.ts"

const { values } = parseArgs({
  options: {
    fault: { type: "string", default: "none" },
    model: { type: "string" },
    /** Milliseconds before the second attempt; each wait after it is twice as long. */
    delay: { type: "string", default: "1000" },
    help: { type: "boolean", default: false }
  }
})

const task = "Invoice order-431: 1249.00 EUR, that is 124900 cents."
const usage = `node main.ts [--fault ${faults.join("|")}] [--model FILE.gguf] [--delay MILLIS]`

/** What the scripted model says: the call, and a last word for when there is one to say. */
const call = '<tool_call>\n{"name":"create_invoice","arguments":{"order":"order-431","cents":124900}}\n</tool_call>'
const lastWord = (fault: Fault): string =>
  fault === "accepted-then-fails" ? "The invoice of order-431 was turned down." : "The invoice of order-431 is issued."

/** What this run is permitted, whatever its prompt or its model say. */
const clerk = Authority.fromGrants(
  { scopes: ["billing"], resources: [{ verb: "write", pattern: "invoice:order-*" }] },
  "billing clerk"
)

/** Shows what somebody would be asked, and says yes for them. */
const approver: Policy.Approver = {
  name: "the example",
  decide: ({ cost, evidence, preview, tool }) =>
    Effect.as(
      Console.log(
        [
          `Allow ${tool}?`,
          `  ${preview ?? ""}`,
          `  costs ${cost}, cannot be undone, judged by: ${evidence.describes}`,
          "  (the example says yes)"
        ].join("\n")
      ),
      "allow"
    )
}

const program = Effect.gen(function* () {
  const fault = faults.find((one) => one === values.fault)
  if (fault === undefined || values.help) {
    yield* Console.log(usage)
    return values.help ? 0 : 2
  }
  const url = yield* service(fault, "books.json")
  const delayMillis = Number(values.delay)
  const engine =
    values.model === undefined ? { engine: layerEngine({ turns: [call, lastWord(fault)] }) } : { model: values.model }
  yield* Console.log(task)
  const outcome = yield* Agent.run({
    task,
    tools: yield* toolsFor(url),
    trace: { content: true },
    gates: { authority: clerk, retry: { ...Gates.defaults.retry, delayMillis } }
  }).pipe(Effect.provide(Wiring.layer({ ...engine, inlineTools: true })))
  const books = yield* invoicesAt(url)
  const exit = Outcome.exitCode(outcome.stop)
  yield* Console.log(outcome.text ?? `No answer: ${"detail" in outcome.stop ? outcome.stop.detail : outcome.stop._tag}`)
  yield* Console.log(`\nThe run ended as ${outcome.stop._tag} (exit code ${exit}), record: ${outcome.tracePath}`)
  const listed = books.map(({ id, order, status }) => `${id} for ${order}, ${status}`).join("; ")
  yield* Console.log(`In the books of the service: ${books.length} (${listed === "" ? "nothing" : listed})`)
  return exit
}).pipe(Effect.scoped, Effect.provide(Layer.succeed(Policy.Approval, approver)))

program.pipe(
  Effect.tap((exit) =>
    Effect.sync(() => {
      process.exitCode = exit
    })
  ),
  NodeRuntime.runMain
)
