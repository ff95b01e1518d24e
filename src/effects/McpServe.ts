/**
 * Tools as an MCP server on standard input and output. The protocol is Effect's; every call goes through `Serving`, and so
 * through every gate. Ends when the client closes the input.
 */
import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpSchema from "effect/ai/McpSchema"
import * as Server from "effect/ai/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { isObject, type Json, type JsonObject } from "../tools/JsonText.ts"
import type { RegisteredTool, Registry } from "../tools/Registry.ts"
import { type Answer, answerText } from "../tools/ToolCall.ts"
import { McpStdin } from "./McpStdin.ts"
import type { Serving, ServingError } from "./Serving.ts"
import { version } from "./Version.ts"

/** The first is what a client gets that asks for one nobody knows. */
const protocols = [
  McpProtocol.v2025_11_25,
  McpProtocol.v2025_06_18,
  McpProtocol.v2025_03_26,
  McpProtocol.v2024_11_05,
  McpProtocol.v2026_07_28
] as const

const instructions =
  "Every call is checked, may need an approval, and is put on record. A call that is refused was not executed; the answer says why. " +
  "Never repeat a call whose outcome is unknown."

/** Tools that ask the user belong to a model's run: a client has a user of its own. */
export const servable = ({ contract }: RegisteredTool): boolean => !contract.asksUser

/** The contract in the hints that the protocol has. */
const annotationsOf = ({ contract }: RegisteredTool) => ({
  readOnlyHint: contract.risk === "read",
  destructiveHint: contract.risk !== "read" && !contract.reversible,
  idempotentHint: contract.risk === "read" || contract.retry === "safe",
  openWorldHint: contract.risk === "external"
})

const described = (tool: RegisteredTool): McpSchema.Tool =>
  new McpSchema.Tool({
    name: tool.name,
    description: tool.spec.description,
    inputSchema: { ...tool.spec.parameters, type: "object" } as McpSchema.Tool["inputSchema"],
    annotations: annotationsOf(tool)
  })

const textOf = (result: Json): string => (typeof result === "string" ? result : JSON.stringify(result))

/** A result is told as itself, a refusal or failure as the whole answer a model would get. */
export const resultOf = (answer: Answer): McpSchema.CallToolResult => {
  if (!answer.ok) {
    const text = answerText(answer)
    return new McpSchema.CallToolResult({
      content: [{ type: "text", text }],
      structuredContent: JSON.parse(text),
      isError: true
    })
  }
  return new McpSchema.CallToolResult({
    content: [{ type: "text", text: textOf(answer.result) }],
    ...(isObject(answer.result) ? { structuredContent: answer.result } : {}),
    isError: false
  })
}

const failure = ({ message }: ServingError): McpSchema.CallToolResult =>
  resultOf({ ok: false, kind: "not_executed", errors: [{ path: "", reason: message }] })

const registrations = (tools: ReadonlyArray<RegisteredTool>, { call }: Serving) =>
  Layer.effectDiscard(
    Effect.flatMap(Server.McpServer, (server) =>
      Effect.forEach(
        tools,
        (tool) =>
          server.addTool({
            tool: described(tool),
            annotations: Context.empty(),
            handle: (args: unknown) =>
              Effect.match(call(tool.name, (args ?? {}) as JsonObject), { onFailure: failure, onSuccess: resultOf })
          }),
        { discard: true }
      )
    )
  )

/** Standard input without what is no message. */
const sieved = Layer.effect(
  Stdio.Stdio,
  Effect.map(Stdio.Stdio, (stdio) => {
    const lines = new McpStdin()
    const messages = Stream.filter(Stream.map(stdio.stdin, lines.push), (bytes) => bytes.byteLength > 0)
    return Stdio.Stdio.of({ ...stdio, stdin: messages })
  })
)

/** Serves until the client goes away. */
export const serve = (registry: Registry, serving: Serving): Effect.Effect<void, never, Stdio.Stdio | Scope.Scope> =>
  Effect.gen(function* () {
    const layer = Server.layerStdio({
      name: "writ",
      version,
      instructions,
      protocols,
      registrations: registrations(registry.tools.filter(servable), serving)
    }).pipe(Layer.provide(sieved))
    // The transport ends by interrupting whoever launched it.
    const fiber = yield* Effect.forkScoped(Layer.launch(layer))
    const exit = yield* Fiber.await(fiber)
    if (Exit.isFailure(exit) && !Exit.hasInterrupts(exit)) return yield* Effect.orDie(exit)
  })
