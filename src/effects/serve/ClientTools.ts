/**
 * Tools that a client brings: shown to the model and checked like any other, performed by the client. Here they only have a
 * schema; what would run one says why it did not.
 */
import * as Effect from "effect/Effect"
import { ToolPool } from "../../actors/ToolPool.ts"
import { boundedCheck } from "../../tools/BoundedCheck.ts"
import { failed } from "../../tools/Execution.ts"
import { canonical, type Json, type JsonObject } from "../../tools/JsonText.ts"
import * as Registry from "../../tools/Registry.ts"
import type { ToolSpec } from "../../tools/ToolCall.ts"
import { type ChatError, invalid } from "./ChatError.ts"

const register = Effect.fnUntraced(function* (tools: ReadonlyArray<ToolSpec>) {
  const registered: Array<Registry.RegisteredTool> = []
  for (const { description, name, parameters } of tools) {
    const tool = yield* Registry.dynamic({
      name,
      description,
      schema: parameters,
      // Nothing happens here that could need an approval; what the client does about a call is the client's.
      contract: { risk: "read" },
      // One of the server's that is declared alike is another tool: a session is never made for both.
      identity: { performed: "by the client" },
      run: () => Effect.die(new Error(`${name} is the client's, and was about to run here`))
    })
    registered.push(boundedCheck(tool))
    // Others are answered between two of them.
    yield* Effect.yieldNow
  }
  return yield* Registry.make(registered)
})

/** Sets of tools that are remembered: schemas are compiled and grammars made once for each. */
const kept = 32

/** The field of a request that has the schema of a tool. */
export const parametersAt = (index: number): string => `tools[${index}].function.parameters`

/** Makes registries of tools, and remembers them. */
export const make = () => {
  const known = new Map<string, Registry.Registry>()
  return Effect.fnUntraced(function* (tools: ReadonlyArray<ToolSpec>): Effect.fn.Return<Registry.Registry, ChatError> {
    const key = canonical(tools as unknown as Json)
    const before = known.get(key)
    known.delete(key)
    const registry =
      before ??
      (yield* Effect.mapError(register(tools), ({ message, tool }) => {
        const at = tools.findIndex(({ name }) => name === tool)
        return invalid(parametersAt(at), `The tool '${tool}' cannot be used: ${message}`)
      }))
    known.set(key, registry)
    if (known.size > kept) known.delete(known.keys().next().value!)
    return registry
  })
}

/** The name of the call by which a model gives an answer that has to be an object. */
export const answerName = "final_answer"

/** A tool whose arguments are the answer. */
export const answerTool = (name: string, schema: JsonObject): ToolSpec => ({
  name: answerName,
  description: `Gives the final answer (${name}). Call it once, at the end, instead of writing the answer as text.`,
  parameters: schema
})

const held = failed(
  "not_executed",
  "none",
  "none of the calls of this turn was passed on: one of them cannot be used, or they do not go together; write them again",
  0
)

/** Where calls that are not performed here end up when they are not handed over. */
export const around = (others: ToolPool["Service"], own: ReadonlySet<string>): ToolPool["Service"] =>
  ToolPool.of({ run: (call, late) => (own.has(call.tool.name) ? Effect.succeed(held) : others.run(call, late)) })
