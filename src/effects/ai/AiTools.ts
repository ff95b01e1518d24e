/** The tools of a request as a model is shown them, and which of them it may or must call. */
import * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Tool from "effect/ai/Tool"
import * as Result from "effect/Result"
import type { JsonObject } from "../../tools/JsonText.ts"
import { parametersOf } from "../../tools/Parameters.ts"
import type { ToolSpec } from "../../tools/ToolCall.ts"

export interface AiTools {
  /** In the order of the toolkit. */
  readonly shown: ReadonlyArray<ToolSpec>
  /** Calls of these are read; empty: nothing is a call. */
  readonly heard: ReadonlyArray<ToolSpec>
  /** The turn has to begin with a call. */
  readonly required: boolean
  /** Names that nobody declared go to the caller. */
  readonly deferred: boolean
}

/** Specs cost a walk through their schema, and toolkits live longer than requests. */
const known = new WeakMap<Tool.Any, ToolSpec>()

const specOf = (tool: Tool.Any): Result.Result<ToolSpec, AiError.AiErrorReason> => {
  const before = known.get(tool)
  if (before !== undefined) return Result.succeed(before)
  const refuse = (description: string) =>
    Result.fail(new AiError.ToolConfigurationError({ toolName: tool.name, description }))
  if (Tool.isProviderDefined(tool)) return refuse("it runs at its own provider, and a local model has none")
  return Result.try({
    try: () => {
      const parameters =
        Tool.isDynamic(tool) && tool.jsonSchema !== undefined
          ? (tool.jsonSchema as JsonObject)
          : parametersOf(tool.parametersSchema)
      const spec: ToolSpec = { name: tool.name, description: Tool.getDescription(tool) ?? "", parameters }
      known.set(tool, spec)
      return spec
    },
    catch: (cause) => (cause instanceof Error ? cause.message : String(cause))
  }).pipe(
    Result.match({ onSuccess: (spec) => Result.succeed(spec), onFailure: (said) => refuse(`its parameters: ${said}`) })
  )
}

export const toolsOf = ({
  toolCallValidation,
  toolChoice,
  tools
}: LanguageModel.ProviderOptions): Result.Result<AiTools, AiError.AiErrorReason> => {
  const deferred = toolCallValidation === "deferred"
  const shown: Array<ToolSpec> = []
  // A model that must not call is not shown what it could call.
  for (const tool of toolChoice === "none" ? [] : tools) {
    const spec = specOf(tool)
    if (Result.isFailure(spec)) return Result.fail(spec.failure)
    shown.push(spec.success)
  }
  if (typeof toolChoice === "string") {
    return Result.succeed({ shown, heard: shown, required: toolChoice === "required", deferred })
  }
  if ("oneOf" in toolChoice) {
    return Result.succeed({ shown, heard: shown, required: toolChoice.mode === "required", deferred })
  }
  const heard = shown.filter(({ name }) => name === toolChoice.tool)
  const availableTools = shown.map(({ name }) => name)
  return heard.length === 0
    ? Result.fail(new AiError.ToolNotFoundError({ toolName: toolChoice.tool, availableTools }))
    : Result.succeed({ shown, heard, required: true, deferred })
}
