/**
 * What is amiss in the contract of a tool, and what to do about it. Looks at what a tool says of itself; whether that is true
 * it cannot know.
 */
import { argumentsOf } from "../engine/Grammar.ts"
import { json } from "../engine/grammar/Spelling.ts"
import { isObject, type JsonObject } from "../tools/JsonText.ts"
import type { RegisteredTool } from "../tools/Registry.ts"
import { type FindingCode, fileRemedy } from "./FileRemedies.ts"

export interface Finding {
  readonly tool: string
  readonly code: FindingCode
  /** What is amiss, in words. */
  readonly what: string
  readonly remedy: string
}

interface Said extends Omit<Finding, "tool"> {
  readonly argument?: string
}

const silent: Said = {
  code: "says_nothing",
  what: "it says nothing of itself, so the worst is assumed: it acts outside, cannot be undone, and is never tried again",
  remedy:
    'Contract.declare(tool, { risk, ledger, retry, reversible, evidence, post }), or risk: "read" if it only looks'
}

const selfReport: Said = {
  code: "self_report",
  what: "only its own word says that it was done",
  remedy: "a post that looks at the world, and evidence from a probe, a sensor or a person"
}

const noPost: Said = {
  code: "no_postcondition",
  what: "nothing is looked at after the call but the shape of its result",
  remedy: "post: (params, result) => holds() or broken(why), from a look at what was to be there"
}

const retryNever = (ledger: string): Said => ({
  code: "retry_never",
  what: `a call whose answer is lost is given up, though ledger mode "${ledger}" makes a repeat harmless`,
  remedy: 'retry: "safe"'
})

const touchesMissing = ({ contract, name }: RegisteredTool): Said => ({
  code: "touches_missing",
  what:
    contract.risk === "read"
      ? "it does not say what it reads, so --grant and --deny do not reach it"
      : `it does not say what it touches, so it can only be permitted as a whole (execute:tool:${name})`,
  remedy: 'touches: (params) => [{ verb, resource: "kind:name" }], empty for none'
})

/** Does the tool say nothing at all? One that says it reads has said what matters. */
export const saysNothing = ({ contract }: RegisteredTool): boolean => !contract.stated && contract.risk !== "read"

const contractFindings = (tool: RegisteredTool): ReadonlyArray<Said> => {
  const { asksUser, evidence, functions, ledger, retry, risk } = tool.contract
  if (saysNothing(tool)) return [silent]
  const touches = functions.includes("touches") || asksUser ? [] : [touchesMissing(tool)]
  if (risk === "read") return touches
  return [
    ...touches,
    ...(evidence.source === "self" ? [selfReport] : []),
    ...(retry === "never" && (ledger === "atomic" || ledger === "external") ? [retryNever(ledger)] : []),
    ...(tool.terms.post === undefined ? [noPost] : [])
  ]
}

/** Is there a description on a property, or on what it refers to? */
const isDescribed = (schema: JsonObject, definitions: JsonObject): boolean => {
  const said = schema["description"]
  if (typeof said === "string" && said.trim() !== "") return true
  const parts = schema["allOf"]
  if (Array.isArray(parts) && parts.some((part) => isObject(part) && isDescribed(part, definitions))) return true
  const named = /^#\/(?:\$defs|definitions)\/(.+)$/.exec(String(schema["$ref"]))?.[1]
  const target = named === undefined ? undefined : definitions[named]
  return target !== undefined && isObject(target) && isDescribed(target, {})
}

const objectAt = (schema: JsonObject, key: string): JsonObject => {
  const found = schema[key] ?? null
  return isObject(found) ? found : {}
}

const descriptions = ({ spec }: RegisteredTool): ReadonlyArray<Said> => {
  const { description, parameters } = spec
  const definitions = { ...objectAt(parameters, "definitions"), ...objectAt(parameters, "$defs") }
  const bare = Object.entries(objectAt(parameters, "properties")).flatMap(([name, property]) =>
    isObject(property) && isDescribed(property, definitions) ? [] : [name]
  )
  return [
    ...(description.trim() === ""
      ? [
          {
            code: "no_description",
            what: "the model is not told what it does",
            remedy: "description: one sentence"
          } as const
        ]
      : []),
    ...bare.map(
      (name): Said => ({
        code: "no_description",
        argument: name,
        what: `the model is not told what the argument ${name} is`,
        remedy: `.annotate({ description }) on ${name}, best with an example`
      })
    )
  ]
}

const uncarried = ({ spec }: RegisteredTool): ReadonlyArray<Said> =>
  argumentsOf([spec], json).notCarried.map(({ keyword, pointer }) => ({
    code: "not_in_grammar",
    what: `${keyword} at ${pointer === "" ? "the arguments" : pointer} cannot hold the model while it writes; calls that break it are refused afterwards`,
    remedy: "say it in the description too, or use what a grammar carries: types, enum, const, bounds and lengths"
  }))

/**
 * All that is amiss with a tool.
 *
 * @param isFile it is a file: what is to be done is said in the keys of that
 */
export const findingsOf = (tool: RegisteredTool, isFile = false): ReadonlyArray<Finding> =>
  [...contractFindings(tool), ...descriptions(tool), ...uncarried(tool)].map(({ argument, code, remedy, what }) => ({
    tool: tool.name,
    code,
    what,
    remedy: isFile ? fileRemedy(code, argument) : remedy
  }))
