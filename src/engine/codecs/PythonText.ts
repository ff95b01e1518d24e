/** Python's string methods where JavaScript's differ in a character or two: templates are written against Python. */
import type { Json, JsonObject } from "../../tools/JsonText.ts"
import { pythonNumber } from "./PythonJson.ts"

// Python strips the separators U+001C to U+001F and U+0085, JavaScript does not; JavaScript strips U+FEFF, Python does not.
const space = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+"
const leading = new RegExp(`^${space}`)
const trailing = new RegExp(`${space}$`)

/** `str.strip()` without arguments, which is what the `trim` filter does. */
export const strip = (text: string): string => {
  const rest = text.replace(leading, "")
  // From the end by hand: a pattern anchored at the end would be tried from every position.
  let end = rest.length
  while (end > 0 && trailing.test(rest[end - 1]!)) end -= 1
  return rest.slice(0, end)
}

/** `str.strip("\n")`. */
export const stripNewlines = (text: string): string => rstripNewlines(lstripNewlines(text))

/** `str.lstrip("\n")`. */
export const lstripNewlines = (text: string): string => {
  let start = 0
  while (text[start] === "\n") start += 1
  return text.slice(start)
}

/** `str.rstrip("\n")`. */
export const rstripNewlines = (text: string): string => {
  let end = text.length
  while (text[end - 1] === "\n") end -= 1
  return text.slice(0, end)
}

/** `str(value)` of a JSON scalar: `True`, `False` and `None` for what JSON writes in small letters. */
export const scalarText = (value: boolean | null): string => (value === null ? "None" : value ? "True" : "False")

/** `repr(value)`: how Python prints a value inside a list or where a template turns it into text. */
export const repr = (value: Json): string => {
  if (typeof value === "string") return quoted(value)
  if (typeof value === "number") return pythonNumber(value)
  if (typeof value !== "object" || value === null) return scalarText(value)
  if (Array.isArray(value)) return `[${value.map(repr).join(", ")}]`
  return `{${Object.entries(value as JsonObject)
    .map(([key, item]) => `${quoted(key)}: ${repr(item)}`)
    .join(", ")}}`
}

const escapes: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" }

/** Single quotes unless the text has some and no double ones. Control characters are written as escapes. */
const quoted = (text: string): string => {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'"
  let out = ""
  for (const letter of text) {
    const code = letter.charCodeAt(0)
    if (letter === quote) out += `\\${letter}`
    else if (Object.hasOwn(escapes, letter)) out += escapes[letter]
    else if (code < 0x20 || code === 0x7f) out += `\\x${code.toString(16).padStart(2, "0")}`
    else out += letter
  }
  return quote + out + quote
}

/** `str(value)`: text as it is, anything else as its `repr`. */
export const str = (value: Json): string => (typeof value === "string" ? value : repr(value))
