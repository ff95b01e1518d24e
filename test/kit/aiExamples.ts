/**
 * The AI examples that ship with `effect`, as they are, on a model of ours: their text is copied next to a module that
 * stands where they import a hosted provider's package, and imported from there.
 */
import * as Fs from "node:fs"
import * as Path from "node:path"
import { pathToFileURL } from "node:url"
import * as Tool from "effect/ai/Tool"
import type * as Layer from "effect/Layer"
import * as LlamaLanguageModel from "../../src/effects/ai/LlamaLanguageModel.ts"
import type { EngineError } from "../../src/engine/EngineError.ts"
import type { Model } from "../../src/engine/Model.ts"

const source = Path.resolve(import.meta.dirname, "../../node_modules/effect/ai-docs/src/71_ai")
const slot = "effect-writ/test/aiExamples"

/** Everything the examples import from the packages of two providers. */
const provider = (engine: Layer.Layer<Model, EngineError>, options: LlamaLanguageModel.LlamaLanguageModelOptions) => {
  const client = { layerConfig: () => engine }
  const models = { model: (name: string) => LlamaLanguageModel.model(name, options) }
  return {
    OpenAiClient: client,
    AnthropicClient: client,
    OpenAiLanguageModel: models,
    AnthropicLanguageModel: models,
    OpenAiTool: {
      WebSearch: Tool.providerDefined({ id: "p.search", customName: "WebSearch", providerName: "web_search" })
    }
  }
}

/** The examples' modules by file name. `directory` is emptied by the caller. */
export const examples = async (
  directory: string,
  engine: Layer.Layer<Model, EngineError>,
  options: LlamaLanguageModel.LlamaLanguageModelOptions
) => {
  const made = provider(engine, options)
  Object.assign(globalThis, { [slot]: made })
  Fs.symlinkSync(Path.resolve(import.meta.dirname, "../../node_modules"), Path.join(directory, "node_modules"))
  Fs.cpSync(source, directory, { recursive: true })
  const names = Object.keys(made)
  const lines = names.map((name) => `export const ${name} = given.${name}`)
  Fs.writeFileSync(
    Path.join(directory, "provider.ts"),
    `const given = globalThis[${JSON.stringify(slot)}]\n${lines.join("\n")}\n`
  )
  const files = Fs.readdirSync(directory).filter((name) => name.endsWith(".ts") && name !== "provider.ts")
  const modules: Record<string, Record<string, unknown>> = {}
  for (const name of files) {
    const path = Path.join(directory, name)
    const text = Fs.readFileSync(path, "utf8")
    Fs.writeFileSync(path, text.replaceAll(/from "@effect\/ai-[a-z]+"/g, 'from "./provider.ts"'))
    modules[name] = await import(/* @vite-ignore */ pathToFileURL(path).href)
  }
  return modules
}
