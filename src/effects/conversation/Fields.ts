/** Reads fields of maps out of a YAML document, and refuses what does not fit by place and with a remedy. Throws `Refusal`s. */
import { isObject, type Json, type JsonObject } from "../../tools/JsonText.ts"
import { nearest } from "../../tools/Nearest.ts"
import { type Path, Refusal } from "./YamlDocuments.ts"

/** `a map`, `a list`, `the number 12`: what stands where something else was expected. */
export const seen = (value: Json | undefined): string => {
  if (value === undefined || value === null) return "nothing"
  if (Array.isArray(value)) return "a list"
  if (typeof value === "object") return "a map"
  return typeof value === "string"
    ? "a text"
    : `${typeof value === "number" ? "the number" : "the truth value"} ${value}`
}

/** A map with no keys but these. */
export const mapOf = (value: Json | undefined, path: Path, known: ReadonlyArray<string>): JsonObject => {
  const map = anyMap(value, path)
  for (const key of Object.keys(map)) {
    if (known.includes(key)) continue
    const near = nearest(key, known)
    const hint = near === undefined ? `there are ${known.join(", ")}` : `did you mean ${near}?`
    throw new Refusal([...path, key], `unknown key; ${hint}`)
  }
  return map
}

export const anyMap = (value: Json | undefined, path: Path): JsonObject => {
  if (value !== undefined && isObject(value)) return value
  throw new Refusal(path, `expected a map, found ${seen(value)}`)
}

export const listOf = (value: Json | undefined, path: Path): ReadonlyArray<Json> => {
  if (Array.isArray(value)) return value as ReadonlyArray<Json>
  throw new Refusal(path, `expected a list, found ${seen(value)}`)
}

/** The text under a key that must be there. */
export const textOf = (map: JsonObject, key: string, path: Path): string => {
  const value = Object.hasOwn(map, key) ? map[key] : undefined
  if (typeof value === "string") return value
  if (value === undefined) throw new Refusal(path, `${key} is missing`)
  const remedy = value !== null && typeof value !== "object" ? ": put it in quotes" : ""
  throw new Refusal([...path, key], `expected a text, found ${seen(value)}${remedy}`)
}

/** As `textOf`, and neither empty nor of spaces only. */
export const nameOf = (map: JsonObject, key: string, path: Path): string => {
  const text = textOf(map, key, path)
  if (text.trim() === "") throw new Refusal([...path, key], `${key} is empty`)
  return text
}

/** One of a few words. */
export const wordOf = <const Words extends ReadonlyArray<string>>(
  map: JsonObject,
  key: string,
  words: Words,
  path: Path
): Words[number] => {
  const text = textOf(map, key, path)
  if (words.includes(text)) return text
  const near = nearest(text, words)
  const hint = near === undefined ? "" : `; did you mean ${near}?`
  throw new Refusal([...path, key], `unknown ${key} ${JSON.stringify(text)}: there are ${words.join(", ")}${hint}`)
}

export const isTrue = (map: JsonObject, key: string, path: Path): boolean => {
  const value = map[key]
  if (value === undefined) return false
  if (typeof value === "boolean") return value
  throw new Refusal([...path, key], `expected true or false, found ${seen(value)}`)
}

/** A number that counts something: not negative, and whole where `whole` says so. */
export const countOf = (map: JsonObject, key: string, path: Path, whole = true): number => {
  const value = map[key]
  if (value === undefined) throw new Refusal(path, `${key} is missing`)
  if (typeof value === "number" && value >= 0 && (!whole || Number.isInteger(value))) return value
  throw new Refusal([...path, key], `expected a ${whole ? "whole " : ""}number of at least 0, found ${seen(value)}`)
}
