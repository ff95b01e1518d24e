/**
 * The form of `NAME.tool.json`: what a tool is and what is started for it. Plain data in, a declaration or every problem with its
 * place out; reads no file but does say what a value should have been.
 */
import { isObject, type Json, type JsonObject } from "../JsonText.ts"
import { nearest } from "../Nearest.ts"
import { keyVariable } from "./KeyVariable.ts"

/** One thing that is wrong in a file. `place`: keys in dotted form, or a line; empty for the file as a whole. */
export interface FileProblem {
  readonly file: string
  readonly place: string
  readonly message: string
}

export const problemText = ({ file, message, place }: FileProblem): string =>
  `${file}: ${place === "" ? "" : `${place}: `}${message}`

export interface ToolDeclaration {
  readonly name: string
  readonly description: string
  readonly parameters: JsonObject
  /** What is started: a program with its fixed arguments, or a module for Node. */
  readonly start:
    | { readonly _tag: "Command"; readonly command: string; readonly args: ReadonlyArray<string> }
    | { readonly _tag: "Module"; readonly file: string }
  /** Names of variables the program gets from here; it gets no others but PATH and the key. */
  readonly env: ReadonlyArray<string>
  readonly timeoutMillis: number | undefined
  readonly cwd: "tool" | "workspace"
  readonly output: "json" | "text"
  readonly outputSchema: JsonObject | undefined
  readonly maxOutputBytes: number
  readonly contract: Json | undefined
}

/** Bytes of standard output, unless the file says otherwise, and at most. */
const standardOutputBytes = 1024 * 1024
const mostOutputBytes = 8 * 1024 * 1024

type Say = (place: string, message: string) => undefined

const typeOf = (value: Json): string =>
  value === null ? "null" : Array.isArray(value) ? "an array" : `a ${typeof value}`

const textAt = (form: JsonObject, key: string, say: Say, needed: string | undefined): string | undefined => {
  const value = form[key]
  if (value === undefined) return needed === undefined ? undefined : say(key, `it is missing: ${needed}`)
  if (typeof value !== "string") return say(key, `expected a text, got ${typeOf(value)}`)
  return value.trim() === "" ? say(key, `it is empty${needed === undefined ? "" : `: ${needed}`}`) : value
}

const objectAt = (form: JsonObject, key: string, say: Say, needed: string | undefined): JsonObject | undefined => {
  const value = form[key]
  if (value === undefined) return needed === undefined ? undefined : say(key, `it is missing: ${needed}`)
  return isObject(value) ? value : say(key, `expected a JSON Schema that is an object, got ${typeOf(value)}`)
}

const textsAt = (form: JsonObject, key: string, say: Say): ReadonlyArray<string> | undefined => {
  const value = form[key]
  if (value === undefined) return undefined
  if (!Array.isArray(value)) return say(key, `expected a list of texts, got ${typeOf(value)}`)
  for (const [at, one] of value.entries()) {
    if (typeof one !== "string") say(`${key}[${at}]`, `expected a text, got ${typeOf(one as Json)}`)
    else if (one.includes("\0")) say(`${key}[${at}]`, "it contains a NUL character")
  }
  return value.filter((one) => typeof one === "string")
}

const numberAt = (form: JsonObject, key: string, most: number, say: Say): number | undefined => {
  const value = form[key]
  if (value === undefined) return undefined
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 1 && value <= most
    ? value
    : say(key, `expected a whole number from 1 to ${most}, got ${typeof value === "number" ? value : typeOf(value)}`)
}

const choiceAt = <A extends string>(form: JsonObject, key: string, choices: readonly [A, ...Array<A>], say: Say): A => {
  const value = form[key]
  if (value === undefined) return choices[0]
  const found = choices.find((one) => one === value)
  if (found === undefined) say(key, `expected "${choices.join('" or "')}", got ${JSON.stringify(value).slice(0, 40)}`)
  return found ?? choices[0]
}

const keys = [
  "$schema",
  "name",
  "description",
  "parameters",
  "command",
  "module",
  "env",
  "timeoutMillis",
  "cwd",
  "output",
  "outputSchema",
  "maxOutputBytes",
  "contract"
]

/** What other forms call a key of ours. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ["inputSchema", "parameters"],
  ["input_schema", "parameters"],
  ["schema", "parameters"],
  ["args", "command"],
  ["cmd", "command"],
  ["exec", "command"],
  ["environment", "env"],
  ["timeout", "timeoutMillis"],
  ["deadlineMillis", "timeoutMillis"]
])

const startOf = (form: JsonObject, say: Say): ToolDeclaration["start"] | undefined => {
  const command = textsAt(form, "command", say)
  const file = textAt(form, "module", say, undefined)
  if (form["command"] === undefined && form["module"] === undefined) {
    return say(
      "",
      'it does not say what to start: give "command" (a program and its arguments as a list) or "module" (a file)'
    )
  }
  if (form["command"] !== undefined && form["module"] !== undefined)
    return say("module", 'give "command" or "module", not both')
  if (file !== undefined) return { _tag: "Module", file }
  const [program, ...args] = command ?? []
  if (command === undefined) return undefined
  return program === undefined || program.trim() === ""
    ? say("command", 'the first one is the program, as in ["python3", "count.py"]')
    : { _tag: "Command", command: program, args }
}

const envOf = (form: JsonObject, say: Say): ReadonlyArray<string> => {
  const names = textsAt(form, "env", say) ?? []
  for (const [at, name] of names.entries()) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      say(
        `env[${at}]`,
        `${JSON.stringify(name.slice(0, 40))} is not the name of a variable: names only, values come from the environment`
      )
    } else if (name === keyVariable) say(`env[${at}]`, `${keyVariable} is set by the runtime`)
  }
  return names
}

/** A parsed file as a declaration, or everything that is wrong with it. `fallbackName`: the NAME of the file. */
export const read = (file: string, fallbackName: string, value: Json): ToolDeclaration | ReadonlyArray<FileProblem> => {
  const problems: Array<FileProblem> = []
  const say: Say = (place, message) => void problems.push({ file, place, message })
  if (!isObject(value)) return [{ file, place: "", message: `expected an object, got ${typeOf(value)}` }]
  for (const key of Object.keys(value).filter((one) => !keys.includes(one))) {
    const near = otherNames.get(key) ?? nearest(key, keys)
    say(
      key,
      `there is no such key; ${near === undefined ? `there are ${keys.slice(1).join(", ")}` : `did you mean "${near}"?`}`
    )
  }
  const name = textAt(value, "name", say, undefined) ?? fallbackName
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
    say(
      "name",
      `${JSON.stringify(name.slice(0, 80))} is not the name of a tool: 1 to 64 letters, digits, underscores or hyphens`
    )
  }
  const description = textAt(value, "description", say, "one sentence that tells the model what it does")
  const parameters = objectAt(value, "parameters", say, 'the JSON Schema of its arguments, {"type":"object"} for none')
  const start = startOf(value, say)
  const declaration = {
    name,
    env: envOf(value, say),
    timeoutMillis: numberAt(value, "timeoutMillis", 86_400_000, say),
    cwd: choiceAt(value, "cwd", ["tool", "workspace"], say),
    output: choiceAt(value, "output", ["json", "text"], say),
    outputSchema: objectAt(value, "outputSchema", say, undefined),
    maxOutputBytes: numberAt(value, "maxOutputBytes", mostOutputBytes, say) ?? standardOutputBytes,
    contract: value["contract"]
  }
  if (declaration.outputSchema !== undefined && declaration.output === "text") {
    say("outputSchema", 'it is for JSON: leave it out, or "output": "text"')
  }
  if (problems.length > 0 || description === undefined || parameters === undefined || start === undefined)
    return problems
  return { ...declaration, description, parameters, start }
}
