/**
 * What the terms of a contract have to answer, for terms that were not checked by a compiler or lied to it. A term is
 * somebody's code next to a decision: what cannot be read is a fault of the contract and decides nothing. It runs no term.
 */
import { verbs } from "../Authority.ts"

type Fields = Readonly<Record<string, unknown>>

const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null

const isText = (value: unknown): value is string => typeof value === "string"

const isTextOrNothing = (value: unknown): boolean => value === undefined || isText(value)

const isListOf = (value: unknown, of: (item: unknown) => boolean): boolean => Array.isArray(value) && value.every(of)

const isUnmet = (value: unknown): boolean =>
  isFields(value) && isText(value["reason"]) && isTextOrNothing(value["path"])

/** What was seen goes on the record and to the model, so it has to be JSON, however it was made. */
const isEvidence = (value: unknown): boolean => {
  if (value === undefined) return true
  try {
    return isText(JSON.stringify(value))
  } catch {
    return false
  }
}

const isVerdict = (value: unknown): boolean => {
  if (!isFields(value) || !isEvidence(value["evidence"])) return false
  const { _tag, unmet } = value
  return _tag === "Holds" || _tag === "Pending" || (_tag === "Broken" && isListOf(unmet, isUnmet))
}

const isFound = (value: unknown): boolean =>
  isFields(value) && ["Present", "Absent", "Unclear"].includes(String(value["_tag"]))

const isTouch = (value: unknown): boolean =>
  isFields(value) && (verbs as ReadonlyArray<unknown>).includes(value["verb"]) && isText(value["resource"])

/** By the name a term has in messages: is this an answer, and what would be one? */
export const shapes = {
  scopes: { fits: (value: unknown) => isListOf(value, isText), wanted: "a list of names" },
  touches: { fits: (value: unknown) => isListOf(value, isTouch), wanted: "a list of verbs and resources" },
  precondition: { fits: (value: unknown) => isListOf(value, isUnmet), wanted: "a list of what does not hold" },
  postcondition: { fits: isVerdict, wanted: "a verdict: holds, broken or pending" },
  probe: { fits: isFound, wanted: "present, absent or unclear" },
  preview: { fits: isText, wanted: "a text" }
} as const

/** Why `value` is no answer of this term, in words; nothing if it is one. What throws when it is looked at is none. */
export const misshapen = (name: keyof typeof shapes, value: unknown): string | undefined => {
  const { fits, wanted } = shapes[name]
  try {
    if (fits(value)) return undefined
  } catch {
    // Nor is it worth another look.
  }
  return `failed: it has to give ${wanted}`
}
