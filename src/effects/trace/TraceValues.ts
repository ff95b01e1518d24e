/**
 * Recorded values side by side: what of them can be compared, and where they differ. Content that was left out is a length
 * and a digest under a key of its run, so of two runs' content only lengths can be compared; then the answer is `unknown`,
 * never `same`.
 */
import { createHash } from "node:crypto"
import { canonical, type Json } from "../../tools/JsonText.ts"

export type Comparison = "same" | "different" | "unknown"

/** Content that was left out: by Writ with `hmac`, by Ember with `sha256` and not always a length. */
export interface LeftOut {
  readonly bytes?: number
  readonly hmac?: string
  readonly sha256?: string
}

type Fields = Readonly<Record<string, unknown>>

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const digest = /^[0-9a-f]{64}$/
const leftOutKeys = new Set(["bytes", "hmac", "sha256"])

/** Is this the stand-in for content? Only exactly its fields count: a result may be any JSON. */
export const isLeftOut = (value: unknown): value is LeftOut => {
  if (!isFields(value) || !Object.keys(value).every((key) => leftOutKeys.has(key))) return false
  const { bytes, hmac, sha256 } = value
  if (bytes !== undefined && typeof bytes !== "number") return false
  return digest.test(String(hmac ?? sha256 ?? ""))
}

/** Text as it is, any other value in canonical form. */
const textOf = (value: unknown): string => (typeof value === "string" ? value : canonical(value as Json))

export const sha256 = (value: unknown): string => createHash("sha256").update(textOf(value)).digest("hex")

const bytesOf = (value: unknown): number | undefined =>
  isLeftOut(value) ? value.bytes : Buffer.byteLength(textOf(value))

const leftOut = (a: unknown, b: unknown, sameKey: boolean): Comparison => {
  const [left, right] = [isLeftOut(a) ? a : undefined, isLeftOut(b) ? b : undefined]
  if (left?.hmac !== undefined && right?.hmac !== undefined) {
    if (left.hmac === right.hmac) return "same"
    if (sameKey) return "different"
  }
  const hashes = [
    left?.sha256 ?? (left === undefined ? sha256(a) : ""),
    right?.sha256 ?? (right === undefined ? sha256(b) : "")
  ]
  if (hashes.every((hash) => hash !== "")) return hashes[0] === hashes[1] ? "same" : "different"
  const lengths = [bytesOf(a), bytesOf(b)]
  return lengths.includes(undefined) || lengths[0] === lengths[1] ? "unknown" : "different"
}

/** A place where two values differ, or where nobody can tell. */
export interface Apart {
  readonly path: string
  readonly a: unknown
  readonly b: unknown
  readonly comparison: "different" | "unknown"
}

export interface CompareOptions {
  /** Both were recorded under one key: digests tell. */
  readonly sameKey: boolean
  /** Levels of fields, from the outermost, at which only what both have is looked at. None unless given. */
  readonly shared?: number
}

const inFields = (path: string, a: Fields, b: Fields, options: CompareOptions): ReadonlyArray<Apart> => {
  const found: Array<Apart> = []
  const { shared = 0 } = options
  for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const [left, right] = [a, b].map((side) => (Object.hasOwn(side, name) ? side[name] : undefined))
    if (shared > 0 && (left === undefined || right === undefined)) continue
    found.push(...apart(path === "" ? name : `${path}.${name}`, left, right, { ...options, shared: shared - 1 }))
  }
  return found
}

/** Every place where `a` and `b` are not known to be the same. `undefined` is a field that is not there. */
export const apart = (path: string, a: unknown, b: unknown, options: CompareOptions): ReadonlyArray<Apart> => {
  if (Object.is(a, b)) return []
  if (a === undefined || b === undefined) return [{ path, a, b, comparison: "different" }]
  if (isLeftOut(a) || isLeftOut(b)) {
    const comparison = leftOut(a, b, options.sameKey)
    return comparison === "same" ? [] : [{ path, a, b, comparison }]
  }
  if (Array.isArray(a) && Array.isArray(b)) {
    const length = Math.max(a.length, b.length)
    return Array.from({ length }, (_, at) => apart(`${path}[${at}]`, a[at], b[at], options)).flat()
  }
  if (isFields(a) && isFields(b)) return inFields(path, a, b, options)
  return [{ path, a, b, comparison: "different" }]
}
