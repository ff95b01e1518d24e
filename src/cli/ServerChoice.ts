/**
 * From `--engine-url` to a server that has been asked what it is, and the codec it is talked to with. Its key is read here
 * and handed on; it is in no message, no record and no command line.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { variable } from "../actors/McpServer.ts"
import { flagOf, type Settings } from "../effects/SettingFields.ts"
import type { Resolved } from "../effects/Settings.ts"
import * as Wiring from "../effects/Wiring.ts"
import * as Families from "../engine/codecs/Families.ts"
import { openAiChat, speaksChat } from "../engine/codecs/OpenAiChat.ts"
import type { EngineError } from "../engine/EngineError.ts"
import type { Model, ModelIdentity } from "../engine/Model.ts"
import { isKey, parseAddress } from "../engine/OpenAiAddress.ts"
import { type UsageError, usage } from "./Ending.ts"
import { sayCut } from "./EngineSettings.ts"

/** Where a server's key is, unless another variable is named. */
const keyVariable = "WRIT_API_KEY"

export interface ChosenServer {
  readonly model: Model["Service"]
  readonly codec: string
  /** For people: the model, where it is, how it is talked to. */
  readonly title: string
}

type Words = Pick<
  Settings,
  "allowPlainHttp" | "apiKeyEnv" | "codec" | "context" | "engineApi" | "engineUrl" | "model" | "script"
>

const keyOf = Effect.fnUntraced(function* (
  name: string | undefined
): Effect.fn.Return<Redacted.Redacted<string> | undefined, UsageError> {
  const found = Option.getOrElse(yield* variable(name ?? keyVariable), () => "")
  if (found === "") {
    return name === undefined
      ? undefined
      : yield* usage(`--api-key-env ${name}: there is no such variable, or it is empty`)
  }
  return isKey(found)
    ? Redacted.make(found)
    : yield* usage(`${name ?? keyVariable}: it holds no key: a header cannot hold it`)
})

/**
 * What can be said of the settings before anybody is asked. Without a server, how one would be talked to is of no account,
 * unless this very command line says it.
 */
export const check = Effect.fnUntraced(function* ({
  origins,
  settings: words
}: Pick<Resolved, "origins"> & { readonly settings: Words }): Effect.fn.Return<void, UsageError> {
  const { allowPlainHttp, apiKeyEnv, engineUrl } = words
  if (engineUrl === undefined) {
    const stray = (["apiKeyEnv", "engineApi"] as const).find((name) => origins[name] === "flag")
    return stray === undefined ? undefined : yield* usage(`--${flagOf(stray)}: it goes with --engine-url`)
  }
  if (words.script !== undefined) return yield* usage("give --engine-url or --script, not both")
  const { confidential, shown } = Result.getOrThrow(parseAddress(engineUrl))
  const key = yield* keyOf(apiKeyEnv)
  if (key === undefined || confidential || allowPlainHttp) return
  return yield* usage(
    `--engine-url ${shown}: the key in ${apiKeyEnv ?? keyVariable} would be sent unencrypted; use https, or --allow-plain-http if nobody listens there`
  )
})

const codecOf = (identity: ModelIdentity, wanted: string | undefined): Effect.Effect<string, UsageError> => {
  if (speaksChat(identity)) {
    return wanted === undefined || wanted === openAiChat.id
      ? Effect.succeed(openAiChat.id)
      : usage(
          `--codec ${wanted}: this server is told messages (${identity.build?.["because"]}); for prompts of a codec add --engine-api completions`
        )
  }
  const found = wanted === undefined ? undefined : Families.byId(wanted)
  if (found !== undefined)
    return Result.isSuccess(found) ? Effect.succeed(found.success.id) : usage(found.failure.reason)
  const chosen = Families.choose(identity)
  return Result.isSuccess(chosen)
    ? Effect.succeed(chosen.success.codec.id)
    : usage(`--engine-url: ${chosen.failure.reason} Or let the server write the prompts, with --engine-api chat.`)
}

/** Asks the server what it is. The address was checked. */
export const choose = Effect.fnUntraced(function* (
  words: Words & { readonly engineUrl: string }
): Effect.fn.Return<ChosenServer, EngineError | UsageError, Scope.Scope> {
  const { allowPlainHttp, apiKeyEnv, codec, context, engineApi, engineUrl, model } = words
  const apiKey = yield* keyOf(apiKeyEnv)
  const found = yield* Wiring.makeServer({
    url: engineUrl,
    allowPlainHttp,
    ...(model === undefined ? {} : { model }),
    ...(engineApi === "auto" ? {} : { api: engineApi }),
    ...(codec === undefined ? {} : { codec }),
    ...(context === undefined ? {} : { contextTokens: context }),
    ...(apiKey === undefined ? {} : { apiKey })
  })
  const { build, contextTokens, name } = found.identity
  yield* sayCut(context, contextTokens, `${name} holds no more there`)
  return {
    model: found,
    codec: yield* codecOf(found.identity, codec),
    title: `${name} at ${build?.["server"]} (${build?.["kind"]}, ${build?.["api"]})`
  }
})
