/**
 * Public surface "effect-writ/ai": a local model file for programs that are written against `effect/ai`, with its text,
 * streams, objects, toolkits and chats; and the other way round, any `LanguageModel` as the engine of a run.
 */
export type { AiSettings } from "./AiSettings.ts"
export { CurrentSettings } from "./AiSettings.ts"
export * as LanguageModelEngine from "./LanguageModelEngine.ts"
export * as LlamaLanguageModel from "./LlamaLanguageModel.ts"
