/** Admitted calls for tests of whatever runs them. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { AdmittedCall } from "../../src/actors/ToolPool.ts"
import type { JsonObject } from "../../src/tools/JsonText.ts"
import type { RegisteredTool, Registry } from "../../src/tools/Registry.ts"
import type { ToolSettings } from "../../src/tools/ToolContext.ts"

/** A call of a registered tool with arguments that pass its check; no deadline unless one is given. */
export const admitted = (
  registry: Registry,
  name: string,
  args: JsonObject = {},
  options: { readonly deadlineMillis?: number; readonly settings?: ToolSettings } = {}
): AdmittedCall => {
  const tool = registry.get(name) as RegisteredTool
  return {
    callId: `call-${name}`,
    tool,
    arguments: Result.getOrThrow(tool.check(args)),
    deadlineMillis: options.deadlineMillis ?? Number.POSITIVE_INFINITY,
    settings: options.settings ?? { fixtures: {} }
  }
}

/** Waits, on the real clock, until a condition holds. */
export const until = (condition: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (condition() ? Effect.void : Effect.andThen(Effect.sleep(5), until(condition))))
