/**
 * Which codec speaks a model's language, and why. A template is recognised by markers that only its family prints; what
 * is not recognised is refused with the way to override it, never guessed. Adding a family: one line in `codecs`.
 */
import * as Result from "effect/Result"
import { nearest } from "../../tools/Nearest.ts"
import type { Codec } from "./Codec.ts"
import { deepSeekR1, deepSeekV3, deepSeekV31, deepSeekV31LlamaCpp } from "./DeepSeek.ts"
import { deepSeekR10528, deepSeekR10528Vllm } from "./DeepSeek0528.ts"
import { type Family, families } from "./FamilyMarks.ts"
import { functionGemma } from "./FunctionGemma.ts"
import { gemma3 } from "./Gemma3.ts"
import { gemma4, gemma4E2b } from "./Gemma4.ts"
import { genericJson } from "./GenericJson.ts"
import { gptOss, gptOssEarly } from "./GptOss.ts"
import { hermes, hermesVllm } from "./Hermes.ts"
import { llama3, llama3Vllm } from "./Llama3.ts"
import {
  mistral,
  mistral7b,
  mistral7bParallel,
  mistralNemo,
  mistralSmall3,
  mistralV3,
  mistralV7,
  mistralV11,
  mistralV13,
  mistralV15
} from "./Mistral.ts"
import { openAiChat } from "./OpenAiChat.ts"
import { qwen3, qwen3Thinking } from "./Qwen3.ts"
import { qwen25 } from "./Qwen25.ts"
import { qwen35, qwen38 } from "./Qwen35.ts"
import { qwenCoder, qwenCoderFunctions, qwenCoderTools } from "./QwenCoder.ts"
import { qwq } from "./Qwq.ts"
import { ubid } from "./Ubid.ts"

/** Codecs that are built, by id. */
const codecs: ReadonlyMap<string, Codec> = new Map(
  [
    qwen25,
    qwen3,
    qwen3Thinking,
    qwq,
    qwenCoder,
    qwenCoderTools,
    qwenCoderFunctions,
    qwen35,
    qwen38,
    hermes,
    hermesVllm,
    llama3,
    llama3Vllm,
    mistral,
    mistralNemo,
    mistral7b,
    mistral7bParallel,
    mistralSmall3,
    mistralV3,
    mistralV7,
    mistralV11,
    mistralV13,
    mistralV15,
    gptOss,
    gptOssEarly,
    deepSeekV3,
    deepSeekR1,
    deepSeekR10528,
    deepSeekR10528Vllm,
    deepSeekV31,
    deepSeekV31LlamaCpp,
    gemma3,
    gemma4,
    gemma4E2b,
    functionGemma,
    genericJson,
    ubid
  ].map((codec) => [codec.id, codec])
)

/** Spoken with servers, by no model: found by name, and never chosen from a template or offered for one. */
const spokenWithServers: ReadonlyMap<string, Codec> = new Map([[openAiChat.id, openAiChat]])

/** Group names and older spellings. */
const aliases: ReadonlyMap<string, string> = new Map([
  ["qwen-hermes", "qwen2.5"],
  ["qwen25", "qwen2.5"],
  ["qwen2.5-tool-call-v1", "qwen2.5"],
  ["qwen35", "qwen3.5"],
  ["qwen-coder", "qwen3-coder"],
  ["hermes-2-pro", "hermes"],
  ["llama3.1", "llama3"],
  ["llama3.2", "llama3"],
  ["llama3.3", "llama3"],
  ["llama3-python-tag-v1", "llama3"],
  ["gemma2", "gemma3"],
  ["harmony", "gpt-oss"],
  ["generic", "generic-json"],
  ["ember-generic-json-v1", "generic-json"]
])

/** The ids that `byId` knows, in order. */
export const ids: ReadonlyArray<string> = [...codecs.keys()]

export interface Chosen {
  readonly codec: Codec
  /** For people and for the trace: what in the model decided. */
  readonly reason: string
}

export interface NotChosen {
  readonly reason: string
  /** Codec ids that may be meant, best first. */
  readonly candidates: ReadonlyArray<string>
}

/** What a model file says about itself. */
export interface ModelHints {
  readonly template?: string
  readonly architecture?: string
  readonly name?: string
}

/** A codec by id or alias. */
export const byId = (id: string): Result.Result<Codec, NotChosen> => {
  const known = id.trim().toLowerCase()
  const codec = codecs.get(aliases.get(known) ?? known) ?? spokenWithServers.get(known)
  if (codec !== undefined) return Result.succeed(codec)
  const near = nearest(known, [...codecs.keys(), ...aliases.keys()])
  const candidates = near === undefined ? ids : [aliases.get(near) ?? near].filter((name) => codecs.has(name))
  const hint = near === undefined ? "" : ` Did you mean "${near}"?`
  return Result.fail({ reason: `there is no codec "${id}".${hint} Codecs: ${ids.join(", ")}.`, candidates })
}

/** The codec of a model, from its chat template. Architecture and name only make the refusal more helpful. */
export const choose = (model: ModelHints): Result.Result<Chosen, NotChosen> => {
  const override = "Choose one with --codec ID"
  const guesses = guessesFor(model)
  if (model.template === undefined || model.template.trim() === "") {
    return Result.fail({
      reason: `the model brings no chat template, so its call syntax is not known. ${override} (${ids.join(", ")}).`,
      candidates: guesses
    })
  }
  const family = families.find((candidate) => candidate.matches(model.template!))
  if (family === undefined) {
    return Result.fail({
      reason: `the model's chat template has no call syntax that is known here. ${override} (${ids.join(", ")}).`,
      candidates: guesses
    })
  }
  const codec = family.codec === undefined ? undefined : codecs.get(family.codec)
  if (codec === undefined) {
    return Result.fail({
      reason: `the model's chat template is of the family ${family.name} (${family.why}), for which there is no codec. ${override} (${ids.join(", ")}) if the model was trained on another syntax as well.`,
      candidates: guesses
    })
  }
  return Result.succeed({ codec, reason: `${family.name}: ${family.why}` })
}

/** Ids whose family shares a word with the architecture or name. */
const guessesFor = ({ architecture, name }: ModelHints): ReadonlyArray<string> => {
  const words = `${architecture ?? ""} ${name ?? ""}`.toLowerCase()
  return families
    .filter((family: Family) => family.hint !== undefined && words.includes(family.hint))
    .map((family) => family.codec)
    .filter((id): id is string => id !== undefined && codecs.has(id))
}
