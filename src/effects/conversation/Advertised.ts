/**
 * The tools a conversation declares, as a registry: the words and schemas are the file's, what runs is what is registered
 * under the name (R-AILLY-16, 20). A tool that nobody registered is a mistake of configuration.
 */
import { hash } from "node:crypto"
import * as Effect from "effect/Effect"
import { canonical, type Json } from "../../tools/JsonText.ts"
import { nearest } from "../../tools/Nearest.ts"
import * as Registry from "../../tools/Registry.ts"
import type { Meta, ToolDefinition } from "./Conversation.ts"
import { ConversationError } from "./ConversationError.ts"

const remedy = ({ name }: ToolDefinition, known: ReadonlyArray<string>): string => {
  const near = nearest(name, known)
  if (near !== undefined) return `; did you mean ${near}?`
  const given = "give it with --tools-dir or --mcp, or play it under tools: of a script"
  return known.length === 0 ? `; ${given}` : `; there are ${known.join(", ")}: ${given}`
}

const refuse = (path: string, at: number, reason: string) =>
  Effect.fail(new ConversationError({ path, place: `meta.tools[${at}]`, reason }))

/** In the order of the file. What is advertised is part of the registry's hash. */
export const registryOf = Effect.fnUntraced(function* (
  { tools = [] }: Pick<Meta, "tools">,
  registered: Registry.Registry,
  path: string
): Effect.fn.Return<Registry.Registry, ConversationError> {
  const found: Array<Registry.RegisteredTool> = []
  for (const [at, definition] of tools.entries()) {
    const { description, input_schema: parameters, name } = definition
    const tool = registered.get(name)
    if (tool === undefined) {
      const known = registered.tools.map((other) => other.name)
      return yield* refuse(path, at, `there is no tool ${name} to run its calls${remedy(definition, known)}`)
    }
    found.push({ ...tool, spec: { name, description, parameters } })
  }
  const made = yield* Effect.catch(Registry.make(found), ({ message, tool }) =>
    refuse(
      path,
      found.findIndex(({ name }) => name === tool),
      message
    )
  )
  return { ...made, hash: hash("sha256", canonical([made.hash, made.specs as unknown as Json])) }
})
