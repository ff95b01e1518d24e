/** Which grammar holds the calls of a run, if any: decided once, from the codec and the tools. */
import type { Codec } from "../engine/codecs/Codec.ts"
import type { CompiledGrammar } from "../engine/Grammar.ts"
import type { ModelIdentity } from "../engine/Model.ts"
import type { Registry } from "../tools/Registry.ts"

/** Making a grammar takes longer than a short run, and sessions of one agent share their tools. */
const known = new WeakMap<Registry, Map<string, CompiledGrammar | undefined>>()

/** Absent where it is switched off, the family's calls have no grammar, there are no tools, or the engine cannot do it. */
export const constraintOf = (
  on: boolean,
  codec: Codec,
  registry: Registry,
  model: ModelIdentity
): CompiledGrammar | undefined => {
  if (!on || codec.grammar === undefined || registry.specs.length === 0 || model.engine !== "llama") return undefined
  const made = known.get(registry) ?? new Map<string, CompiledGrammar | undefined>()
  known.set(registry, made)
  if (!made.has(codec.id)) made.set(codec.id, codec.grammar(registry.specs))
  return made.get(codec.id)
}
