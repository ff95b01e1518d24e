/** Checks what an MCP tool answers against the schema its server promised. Both are the server's, so the check is bounded in time. */
import * as Effect from "effect/Effect"
import { hasPatterns } from "../BoundedCheck.ts"
import type { Json, JsonObject } from "../JsonText.ts"
import * as SchemaChecker from "../SchemaChecker.ts"
import { reworded } from "../SchemaDialect.ts"
import { remoteReference } from "../SchemaReferences.ts"
import { within } from "../TimeBound.ts"

/** What is wrong with a result, in words; nothing if it fits. */
export type OutputCheck = (value: Json) => string | undefined

const checkMillis = 1000

/** Compiles an output schema, or says in words why that cannot be done. */
export const compile = Effect.fnUntraced(function* (schema: JsonObject): Effect.fn.Return<OutputCheck, string> {
  const remote = remoteReference(schema)
  if (remote !== undefined) return yield* Effect.fail(`it refers to ${remote}: only references inside it are followed`)
  const dialect = /draft-07/.test(String(schema["$schema"])) ? "draft-07" : "2020-12"
  const errorsOf = yield* SchemaChecker.compile(reworded(schema, dialect), dialect)
  const judge = (value: Json): string | undefined => {
    const [first] = errorsOf(value)
    return first === undefined ? undefined : `${first.instancePath || "the result"} ${first.message ?? ""}`.trim()
  }
  if (!hasPatterns(schema)) return judge
  return (value) => {
    try {
      return within(checkMillis, () => judge(value))
    } catch (error) {
      return error instanceof Error ? `it cannot be checked: ${error.message}` : "it cannot be checked"
    }
  }
})
