/** Texts with places for arguments, as contract files write resources and keys: `workspace:{path}`, `invoice:{order.id}`, `dir:{path|.}`. */
import * as Result from "effect/Result"
import { isObject, type Json, type JsonObject } from "../JsonText.ts"
import { nearest } from "../Nearest.ts"

interface Place {
  readonly path: ReadonlyArray<string>
  /** What stands there when the argument is absent. Without it an absent argument is a fault: the call is blocked. */
  readonly otherwise: string | undefined
}

export type Template = ReadonlyArray<string | Place>

/** Reads a template, or says in words what is wrong with it. */
export const read = (text: string): Result.Result<Template, string> => {
  const parts: Array<string | Place> = []
  for (const [piece] of text.matchAll(/\{[^{}]*\}|[^{}]+|[{}]/g)) {
    if (piece === "{" || piece === "}") return Result.fail(`"${text}" has a brace without its other half`)
    if (!piece.startsWith("{")) {
      parts.push(piece)
      continue
    }
    const [, named, otherwise] = /^\{([^|]*)(?:\|(.*))?\}$/.exec(piece)!
    const path = named!.trim().split(".")
    if (path.some((step) => step === "")) return Result.fail(`"${piece}" in "${text}" names no argument`)
    parts.push({ path, otherwise })
  }
  return Result.succeed(parts)
}

/** Why a tool with these parameters cannot fill the template: an argument it does not have. */
export const problemWith = (template: Template, parameters: JsonObject): string | undefined => {
  const properties = parameters["properties"]
  if (properties === undefined || !isObject(properties)) return undefined
  const names = Object.keys(properties)
  for (const part of template) {
    if (typeof part === "string" || names.includes(part.path[0]!)) continue
    const near = nearest(part.path[0]!, names)
    const known = names.length === 0 ? "it takes none" : `there are ${names.join(", ")}`
    return `the tool has no parameter "${part.path[0]}"; ${near === undefined ? known : `did you mean "${near}"?`}`
  }
  return undefined
}

const valueAt = (args: JsonObject, path: ReadonlyArray<string>): Json | undefined => {
  let value: Json | undefined = args
  for (const step of path)
    value = value !== undefined && isObject(value) && Object.hasOwn(value, step) ? value[step] : undefined
  return value
}

const textOf = (value: Json, path: ReadonlyArray<string>): string => {
  if (typeof value === "string") return value
  if (typeof value === "number" || typeof value === "boolean") return String(value)
  throw new Error(`the argument ${path.join(".")} is not a text`)
}

/** One text, or several where an argument is a list. Throws where an argument is absent or no text: nothing is assumed. */
export const fill = (template: Template, args: JsonObject): ReadonlyArray<string> => {
  let texts: ReadonlyArray<string> = [""]
  for (const part of template) {
    const next = typeof part === "string" ? [part] : textsAt(part, args)
    if (texts.length * next.length > 1000) throw new Error("the arguments name more than 1000 things")
    texts = texts.flatMap((text) => next.map((more) => text + more))
  }
  return texts
}

const textsAt = ({ otherwise, path }: Place, args: JsonObject): ReadonlyArray<string> => {
  const value = valueAt(args, path) ?? otherwise
  if (value === undefined || value === null) throw new Error(`the argument ${path.join(".")} is missing`)
  return Array.isArray(value) ? value.map((one) => textOf(one, path)) : [textOf(value, path)]
}
