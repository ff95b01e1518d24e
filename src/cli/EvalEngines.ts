/**
 * What an evaluation may ask besides the conversations: an engine as judge, an engine for vectors, tools that read. Opened only
 * if the suite asks for it.
 */
import { resolve } from "node:path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { ToolPool } from "../actors/ToolPool.ts"
import type { Embedder } from "../effects/eval/Embedder.ts"
import { fromModel, type JudgeEngine } from "../effects/eval/JudgeEngine.ts"
import type { Around, ToolDoor } from "../effects/eval/Kind.ts"
import type { Suite } from "../effects/eval/Suite.ts"
import { load } from "../effects/Settings.ts"
import * as Wiring from "../effects/Wiring.ts"
import * as Families from "../engine/codecs/Families.ts"
import { Model } from "../engine/Model.ts"
import { usage } from "./Ending.ts"
import { checkCodec, checkModel, choose, locate } from "./ModelChoice.ts"
import { Provisions } from "./Provisions.ts"

export interface EngineFlags {
  /** A GGUF file, or `hf:…`. */
  readonly judgeModel: string | undefined
  readonly judgeCodec: string | undefined
  /** A script of replies instead of a model. */
  readonly judgeScript: string | undefined
  /** A GGUF file, `hf:…`, or `tiny` for the one that ships. */
  readonly embeddingModel?: string | undefined
}

/** Milliseconds a tool of an assertion may take. */
const toolMillis = 60_000

/** What is wrong with a model is said of the flag that names it. */
const checkFlag = (flag: string, model: string | undefined, modelsDir: string) =>
  Effect.catchTag(checkModel(model, modelsDir), "UsageError", ({ message }) => usage(message.replace("--model", flag)))

export const check = Effect.fnUntraced(function* ({
  embeddingModel,
  judgeCodec,
  judgeModel,
  judgeScript
}: EngineFlags) {
  if (judgeModel !== undefined && judgeScript !== undefined) {
    return yield* usage("give --judge-model or --judge-script, not both")
  }
  if (judgeCodec !== undefined && judgeModel === undefined && judgeScript === undefined) {
    return yield* usage("--judge-codec: it goes with --judge-model or --judge-script")
  }
  yield* checkCodec(judgeCodec)
  if (judgeModel === undefined && embeddingModel === undefined) return
  const { modelsDir } = (yield* load({})).settings
  yield* checkFlag("--judge-model", judgeModel, modelsDir)
  yield* checkFlag("--embedding-model", embeddingModel, modelsDir)
})

const asks = ({ cases }: Suite, ...types: ReadonlyArray<string>): boolean =>
  cases.some(({ assertions }) => assertions.some(({ type }) => types.includes(type)))

const judgeOf = Effect.fnUntraced(function* ({ judgeCodec, judgeModel, judgeScript }: EngineFlags) {
  if (judgeScript !== undefined) {
    const { read } = yield* Effect.promise(() => import("./ScriptFile.ts"))
    const { make } = yield* Effect.promise(() => import("../engine/ScriptedModel.ts"))
    const script = yield* read(judgeScript)
    const codec = Result.getOrThrow(Families.byId(judgeCodec ?? "qwen2.5"))
    return fromModel({ model: make(script).model, codec })
  }
  if (judgeModel === undefined) return undefined
  const { modelsDir } = (yield* load({})).settings
  const chosen = yield* choose({ model: judgeModel, codec: judgeCodec, modelsDir }, () => {})
  const context = yield* Layer.build(Wiring.layerModel({ model: chosen.path, sessions: 1, modelHash: false }))
  const codec = Result.getOrThrow(Families.byId(chosen.codec))
  return fromModel({ model: Context.get(context, Model), codec })
})

const embedderOf = Effect.fnUntraced(function* (embeddingModel: string) {
  const { modelsDir } = (yield* load({})).settings
  const path = yield* locate({ model: embeddingModel, modelsDir }, () => {})
  const { embed, identity } = yield* Wiring.makeEmbedder({ model: path })
  return { name: identity.name, embed } satisfies Embedder
})

const toolsOf = Effect.fnUntraced(function* (project: string) {
  const registry = yield* (yield* Provisions).tools
  const pool = Context.get(yield* Layer.build(Wiring.layerTools({})), ToolPool)
  const settings = { workspace: resolve(project), fixtures: {} }
  let calls = 0
  return {
    registry,
    run: (tool, args) =>
      Effect.suspend(() =>
        pool.run({ callId: `eval-${calls++}`, tool, arguments: args, deadlineMillis: toolMillis, settings })
      )
  } satisfies ToolDoor
})

/** Only what the suite has assertions for. */
export const open = Effect.fnUntraced(function* (flags: EngineFlags, suite: Suite, project: string) {
  const judge: JudgeEngine | undefined = asks(suite, "judge") ? yield* judgeOf(flags) : undefined
  const embedder: Embedder | undefined =
    flags.embeddingModel !== undefined && asks(suite, "text_semantic_match")
      ? yield* embedderOf(flags.embeddingModel)
      : undefined
  const tools: ToolDoor | undefined = asks(suite, "tool") ? yield* toolsOf(project) : undefined
  return {
    ...(judge === undefined ? {} : { judge }),
    ...(embedder === undefined ? {} : { embedder }),
    ...(tools === undefined ? {} : { tools })
  } satisfies Partial<Around>
})
