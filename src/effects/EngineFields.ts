/** Settings about how a local model is evaluated and which server stands in for one, and how each is read. Looks at no file. */
import * as Result from "effect/Result"
import type { Adapter, CacheType } from "../engine/LlamaTuning.ts"
import { parseAddress } from "../engine/OpenAiAddress.ts"
import { parseVariableName } from "./McpSettings.ts"
import { choice, expected, type Field, flag, list, number, onOff } from "./SettingForms.ts"

export interface EngineWords {
  readonly flashAttention: "auto" | boolean
  readonly cacheType: CacheType
  readonly lora: ReadonlyArray<Adapter>
  /** Where native code runs. */
  readonly isolation: "thread" | "process"
  /** How often an engine that died is opened again within ten minutes. */
  readonly restarts: number
  /** A server that the model runs on; undefined is this machine's own engine. */
  readonly engineUrl: string | undefined
  /** How it is talked to; `auto` is found out. */
  readonly engineApi: "auto" | "completions" | "chat"
  /** The variable its key is in; undefined is `WRIT_API_KEY`, if that is there. */
  readonly apiKeyEnv: string | undefined
  readonly allowPlainHttp: boolean
}

const parseAdapter = (said: string): Result.Result<Adapter, string> => {
  const [, path, number] = /^(.+)=(-?\d+(?:\.\d+)?)$/.exec(said) ?? []
  return Result.succeed(path === undefined ? { path: said } : { path, scale: Number(number) })
}

const flashAttention: Field<"auto" | boolean> = {
  description: "Flash attention (default auto: where the device has it)",
  form: "auto|on|off",
  choices: ["auto", "on", "off"],
  fallback: "auto",
  read: (raw) => {
    if (raw === "auto") return Result.succeed("auto")
    const said = onOff(raw)
    return Result.isSuccess(said) ? said : expected("auto, on or off")
  }
}

const engineUrl: Field<string | undefined> = {
  description: "Run on an OpenAI-compatible server; --model is then a name of its (see docs/openai.md)",
  form: "URL",
  fallback: undefined,
  // Whoever wrote the file would be told everything.
  notFromFile: (said) => said !== undefined,
  read: (raw) =>
    typeof raw === "string" ? Result.map(parseAddress(raw), () => raw) : expected("the address of a server")
}

const apiKeyEnv: Field<string | undefined> = {
  description: "The variable that holds the server's key (default WRIT_API_KEY)",
  form: "VARIABLE",
  fallback: undefined,
  notFromFile: (said) => said !== undefined,
  read: (raw) => (typeof raw === "string" ? parseVariableName(raw) : expected("the name of a variable"))
}

export const engine: { readonly [K in keyof EngineWords]: Field<EngineWords[K]> } = {
  flashAttention,
  cacheType: choice(
    "How the context is kept: less memory, other numbers (default f16; the others need flash attention)",
    ["f16", "q8_0", "q4_0"],
    "f16"
  ),
  lora: list("A LoRA adapter for the model, with its weight (default 1); repeatable", "FILE[=WEIGHT]", parseAdapter),
  isolation: choice(
    "Where the engine runs; a crash in a process of its own ends nothing else (default thread)",
    ["thread", "process"],
    "thread"
  ),
  restarts: number("How often an engine that died is opened again within ten minutes (default 3)", "N", 3, {
    least: 0,
    most: 1000,
    whole: true
  }),
  engineUrl,
  engineApi: choice(
    "How the server is talked to: prompts of the codec's, or messages (default auto: whichever fits)",
    ["auto", "completions", "chat"],
    "auto"
  ),
  apiKeyEnv,
  allowPlainHttp: {
    ...flag("Send the server's key over a connection that is not encrypted"),
    notFromFile: (said) => said
  }
}

/** The settings as the engine takes them; what is as it is by default is left out. */
export const tuningOf = ({ cacheType, flashAttention, lora }: EngineWords) => ({
  ...(flashAttention === "auto" ? {} : { flashAttention }),
  ...(cacheType === "f16" ? {} : { cacheType }),
  ...(lora.length === 0 ? {} : { lora })
})

/** The settings as they concern where the engine runs, and what happens when it dies. */
export const lifeOf = ({ isolation, restarts }: Pick<EngineWords, "isolation" | "restarts">) => ({
  ...(isolation === "thread" ? {} : { isolation }),
  ...(restarts === 3 ? {} : { restarts: { times: restarts } })
})
