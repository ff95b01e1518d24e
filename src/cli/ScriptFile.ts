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

export const Millis = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))

export const Fault = Schema.Struct({
  before: Schema.Natural,
  kind: Schema.Literals([...EngineReason.literals, "hang", "defect"])
})

/** How a turn comes and ends. */
export const timing = {
  stop: Schema.optionalKey(Schema.Literals(["eog", "stop", "length"])),
  millisPerToken: Schema.optionalKey(Millis),
  prefillMillis: Schema.optionalKey(Millis)
}

const Turn = Schema.Struct({
  text: Schema.Union([Schema.String, Schema.Array(Schema.String)]),
  ...timing,
  fault: Schema.optionalKey(Fault)
})

/** A script that plays a model, and nothing else. */
export const ScriptTurns = Schema.Struct({
  turns: Schema.Array(Schema.Union([Schema.String, Turn])),
  contextTokens: Schema.optionalKey(Schema.Natural),
  name: Schema.optionalKey(Schema.String)
})

const decode = Schema.decodeUnknownResult(ScriptTurns, { errors: "all", onExcessProperty: "error" })
const explain = SchemaIssue.makeFormatterStandardSchemaV1()

/** `turns[1].stop: expected …`, one line per problem. */
export const problemsOf = (error: Schema.SchemaError): string =>
  explain(error.issue)
    .issues.map(({ message, path = [] }) => {
      const place = path.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`)).join("")
      return `${place === "" ? "the file" : place.replace(/^\./, "")}: ${message}`
    })
    .join("\n")

/** What a script's text holds, by YAML. */
export const documentOf = (path: string, text: string): Effect.Effect<unknown, UsageError> => {
  // JSON is YAML; a key that is there twice is an error in both.
  const document = parseDocument(text, { uniqueKeys: true })
  const [first] = document.errors
  return first === undefined
    ? Effect.sync(() => document.toJS({ maxAliasCount: 100 }) as unknown)
    : usage(`--script ${path}: it is neither YAML nor JSON: ${first.message}`)
}

/** The script in `path`, named after the file unless it has a name of its own. */
export const read = Effect.fnUntraced(function* (
  path: string
): Effect.fn.Return<Script & { name: string }, UsageError, Stdio.Stdio> {
  const value = yield* documentOf(path, yield* readText("--script", path))
  if (typeof value === "object" && value !== null && "engine" in value) {
    return yield* usage(
      `--script ${path}: it has an engine, so it is the script of a conversation: name its file as the task`
    )
  }
  const script = decode(value)
  if (Result.isFailure(script)) return yield* usage(`--script ${path}: it is no script:\n${problemsOf(script.failure)}`)
  return { name: basename(path), ...script.success }
})
