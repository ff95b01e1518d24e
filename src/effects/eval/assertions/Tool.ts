/**
 * `tool`: calls a tool about the final answer; it passes where the tool succeeds. `{{response}}` as an argument stands for the
 * answer. Only tools that do nothing but read are called; for all others, and without tools, it is deferred.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Json, JsonObject } from "../../../tools/JsonText.ts"
import * as JsonText from "../../../tools/JsonText.ts"
import type { FailureKind, ToolOutcome } from "../../../tools/ToolCall.ts"
import { asObject, kind, Tool, WithArgs } from "../Kind.ts"
import { deferred, errored, fail, malformed, pass, type Verdict } from "../Verdict.ts"
import { finalText } from "./FinalText.ts"

const placeholder = "{{response}}"

/** Pointers (RFC 6901) of the places that the answer is put in. */
const places = (value: Json, at = ""): ReadonlyArray<string> => {
  if (typeof value === "string") return value === placeholder ? [at] : []
  if (Array.isArray(value)) return value.flatMap((one, index) => places(one, `${at}/${index}`))
  if (!JsonText.isObject(value)) return []
  return Object.entries(value).flatMap(([key, one]) =>
    places(one, `${at}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`)
  )
}

const filled = (value: Json, text: string): Json => {
  if (typeof value === "string") return value === placeholder ? text : value
  if (Array.isArray(value)) return value.map((one) => filled(one, text))
  if (!JsonText.isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, filled(one, text)])) as JsonObject
}

/** The tool judged the answer; anything else is a tool that could not do its work. */
const judged: ReadonlySet<FailureKind> = new Set(["execution_failed", "not_found"])

/** @param about the answer is among the arguments */
const verdictOf = (tool: string, outcome: ToolOutcome, about: boolean): Verdict => {
  if (outcome._tag === "Succeeded") return pass
  const reason = `${tool}: ${outcome.errors.map((error) => error.reason).join("; ")}`
  if (outcome.kind === "invalid_arguments") return (about ? fail : malformed)(reason)
  return judged.has(outcome.kind) ? fail(reason) : errored(`${outcome.kind}: ${reason}`)
}

export const tool = kind(
  "tool",
  { tool_call: Schema.Struct({ tool: Tool, with_args: Schema.optionalKey(WithArgs) }) },
  ({ tool_call: { tool: name, with_args = {} } }, subject, { tools }) => {
    if (tools === undefined) return deferred("no tools are set up for assertions")
    const found = tools.registry.get(name)
    if (found === undefined) return deferred(`there is no tool ${name} here`)
    if (found.contract.risk !== "read")
      return deferred(`${name} does more than read (${found.contract.risk}), and is not called`)
    const text = finalText(subject)
    if (typeof text !== "string") return text
    const answers = new Set(places(asObject(with_args)))
    const checked = found.check(filled(asObject(with_args), text) as JsonObject)
    if (Result.isFailure(checked)) {
      const reasons = checked.failure.map(({ path, reason }) => (path === "" ? reason : `${path}: ${reason}`))
      // What does not fit is the answer, or what the suite says itself.
      const ours = checked.failure.some(({ pointer }) => !answers.has(pointer))
      return (ours ? malformed : fail)(`with_args do not fit ${name}: ${reasons.join("; ")}`)
    }
    return Effect.map(tools.run(found, checked.success), (outcome) => verdictOf(name, outcome, answers.size > 0))
  }
)
