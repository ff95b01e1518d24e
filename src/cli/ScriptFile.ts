/** Reads `--script FILE`: what a model writes, turn by turn, in YAML or JSON. Loaded only when there is one. */

import { basename } from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import type * as Stdio from "effect/Stdio"
import { parseDocument } from "yaml"
import { EngineReason } from "../engine/EngineError.ts"
import type { Script } from "../engine/ScriptedModel.ts"
import { type UsageError, usage } from "./Ending.ts"
import { readText } from "./Inputs.ts"

const Millis = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))

const Turn = Schema.Struct({
  text: Schema.Union([Schema.String, Schema.Array(Schema.String)]),
  stop: Schema.optionalKey(Schema.Literals(["eog", "stop", "length"])),
  millisPerToken: Schema.optionalKey(Millis),
  prefillMillis: Schema.optionalKey(Millis),
  fault: Schema.optionalKey(
    Schema.Struct({
      before: Schema.Natural,
      kind: Schema.Literals([...EngineReason.literals, "hang", "defect"])
    })
  )
})

const File = Schema.Struct({
  turns: Schema.Array(Schema.Union([Schema.String, Turn])),
  contextTokens: Schema.optionalKey(Schema.Natural),
  name: Schema.optionalKey(Schema.String)
})

const decode = Schema.decodeUnknownResult(File, { errors: "all", onExcessProperty: "error" })
const explain = SchemaIssue.makeFormatterStandardSchemaV1()

/** `turns[1].stop: expected …`, one line per problem. */
const problemsOf = (error: Schema.SchemaError): string =>
  explain(error.issue)
    .issues.map(({ message, path = [] }) => {
      const place = path.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`)).join("")
      return `${place === "" ? "the file" : place.replace(/^\./, "")}: ${message}`
    })
    .join("\n")

/** The script in `path`, named after the file unless it has a name of its own. */
export const read = Effect.fnUntraced(function* (
  path: string
): Effect.fn.Return<Script & { name: string }, UsageError, Stdio.Stdio> {
  const text = yield* readText("--script", path)
  // JSON is YAML; a key that is there twice is an error in both.
  const document = parseDocument(text, { uniqueKeys: true })
  const [first] = document.errors
  if (first !== undefined) return yield* usage(`--script ${path}: it is neither YAML nor JSON: ${first.message}`)
  const script = decode(document.toJS({ maxAliasCount: 100 }))
  if (Result.isFailure(script)) return yield* usage(`--script ${path}: it is no script:\n${problemsOf(script.failure)}`)
  return { name: basename(path), ...script.success }
})
