/** Checks of arguments that end, whatever patterns the schema of a stranger has. */
import * as Result from "effect/Result"
import type { JsonObject } from "./JsonText.ts"
import type { RegisteredTool } from "./Registry.ts"
import { within } from "./TimeBound.ts"
import { problem } from "./Validation.ts"

const checkMillis = 1_000

/** Does checking against this schema run regular expressions? */
export const hasPatterns = (schema: JsonObject): boolean => /"pattern(?:Properties)?":/.test(JSON.stringify(schema))

/** The tool with a check that is stopped when it takes too long, and refuses the call then. */
export const boundedCheck = (tool: RegisteredTool): RegisteredTool =>
  hasPatterns(tool.spec.parameters)
    ? Object.freeze({
        ...tool,
        check: (args: JsonObject) => {
          try {
            return within(checkMillis, () => tool.check(args))
          } catch (error) {
            const why = error instanceof Error ? error.message : "it failed"
            return Result.fail([problem([], "constraint", `the arguments cannot be checked: ${why}`)])
          }
        }
      })
    : tool
