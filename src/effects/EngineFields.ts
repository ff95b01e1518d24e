/** Settings about how a local model is evaluated, and how each is read. Looks at no file. */
import * as Result from "effect/Result"
import type { Adapter, CacheType } from "../engine/LlamaTuning.ts"
import { choice, expected, type Field, list, onOff } from "./SettingForms.ts"

export interface EngineWords {
  readonly flashAttention: "auto" | boolean
  readonly cacheType: CacheType
  readonly lora: ReadonlyArray<Adapter>
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

export const engine: { readonly [K in keyof EngineWords]: Field<EngineWords[K]> } = {
  flashAttention,
  cacheType: choice(
    "How the context is kept: less memory, other numbers (default f16; the others need flash attention)",
    ["f16", "q8_0", "q4_0"],
    "f16"
  ),
  lora: list("A LoRA adapter for the model, with its weight (default 1); repeatable", "FILE[=WEIGHT]", parseAdapter)
}

/** The settings as the engine takes them; what is as it is by default is left out. */
export const tuningOf = ({ cacheType, flashAttention, lora }: EngineWords) => ({
  ...(flashAttention === "auto" ? {} : { flashAttention }),
  ...(cacheType === "f16" ? {} : { cacheType }),
  ...(lora.length === 0 ? {} : { lora })
})
