/** The vocabulary of traces in the words of docs/trace.md: each event's fields and their types. */
import type * as Schema from "effect/Schema"
import type * as SchemaAST from "effect/SchemaAST"
import { Content, Hidden, JsonContent, vocabulary } from "../../src/actors/TraceEvent.ts"

export interface Field {
  readonly name: string
  readonly type: string
  readonly optional: boolean
}

type AnyStruct = Schema.Struct<Schema.Struct.Fields>

const checksOf = (ast: SchemaAST.AST): string => JSON.stringify(ast.checks?.map((check) => check.annotations) ?? [])

const inWords = (ast: SchemaAST.AST): string => {
  if (ast === Content.ast) return "content"
  if (ast === Hidden.ast) return "hidden"
  switch (ast._tag) {
    case "String":
      return checksOf(ast).includes("0-9a-f") ? "digest" : "text"
    case "Number":
      return checksOf(ast).includes("isInt") ? "count" : "number"
    case "Boolean":
      return "boolean"
    case "Null":
      return "null"
    case "Unknown":
      return "anything"
    case "Literal":
      return `\`${String(ast.literal)}\``
    case "Union":
      return ast.types.map(inWords).join(" or ")
    case "Arrays":
      return ast.rest.length === 0 ? `[${ast.elements.map(inWords).join(", ")}]` : `list of ${inWords(ast.rest[0]!)}`
    case "Objects": {
      const [rest] = ast.indexSignatures
      if (rest !== undefined) return `object of ${inWords(rest.type)}`
      return `{ ${ast.propertySignatures.map(({ name, type }) => `${String(name)}: ${inWords(type)}`).join(", ")} }`
    }
    default:
      throw new Error(`docs/trace.md has no word for ${ast._tag}`)
  }
}

/** The fields of an event type, in order. */
export const fieldsOf = (type: string): ReadonlyArray<Field> => {
  const { fields } = (vocabulary as unknown as Readonly<Record<string, AnyStruct>>)[type]!
  return Object.entries(fields).map(([name, field]) => {
    const { ast } = field as Schema.Top
    const optional = ast.context?.isOptional === true
    const inner = "schema" in field && optional ? (field.schema as Schema.Top) : (field as Schema.Top)
    return { name, type: inner === JsonContent ? "JSON content" : inWords(inner.ast), optional }
  })
}

/** A row of the table, up to the words about it. */
export const rowOf = ({ name, optional, type }: Field): string => `| \`${name}\`${optional ? "?" : ""} | ${type} | `
