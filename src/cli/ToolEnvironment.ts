/** The variables that tools may see (`--tool-env`): their values, or which one is not there. Values are never shown. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { variable } from "../actors/McpServer.ts"
import type { Settings } from "../effects/SettingFields.ts"
import { keyVariable } from "../tools/files/KeyVariable.ts"
import { type UsageError, usage } from "./Ending.ts"

export const granted = Effect.fnUntraced(function* ({
  toolEnv
}: Pick<Settings, "toolEnv">): Effect.fn.Return<Readonly<Record<string, string>>, UsageError> {
  const found: Record<string, string> = {}
  for (const name of toolEnv) {
    if (name === keyVariable) return yield* usage(`--tool-env ${name}: it is set by the runtime`)
    const value = yield* variable(name)
    if (Option.isNone(value)) return yield* usage(`--tool-env ${name}: there is no such variable`)
    found[name] = value.value
  }
  return found
})
