/**
 * JSON values as YAML text, one text for one value, in linear time: texts of several lines as literal blocks where that keeps
 * them, small values on one line, everything a reader could take for something else in quotes. Knows no messages.
 */
import type { Json, JsonObject } from "../../tools/JsonText.ts"
import { type Path, Refusal } from "./YamlDocuments.ts"

/** Words that some reader of YAML takes for a truth value or for nothing. */
const words = /^(?:y|n|yes|no|on|off|true|false|null)$/i

/** Needs no quotes as a value in a block: begins like a word, and nothing in it ends or begins anything. */
const plainInBlock = /^[\p{L}_][\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u
const breaksInBlock = /: |:$| #| $/

/** Needs no quotes anywhere, also as a key and between braces. */
const plainAnywhere = /^[\p{L}_](?:[\p{L}\p{N}_./@+ -]*[\p{L}\p{N}_./@+-])?$/u

/** What a literal block would lose or an editor would not show. */
const unliteral = /[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/

const escaped = /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g

/** A key longer than this must be announced with `?`. YAML's own limit is 1024. */
const longestKey = 1000

/** A value that takes more than this gets lines of its own. */
const widest = 100

const maxDepth = 100

const wellFormed = (text: string, path: Path): string => {
  if (!text.isWellFormed()) throw new Refusal(path, "lone surrogate: half of a character cannot be kept in a file")
  return text
}

const inQuotes = (text: string): string =>
  JSON.stringify(text).replace(escaped, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`)

const isShortWord = (text: string): boolean => text.length < 6 && words.test(text)

const wordOrQuotes = (text: string): string => (plainAnywhere.test(text) && !isShortWord(text) ? text : inQuotes(text))

/** What follows the last character that is not white space. */
const tailOf = (text: string): string => {
  let at = text.length
  while (at > 0 && " \t\n".includes(text[at - 1]!)) at -= 1
  return text.slice(at)
}

/** Lines of spaces only are lost at the end of a literal block; and where there is nothing else there is nothing to read. */
const fitsLiteral = (text: string): boolean => {
  if (!text.includes("\n") || unliteral.test(text)) return false
  const tail = tailOf(text)
  return tail.length < text.length && !/\n[ \t]/.test(tail)
}

const literal = (text: string, indent: number): string => {
  const ending = text.endsWith("\n\n") ? "+" : text.endsWith("\n") ? "" : "-"
  const begin = /^[ \t\n]/.test(text) ? "2" : ""
  const pad = " ".repeat(indent + 2)
  const lines = (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n")
  return `|${begin}${ending}\n${lines.map((line) => (line === "" ? "" : pad + line)).join("\n")}`
}

const textOf = (text: string, indent: number): string => {
  if (fitsLiteral(text)) return literal(text, indent)
  if (plainInBlock.test(text) && !breaksInBlock.test(text) && !isShortWord(text)) return text
  return inQuotes(text)
}

const numberOf = (value: number, path: Path): string => {
  if (!Number.isFinite(value)) throw new Refusal(path, `${value} is not a number that JSON has`)
  if (Object.is(value, -0)) return "-0.0"
  // Without an exponent every digit would be meant.
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? value.toExponential() : String(value)
}

const refuseDeep = (path: Path): void => {
  if (path.length > maxDepth) throw new Refusal([], `nested deeper than ${maxDepth} levels`)
}

const isList = (value: Json): value is ReadonlyArray<Json> => Array.isArray(value)

const entriesOf = (value: JsonObject): ReadonlyArray<[string, Json]> =>
  Object.entries(value).filter(([, inner]) => inner !== undefined)

/** On one line with at most `room` characters, or `undefined`. */
const flow = (value: Json, room: number, path: Path): string | undefined => {
  if (room < 0) return undefined
  refuseDeep(path)
  if (typeof value === "string") {
    if (value.length > room || value.includes("\n")) return undefined
    const text = wordOrQuotes(wellFormed(value, path))
    return text.length > room ? undefined : text
  }
  if (typeof value === "number") return numberOf(value, path)
  if (value === null || typeof value === "boolean") return String(value)
  const inside: Array<string> = []
  let left = room - 4
  const items = isList(value) ? value.map((item): [string, Json] => ["", item]) : entriesOf(value)
  if (items.length > widest) return undefined
  for (const [key, item] of items) {
    if (key.length > left) return undefined
    const name = isList(value) ? "" : `${wordOrQuotes(wellFormed(key, path))}: `
    const text = flow(item, left - name.length, [...path, key])
    if (text === undefined) return undefined
    inside.push(name + text)
    left -= name.length + text.length + 2
    if (left < -2) return undefined
  }
  if (isList(value)) return `[${inside.join(", ")}]`
  return inside.length === 0 ? "{}" : `{ ${inside.join(", ")} }`
}

/** What follows `key:` or `-` in a block that begins in column `indent`. */
const after = (value: Json, indent: number, path: Path): string => {
  refuseDeep(path)
  if (typeof value === "string") return ` ${textOf(wellFormed(value, path), indent)}`
  const short = flow(value, widest, path)
  if (short !== undefined) return ` ${short}`
  return `\n${" ".repeat(indent + 2)}${block(value as JsonObject | ReadonlyArray<Json>, indent + 2, path)}`
}

/** Lines of a value with something in it; the first has no indentation, the place it is put has it already. */
const block = (value: JsonObject | ReadonlyArray<Json>, indent: number, path: Path): string => {
  const pad = `\n${" ".repeat(indent)}`
  if (isList(value)) return value.map((item, index) => `-${listItem(item, indent, [...path, index])}`).join(pad)
  return entriesOf(value)
    .map(([key, inner]) => entry(key, after(inner, indent, [...path, key]), pad, path))
    .join(pad)
}

const listItem = (item: Json, indent: number, path: Path): string => {
  if (typeof item !== "object" || item === null) return after(item, indent, path)
  return ` ${flow(item, widest, path) ?? block(item as JsonObject, indent + 2, path)}`
}

const entry = (key: string, value: string, pad: string, path: Path): string => {
  const name = wordOrQuotes(wellFormed(key, path))
  return name.length > longestKey ? `? ${name}${pad}:${value}` : `${name}:${value}`
}

/** A field whose value is written as any JSON value. `name` is a plain word. Ends with a newline. */
export const field = (name: string, value: Json, path: Path, indent = 0): string =>
  `${name}:${after(value, indent, path)}\n`

/** A list whose items are blocks of fields, each written out on lines of its own. Ends with a newline. */
export const records = (
  name: string,
  items: ReadonlyArray<ReadonlyArray<readonly [string, Json | undefined]>>,
  path: Path,
  indent = 0
): string => {
  const pad = " ".repeat(indent + 2)
  const lines = items.map((fields, index) => {
    const written = fields.flatMap(([key, value]) =>
      value === undefined ? [] : [field(key, value, [...path, index, key], indent + 4)]
    )
    return `${pad}- ${written.join(`${pad}  `)}`
  })
  return `${name}:\n${lines.join("")}`
}
