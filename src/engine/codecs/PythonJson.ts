/**
 * JSON as Python's `json.dumps(…, ensure_ascii=False)` writes it, which is what chat templates print: `", "` and `": "`,
 * keys in the order they were given, letters of any script as they are. It does not sort, indent or shorten.
 */
import type { Json, JsonObject } from "../../tools/JsonText.ts"

/** The text of a value. Values come from `JsonText`, so nesting is bounded and there is nothing that has no JSON form. */
export const pythonJson = (value: Json): string => {
  if (typeof value === "string") return pythonString(value)
  if (typeof value === "number") return pythonNumber(value)
  if (typeof value !== "object" || value === null) return String(value)
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(", ")}]`
  const object = value as JsonObject
  return `{${Object.keys(object)
    .map((key) => `${pythonString(key)}: ${pythonJson(object[key]!)}`)
    .join(", ")}}`
}

/** The same with an indent, as `tojson(indent=…)` prints it: one member a line, empty containers closed at once. */
export const pythonJsonIndented = (value: Json, indent: number, depth = 0): string => {
  if (typeof value !== "object" || value === null) return pythonJson(value)
  const inner = `\n${" ".repeat(indent * (depth + 1))}`
  const outer = `\n${" ".repeat(indent * depth)}`
  if (Array.isArray(value)) {
    if (value.length === 0) return "[]"
    return `[${value.map((item) => inner + pythonJsonIndented(item, indent, depth + 1)).join(",")}${outer}]`
  }
  const object = value as JsonObject
  const members = Object.keys(object).map(
    (key) => `${inner}${pythonString(key)}: ${pythonJsonIndented(object[key]!, indent, depth + 1)}`
  )
  return members.length === 0 ? "{}" : `{${members.join(",")}${outer}}`
}

/**
 * A number as Python prints it. JavaScript keeps no trace of `1.0`, so a whole number that a double holds exactly is
 * printed as an integer; anything else follows Python's `repr` (`1e-07`, `1e+16`).
 */
export const pythonNumber = (value: number): string => {
  if (Number.isSafeInteger(value)) return String(value)
  const magnitude = Math.abs(value)
  if (magnitude >= 1e16 || magnitude < 1e-4) {
    const [digits, exponent] = value.toExponential().split("e") as [string, string]
    return `${digits}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`
  }
  return Number.isInteger(value) ? `${value}.0` : String(value)
}

// JavaScript escapes lone surrogates where Python would not; text that came through JsonText has none.
const pythonString = (value: string): string => JSON.stringify(value)
