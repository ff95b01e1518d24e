/**
 * Grammar rules for arguments written as `<parameter=KEY>` blocks: text as it is, everything else as JSON. A line of a text
 * that would look like a tag is not offered, because it could not be read back.
 */
import type { Json, JsonObject } from "../../tools/JsonText.ts"
import { choice, literal, otherThan, type Rules } from "./Gbnf.ts"
import { JsonValues } from "./JsonValues.ts"
import type { Missed, ObjectShape, Place, Shape } from "./Shapes.ts"

const tags = ["<parameter=", "</parameter>", "<function=", "</function>", "<tool_call>", "</tool_call>"]

/** What stands between the line of the function's name and `</function>`, or `undefined` where no arguments fit. */
export const xmlArguments = (rules: Rules, root: JsonObject, missed: Missed): string | undefined => {
  const values = new JsonValues(rules, root, missed)
  const all = values.shapesOf({ pointer: "", schema: root })
  const parts = all.flatMap((shape) => {
    const body = shape.type === "object" ? blocks(rules, values, shape, missed) : undefined
    return body === undefined ? [] : [body]
  })
  return parts.length === 0 ? undefined : choice([...new Set(parts)])
}

const blocks = (
  rules: Rules,
  values: JsonValues,
  { fields, others }: ObjectShape,
  missed: Missed
): string | undefined => {
  if (others !== undefined) missed("", "additionalProperties")
  const out: Array<string> = []
  for (const field of fields) {
    const writable = !/[<>=\n]/.test(field.name) && field.name.trim() !== ""
    if (!writable) missed(field.pointer, "(its name cannot be written)")
    const inner = writable ? value(rules, values, field, missed) : undefined
    if (inner === undefined && field.required) return undefined
    if (inner === undefined) continue
    const rule = rules.add(`${literal(`<parameter=${field.name}>\n`)} ${inner} ${literal("\n</parameter>\n")}`)
    out.push(field.required ? rule : `${rule}?`)
  }
  return out.length === 0 ? '""' : out.join(" ")
}

const value = (rules: Rules, values: JsonValues, place: Place, missed: Missed): string | undefined => {
  const parts = values.shapesOf(place).flatMap((shape) => textOf(rules, values, shape, place.pointer, missed) ?? [])
  return parts.length === 0 ? undefined : choice([...new Set(parts)])
}

const textOf = (
  rules: Rules,
  values: JsonValues,
  shape: Shape,
  pointer: string,
  missed: Missed
): string | undefined => {
  if (shape.type === "string") {
    if (shape.least > 0) missed(pointer, "minLength")
    if (shape.most !== undefined) missed(pointer, "maxLength")
    return anyText(rules)
  }
  if (shape.type === "literals") {
    const usable = shape.values.map(literalText).filter((text) => !hasTag(text))
    return usable.length === 0 ? undefined : choice(usable.map(literal))
  }
  if (shape.type === "any") return anyText(rules)
  return values.shape(shape, pointer, 2)
}

const literalText = (one: Json): string => (typeof one === "string" ? one : JSON.stringify(one))

const hasTag = (text: string): boolean => text.split("\n").some((line) => tags.some((tag) => line.startsWith(tag)))

/** Lines none of which begins like a tag of a call. */
const anyText = (rules: Rules): string =>
  rules.define("lines", () => {
    const rest = rules.define("line-rest", () => "[^\\n]*")
    const line = otherThan(rules, tags, "\\n", rest, true)
    return `${line} ("\\n" ${line})*`
  })
