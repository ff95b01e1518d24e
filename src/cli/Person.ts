/** Who says something on the command line. */
import { userInfo } from "node:os"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type UsageError, usage } from "./Ending.ts"

const systemUser = (): string => {
  try {
    return userInfo().username
  } catch {
    return ""
  }
}

/** The name that was given (`--by`), else the user of this shell, else of this process. */
export const personOf = Effect.fnUntraced(function* (by: string | undefined): Effect.fn.Return<string, UsageError> {
  if (by !== undefined) return by.trim() === "" ? yield* usage("--by: expected a name") : by
  for (const name of ["USER", "LOGNAME"]) {
    const found = yield* Effect.orElseSucceed(Config.option(Config.String(name)), () => Option.none<string>())
    if (Option.isSome(found) && found.value.trim() !== "") return found.value
  }
  const user = systemUser()
  return user === "" ? yield* usage("nobody is logged in here: say who you are with --by NAME") : user
})
