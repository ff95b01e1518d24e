/**
 * Tools that only say that they were called: for conversations whose calls are looked at and not carried out. Checks, gates and the
 * record are those of every tool.
 */
import * as Effect from "effect/Effect"
import * as Registry from "../../../tools/Registry.ts"
import type { Meta } from "../../conversation/Conversation.ts"
import { ConversationError } from "../../conversation/ConversationError.ts"

/** What every call is answered. */
const answer = "noted"

/** The declared tools of a conversation. Schemas that nothing can be checked against are refused by the tool's name. */
export const registryOf = (
  { tools = [] }: Pick<Meta, "tools">,
  path: string
): Effect.Effect<Registry.Registry, ConversationError> =>
  Effect.mapError(
    Registry.fromDynamic(
      tools.map(({ description, input_schema, name }) => ({
        name,
        description,
        schema: input_schema,
        contract: { risk: "read" },
        run: () => Effect.succeed(answer)
      }))
    ),
    ({ message, tool }) => new ConversationError({ path, place: `meta.tools, ${tool}`, reason: message })
  )
