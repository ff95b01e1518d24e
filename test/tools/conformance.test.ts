/** Schemas and arguments that nobody here wrote. What comes out is counted on docs/validation.md, row by row. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { compile, type JsonSchemaChecker } from "../../src/tools/JsonSchema.ts"
import type { Json, JsonObject } from "../../src/tools/JsonText.ts"
import { dynamic } from "../../src/tools/Registry.ts"
import { conformance } from "../kit/codecs.ts"

const page = readFileSync(new URL("../../docs/validation.md", import.meta.url), "utf8")

interface Count {
  rows: number
  expected: number
  closed: number
  refused: number
}

/** Thousands of compilations, on a machine that may have better things to do. */
const patience = 120_000

const isOnThePage = (name: string, count: Count, otherwise: ReadonlyArray<string>) => {
  assert.deepStrictEqual(otherwise, [])
  const row = `| ${name} | ${count.rows} | ${count.expected} | ${count.closed} | ${count.refused} | 0 |`
  assert.isTrue(page.includes(`\n${row}\n`), `docs/validation.md needs the row ${row}`)
}

const none = (): Count => ({ rows: 0, expected: 0, closed: 0, refused: 0 })

/** Puts one verdict into the count, or says how it differs. */
const judge = (
  count: Count,
  check: JsonSchemaChecker["check"],
  args: JsonObject,
  valid: boolean
): string | undefined => {
  const verdict = check(args)
  count.rows++
  if (Result.isSuccess(verdict) === valid) count.expected++
  else if (Result.isFailure(verdict) && verdict.failure.every(({ code }) => code === "unknown_field")) count.closed++
  else return Result.isSuccess(verdict) ? "passes" : JSON.stringify(verdict.failure)
  return undefined
}

interface SuiteRow {
  readonly id: string
  readonly draft: string
  readonly tier: string
  readonly schema: Json
  readonly tests: ReadonlyArray<{ readonly description: string; readonly data: Json; readonly valid: boolean }>
}

/** Local references of a schema that now lies at `/properties/value`. One with names of its own needs nothing. */
const moved = (schema: Json): Json => {
  if (Array.isArray(schema)) return schema.map(moved)
  if (typeof schema !== "object" || schema === null) return schema
  return Object.fromEntries(
    Object.entries(schema as JsonObject).flatMap(([key, value]): Array<[string, Json]> => {
      if (key === "$schema") return []
      if (["const", "enum", "default", "examples"].includes(key)) return [[key, value]]
      const local = (key === "$ref" || key === "$dynamicRef") && typeof value === "string" && /^#(?:$|\/)/.test(value)
      return [[key, local ? `#/properties/value${(value as string).slice(1)}` : moved(value)]]
    })
  )
}

/** The schema as that of a tool's one argument. */
const asArgument = ({ draft, schema }: SuiteRow): JsonObject => ({
  ...(draft === "draft7" ? { $schema: "http://json-schema.org/draft-07/schema#" } : {}),
  type: "object",
  properties: { value: /"\$(?:id|anchor)"/.test(JSON.stringify(schema)) ? schema : moved(schema) },
  required: ["value"]
})

describe("schemas that others wrote", () => {
  const suite = conformance<SuiteRow>("json-schema-suite")
  for (const tier of ["core", "extended"]) {
    it.effect.skipIf(suite === undefined)(
      `JSON Schema Test Suite, ${tier}: every verdict is the suite's`,
      () =>
        Effect.gen(function* () {
          const count = none()
          const otherwise: Array<string> = []
          for (const row of suite!.filter((one) => one.tier === tier)) {
            const compiled = yield* Effect.result(compile(asArgument(row)))
            if (Result.isFailure(compiled)) {
              otherwise.push(`${row.id}: ${compiled.failure.message}`)
              continue
            }
            for (const { data, description, valid } of row.tests) {
              const what = judge(count, compiled.success.check, { value: data }, valid)
              if (what !== undefined) otherwise.push(`${row.id}, ${description}: ${what}`)
            }
          }
          isOnThePage(`json-schema-suite, ${tier}`, count, otherwise)
        }),
      patience
    )
  }

  const wild = conformance<WildRow>("tool-schemas-wild")
  it.effect.skipIf(wild === undefined)(
    "tools in the wild register, or have a type that there is not",
    () =>
      Effect.gen(function* () {
        const count = none()
        const otherwise: Array<string> = []
        for (const { ajv, description, id, input_schema: schema, name } of wild!) {
          const made = yield* registered(name, description ?? "", schema)
          count.rows++
          if (made === undefined && ajv.compiles === "ok") count.expected++
          else if (made !== undefined && saysTypes(made, schema) && ajv.compiles !== "ok") count.refused++
          else otherwise.push(`${id}: ${made ?? "registers"}`)
        }
        isOnThePage("tool-schemas-wild", count, otherwise)
      }),
    patience
  )

  const odd = conformance<OddRow>("odd-schemas")
  it.effect.skipIf(odd === undefined)(
    "odd schemas are refused with each foreign type, its place and what to write",
    () =>
      Effect.gen(function* () {
        const count = none()
        const otherwise: Array<string> = []
        for (const { id, oddities, tool } of odd!) {
          const made = yield* registered(tool.name.replaceAll(".", "_"), tool.description, tool.parameters)
          count.rows++
          const foreign = oddities.filter(({ kind }) => kind === "nonstandard_type")
          const said = foreign
            .slice(0, 8)
            .every(({ path, value }) =>
              made?.includes(`${path === "/" ? "the schema" : path} has the type "${String(value)}": `)
            )
          if (foreign.length > 0 && said && saysTypes(made!, tool.parameters)) count.refused++
          else otherwise.push(`${id}: ${made ?? "registers"}`)
        }
        isOnThePage("odd-schemas", count, otherwise)
      }),
    patience
  )

  const bfcl = conformance<BfclRow>("bfcl-arguments")
  it.effect.skipIf(bfcl === undefined)(
    "BFCL arguments: every verdict is that of two other validators",
    () =>
      Effect.gen(function* () {
        const count = none()
        const otherwise: Array<string> = []
        for (const { arguments: args, id, schema_normalised: schema, valid } of bfcl!) {
          const { check } = yield* compile(schema)
          const what = judge(count, check, args, valid)
          if (what !== undefined) otherwise.push(`${id}: ${what}`)
        }
        isOnThePage("bfcl-arguments", count, otherwise)
      }),
    patience
  )
})

interface WildRow {
  readonly id: string
  readonly name: string
  readonly description?: string
  readonly input_schema: JsonObject
  readonly ajv: { readonly compiles: string }
}

interface OddRow {
  readonly id: string
  readonly tool: { readonly name: string; readonly description: string; readonly parameters: JsonObject }
  readonly oddities: ReadonlyArray<{ readonly path: string; readonly kind: string; readonly value?: unknown }>
}

interface BfclRow {
  readonly id: string
  readonly arguments: JsonObject
  readonly schema_normalised: JsonObject
  readonly valid: boolean
}

/** Why a tool cannot be registered; nothing if it can. */
const registered = (name: string, description: string, schema: JsonObject) =>
  Effect.match(dynamic({ name, description, schema, run: () => Effect.succeed(null) }), {
    onFailure: ({ message }) => message,
    onSuccess: () => undefined
  })

/** Each complaint names a place that has this type, and a remedy. */
const saysTypes = (message: string, schema: JsonObject): boolean => {
  const found = [
    ...message.matchAll(/(the schema|\/\S+) has the type "([^"]*)": (?:write "|leave the type out|there are)/g)
  ]
  return found.length > 0 && found.every(([, place, type]) => typeAt(schema, place!) === type)
}

const typeAt = (schema: JsonObject, place: string): unknown => {
  let at: unknown = schema
  for (const step of place === "the schema" ? [] : place.split("/").slice(1)) {
    at = (at as Record<string, unknown> | undefined)?.[step.replaceAll("~1", "/").replaceAll("~0", "~")]
  }
  return (at as { readonly type?: unknown } | undefined)?.type
}
