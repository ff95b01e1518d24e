/**
 * ajv, set up for the two dialects. The one module that imports it, so that whoever needs it loads it lazily as a whole
 * (a bundler keeps the named exports of a static import, not those of a dynamic one).
 */
import { Ajv, type ValidateFunction } from "ajv"
import { Ajv2020 } from "ajv/dist/2020.js"
import unevaluated from "ajv/dist/vocabularies/unevaluated/index.js"
import type { JsonObject } from "./JsonText.ts"

export interface Compiler {
  readonly compile: (schema: JsonObject) => ValidateFunction
  /** What its dialect's description of schemas says against a schema; nothing if it is one. */
  readonly complaint: (schema: JsonObject) => string | undefined
}

const options = {
  allErrors: true,
  verbose: true,
  strict: false,
  validateFormats: false,
  ownProperties: true,
  addUsedSchema: false,
  logger: false
} as const

/** One instance serves every schema, since making one costs more than a compilation. Ids in a schema would meet: see `needsReading`. */
const sharing = (make: () => Ajv): Compiler => {
  let made: Ajv | undefined
  const shared = () => {
    made ??= make()
    return made
  }
  return {
    compile: (schema) => shared().compile(schema),
    complaint: (schema) => {
      const ajv = shared()
      return ajv.validateSchema(schema) === true ? undefined : ajv.errorsText(ajv.errors)
    }
  }
}

// The vocabulary is CommonJS: what a default import gives depends on who resolves it.
const vocabulary = (unevaluated as { readonly default?: unknown }).default ?? unevaluated

export const compilers: Readonly<Record<"2020-12" | "draft-07", Compiler>> = {
  "2020-12": sharing(() => new Ajv2020(options)),
  // Closing a composed object needs `unevaluatedProperties`, which draft-07 itself does not know.
  "draft-07": sharing(() => new Ajv({ ...options, unevaluated: true }).addVocabulary(vocabulary as never))
}

let descriptions: Ajv2020["schemas"] | undefined

/** The description of a dialect, or a part of it, by its address. */
export const described = (uri: string): JsonObject | undefined => {
  descriptions ??= { ...new Ajv2020(options).schemas, ...new Ajv(options).schemas }
  return descriptions[uri]?.schema as JsonObject | undefined
}
