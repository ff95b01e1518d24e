/**
 * Finds a call that was written without its envelope: a JSON object that names an advertised tool and brings arguments.
 * Any other object is an answer. Looks at text that has already been taken out of the frames, once per turn.
 */
import * as Result from "effect/Result"
import { isObject, type Json, type JsonObject } from "../../tools/JsonText.ts"
import { parsePayloadPrefix } from "./Envelope.ts"

/** Objects that were not closed and are not calls: how many are tried before the rest of the text counts as prose. */
const maxAttempts = 1000

/** Offset of the first such object, or -1. */
export const findBareCall = (text: string, tools: ReadonlySet<string>): number => {
  let at = text.indexOf("{")
  for (let attempt = 0; at >= 0 && attempt < maxAttempts; attempt++) {
    const read = parsePayloadPrefix(text, at)
    if (Result.isSuccess(read)) {
      if (isCallShaped(read.success.value, tools)) return at
      at = text.indexOf("{", read.success.end)
    } else {
      if (beginsCall(text, at, tools)) return at
      at = text.indexOf("{", at + 1)
    }
  }
  return -1
}

/** A name of a tool, and arguments: both, or it is data. The form with a `function` object inside counts too. */
export const isCallShaped = (value: Json, tools: ReadonlySet<string>): boolean => {
  if (!isObject(value)) return false
  const inner = Object.hasOwn(value, "function") ? value["function"]! : value
  const call: JsonObject = isObject(inner) ? inner : value
  const name = Object.hasOwn(call, "name") ? call["name"] : undefined
  return (
    typeof name === "string" &&
    tools.has(name) &&
    (Object.hasOwn(call, "arguments") || Object.hasOwn(call, "parameters"))
  )
}

/** Broken or cut JSON can still be recognised by its beginning. */
const beginsCall = (text: string, at: number, tools: ReadonlySet<string>): boolean => {
  const found = callBeginning.exec(text.slice(at, at + 400))
  return found !== null && tools.has(found[1]!)
}

const callBeginning = /^\{\s*"name"\s*:\s*"([^"\\]{1,64})"\s*,\s*"(?:arguments|parameters)"\s*:/
