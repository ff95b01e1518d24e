/**
 * Finds what stands in the prose although only an envelope, or the runtime, may write it: an object that names an
 * advertised tool and brings arguments, and, where answers are plain JSON too, an answer. Any other object is data. Looks
 * at text that has already been taken out of the frames, once per turn.
 */
import * as Result from "effect/Result"
import { isObject, type Json, type JsonObject } from "../../tools/JsonText.ts"
import { type CutObject, readCut } from "./CutObject.ts"
import { parsePayloadPrefix } from "./Envelope.ts"

export interface BareOptions {
  readonly tools: ReadonlySet<string>
  /** The constant `type` of an answer, in a family that writes answers as plain JSON. */
  readonly resultType?: string | undefined
  /** The head of a call in a family whose calls are no JSON: its first group is the name. */
  readonly head?: RegExp | undefined
}

export interface Bare {
  readonly kind: "call" | "result"
  readonly at: number
}

/** The first such object. Every character is looked at once for each object around it, and those are 33 at most. */
export const findBare = (text: string, options: BareOptions): Bare | undefined => {
  const head = findHead(text, options)
  for (let at = text.indexOf("{"); at >= 0; ) {
    if (head >= 0 && head < at) break
    const read = parsePayloadPrefix(text, at)
    const whole = Result.isSuccess(read)
    const kind = whole
      ? kindOf(read.success.value, options)
      : kindOfBroken(readCut(text, at), read.failure.incomplete === true, options)
    if (kind !== undefined) return { kind, at }
    at = text.indexOf("{", whole ? read.success.end : at + 1)
  }
  return head < 0 ? undefined : { kind: "call", at: head }
}

/** What the value is, or holds at any depth. */
const kindOf = (value: Json, options: BareOptions): Bare["kind"] | undefined => {
  if (typeof value !== "object" || value === null) return undefined
  if (isObject(value)) {
    if (isResult(value, options.resultType)) return "result"
    if (isCallShaped(value, options.tools)) return "call"
  }
  for (const inner of Object.values(value)) {
    const kind = kindOf(inner as Json, options)
    if (kind !== undefined) return kind
  }
  return undefined
}

export const isResult = (value: Json, resultType: string | undefined): boolean =>
  resultType !== undefined && isObject(value) && Object.hasOwn(value, "type") && value["type"] === resultType

/** A name of a tool, and arguments or the word for it: both, or it is data. A `function` object inside counts too. */
const isCallShaped = (value: JsonObject, tools: ReadonlySet<string>): boolean => {
  const inner = Object.hasOwn(value, "function") ? value["function"]! : value
  const call: JsonObject = isObject(inner) ? inner : value
  const name = Object.hasOwn(call, "name") ? call["name"] : undefined
  const brings = Object.hasOwn(call, "arguments") || Object.hasOwn(call, "parameters")
  const says = Object.hasOwn(call, "type") && call["type"] === "tool_call"
  return typeof name === "string" && tools.has(name) && (brings || says)
}

export const envelopeKeys: ReadonlySet<string> = new Set(["name", "type", "id", "arguments", "parameters"])

/** Broken JSON is a call if its name and its arguments have begun; where the text just ends, its name is enough. */
const kindOfBroken = (
  { open, whole }: CutObject,
  cut: boolean,
  { resultType, tools }: BareOptions
): Bare["kind"] | undefined => {
  if (resultType !== undefined && whole.get("type") === resultType) return "result"
  const name = whole.get("name")
  if (typeof name !== "string" || !tools.has(name)) return undefined
  const keys = [...whole.keys(), ...(open === undefined ? [] : [open.key])]
  const brings = keys.includes("arguments") || keys.includes("parameters")
  return brings || (cut && keys.every((key) => envelopeKeys.has(key))) ? "call" : undefined
}

const findHead = (text: string, { head, tools }: BareOptions): number => {
  if (head === undefined) return -1
  for (const found of text.matchAll(head)) if (tools.has(found[1]!)) return found.index
  return -1
}
