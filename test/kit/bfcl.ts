/**
 * Plays rows of the leaderboard: a scripted engine says the right answers, or answers damaged in ways whose outcome is known
 * beforehand, through the codec and the whole loop; the suite then decides.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Conversation } from "../../src/effects/conversation/Conversation.ts"
import type { ConversationError } from "../../src/effects/conversation/ConversationError.ts"
import * as Filling from "../../src/effects/conversation/Filling.ts"
import * as Fixture from "../../src/effects/conversation/Fixture.ts"
import { evaluate } from "../../src/effects/eval/Evaluation.ts"
import * as Bfcl from "../../src/effects/eval/external/Bfcl.ts"
import * as Recorded from "../../src/effects/eval/external/Recorded.ts"
import type { Outcome } from "../../src/effects/eval/Verdict.ts"
import { defaults } from "../../src/effects/Limits.ts"
import * as Families from "../../src/engine/codecs/Families.ts"
import { Model } from "../../src/engine/Model.ts"
import { isObject, type Json, type JsonObject } from "../../src/tools/JsonText.ts"
import type { Registry } from "../../src/tools/Registry.ts"
import { nowhere } from "./evals.ts"

export interface Said {
  readonly name: string
  readonly input: JsonObject
}

/** What a model says to a row: calls, or words. */
export type Reply = ReadonlyArray<Said> | string

const declared = (row: Bfcl.Row, name: string): JsonObject => {
  const { properties = {} } = row.tools.find((tool) => tool.name === name)!.parameters as JsonObject
  return properties as JsonObject
}

/** Objects of the answers allow values key by key, one level deep. */
const concrete = (value: Json): Json =>
  isObject(value)
    ? Object.fromEntries(
        Object.entries(value).flatMap(([key, allowed]) => {
          if (!Array.isArray(allowed)) return [[key, allowed]]
          const first = (allowed as ReadonlyArray<Json>).find((one) => one !== "")
          return first === undefined ? [] : [[key, first]]
        })
      )
    : value

const isDict = (type: Json | undefined): boolean => type === "dict" || type === "object" || type === "HashMap"

const valueOf = (allowed: ReadonlyArray<Json>, schema: Json | undefined): Json | undefined => {
  const first = allowed.find((one) => one !== "")
  if (first === undefined || schema === undefined || !isObject(schema)) return first
  if (isDict(schema.type)) return concrete(first)
  const { items } = schema
  const listed = items !== undefined && isObject(items) && isDict(items.type)
  return listed && Array.isArray(first) ? first.map(concrete) : first
}

const requiredOf = (row: Bfcl.Row, name: string): ReadonlyArray<string> =>
  (row.tools.find((tool) => tool.name === name)!.parameters.required ?? []) as ReadonlyArray<string>

/** The first allowed value of each parameter. What has only the mark of absence, or is not declared, is left out where it may be. */
export const rightCalls = (row: Bfcl.Row): ReadonlyArray<Said> =>
  (row.possible_answers ?? []).flatMap((answer) =>
    Object.entries(answer).map(([name, parameters]) => ({
      name: Bfcl.toolName(name),
      input: Object.fromEntries(
        Object.entries(parameters).flatMap(([parameter, values]) => {
          const allowed = values as ReadonlyArray<Json>
          const schema = declared(row, name)[parameter]
          if (schema === undefined && allowed.includes("")) return []
          const value = valueOf(allowed, schema)
          if (value !== undefined) return [[parameter, value]]
          return requiredOf(row, name).includes(parameter) && allowed.includes("") ? [[parameter, ""]] : []
        })
      )
    }))
  )

const typesIn = (list: Json): number => new Set((list as ReadonlyArray<Json>).map((one) => typeof one)).size

/** Does this list of allowed values leave nothing that the leaderboard's own check of types and values would take? */
const closed = (allowed: ReadonlyArray<Json>, schema: Json | undefined): boolean => {
  if (allowed.length === 0) return true
  if (schema === undefined) return !allowed.includes("")
  if (!isObject(schema)) return false
  const listed = allowed.filter((one) => Array.isArray(one))
  const { items } = schema
  if (items !== undefined && isObject(items) && items.type === "any") {
    return listed.length > 0 && listed.every((one) => typesIn(one) > 1)
  }
  const objects = allowed.filter((one) => isObject(one))
  const flat = (one: Json) => Object.values(one as JsonObject).some((value) => !Array.isArray(value))
  return isDict(schema.type) && objects.length > 0 && objects.every(flat)
}

/** Why no calls can be right by the leaderboard's own rules, found in the row alone; `undefined` where some can. */
export const unanswerable = (row: Bfcl.Row): string | undefined => {
  for (const answer of row.possible_answers ?? []) {
    for (const [name, parameters] of Object.entries(answer)) {
      const missing = requiredOf(row, name).find((required) => !Object.hasOwn(parameters, required))
      if (missing !== undefined) return `${missing} is required, and not expected`
      const shut = Object.entries(parameters).find(([parameter, allowed]) =>
        closed(allowed as ReadonlyArray<Json>, declared(row, name)[parameter])
      )
      if (shut !== undefined) return `no value of ${shut[0]} is taken`
    }
  }
  return undefined
}

export const rightReply = (row: Bfcl.Row): Reply => {
  if (row.expect === "no_call") return "I have no function for that."
  if (row.expect === "calls") return rightCalls(row)
  const [tool] = row.tools
  return [{ name: Bfcl.toolName(tool!.name), input: {} }]
}

const codec = Result.getOrThrow(Families.byId("qwen2.5"))

/** Schemas are compiled once for each row. */
const registries = new WeakMap<Bfcl.Row, Registry>()

export const registryOf = (row: Bfcl.Row): Effect.Effect<Registry, ConversationError> =>
  Effect.suspend(() => {
    const known = registries.get(row)
    if (known !== undefined) return Effect.succeed(known)
    return Effect.tap(Recorded.registryOf(Bfcl.conversationOf(row).meta, row.id), (made) =>
      Effect.sync(() => void registries.set(row, made))
    )
  })

let plays = 0

/** One turn of the loop over a row. */
export const play = Effect.fnUntraced(function* (row: Bfcl.Row, reply: Reply) {
  const conversation = Bfcl.conversationOf(row)
  const tools = yield* registryOf(row)
  const said: Fixture.Reply =
    typeof reply === "string"
      ? { text: reply }
      : { blocks: reply.map(({ input, name }) => ({ type: "tool_use", name, input })) }
  const played = Fixture.engineOf({ name: "script", engine: [said] }, conversation, codec, tools.specs)
  const filled = yield* Effect.scoped(
    Filling.fill({
      conversation,
      // A run of its own each time.
      path: `${plays++}/${Bfcl.nameOf(row)}.yaml`,
      tools,
      codec,
      voice: played.voice,
      limits: { ...defaults, modelTurns: 1 },
      save: () => Effect.void
    })
  ).pipe(Effect.provideService(Model, played.scripted.model))
  return filled.conversation
})

/** What the suite says of each row, by its id. */
export const verdicts = Effect.fnUntraced(function* (
  rows: ReadonlyArray<Bfcl.Row>,
  conversations: ReadonlyArray<Conversation>,
  options: Bfcl.SuiteOptions = {}
) {
  const named = rows.map((row, at) => ({ name: Bfcl.nameOf(row), conversation: conversations[at]! }))
  const evaluated = yield* evaluate(Bfcl.suiteOf(rows, options), named, nowhere)
  return new Map<string, { readonly outcome: Outcome; readonly reason?: string }>(
    evaluated.cases.map(({ matches }, at) => [rows[at]!.id, matches[0]!.assertions[0]!.verdict])
  )
})

/** Ways to damage right calls, and whether they are right still. */
export interface Damage {
  readonly name: string
  readonly stays: boolean
  /** `undefined`: the row has nothing of the kind to damage. */
  readonly apply: (row: Bfcl.Row, calls: ReadonlyArray<Said>) => Reply | undefined
}

const withFirst = (calls: ReadonlyArray<Said>, input: JsonObject): ReadonlyArray<Said> => [
  { ...calls[0]!, input },
  ...calls.slice(1)
]

const answersOf = (row: Bfcl.Row): Readonly<Record<string, ReadonlyArray<Json>>> =>
  Object.values(row.possible_answers![0]!)[0]! as Readonly<Record<string, ReadonlyArray<Json>>>

const without = (input: JsonObject, name: string): JsonObject =>
  Object.fromEntries(Object.entries(input).filter(([key]) => key !== name))

/** Letters all capital and a space at the end: the same text to the leaderboard. */
const shout = (text: string): string => `${text.toUpperCase()} `

const firstTool = (row: Bfcl.Row) => {
  const [name] = Object.keys(row.possible_answers![0]!)
  const parameters = row.tools.find((tool) => tool.name === name)!.parameters as JsonObject
  return { properties: parameters.properties as JsonObject, required: parameters.required as ReadonlyArray<string> }
}

/** A text whose value is free: no enumeration says how it is written, and the answers are texts too. */
const freeText = (row: Bfcl.Row, input: JsonObject): string | undefined =>
  Object.keys(input).find((key) => {
    const schema = firstTool(row).properties[key]
    return (
      schema !== undefined &&
      isObject(schema) &&
      schema.type === "string" &&
      schema.enum === undefined &&
      typeof input[key] === "string" &&
      /[a-z]/i.test(input[key])
    )
  })

export const damages: ReadonlyArray<Damage> = [
  { name: "words instead of calls", stays: false, apply: () => "I could do that." },
  {
    name: "a tool nobody has",
    stays: false,
    apply: (_, calls) => [{ name: "no_such_tool", input: {} }, ...calls.slice(1)]
  },
  {
    name: "a required parameter is missing",
    stays: false,
    apply: (row, calls) => {
      const [required] = firstTool(row).required.filter((name) => Object.hasOwn(calls[0]!.input, name))
      return required === undefined ? undefined : withFirst(calls, without(calls[0]!.input, required))
    }
  },
  {
    name: "a parameter too many",
    stays: false,
    apply: (_, calls) => withFirst(calls, { ...calls[0]!.input, zz_unexpected: 1 })
  },
  {
    name: "another text",
    stays: false,
    apply: (row, calls) => {
      const key = freeText(row, calls[0]!.input)
      return key === undefined ? undefined : withFirst(calls, { ...calls[0]!.input, [key]: "something else entirely" })
    }
  },
  { name: "a call too many", stays: false, apply: (_, calls) => [...calls, calls[0]!] },
  { name: "a call too few", stays: false, apply: (_, calls) => (calls.length < 2 ? undefined : calls.slice(1)) },
  {
    name: "calls the other way round",
    stays: true,
    apply: (_, calls) => (calls.length < 2 ? undefined : calls.toReversed())
  },
  {
    name: "a text in capitals",
    stays: true,
    apply: (row, calls) => {
      const key = freeText(row, calls[0]!.input)
      return key === undefined
        ? undefined
        : withFirst(calls, { ...calls[0]!.input, [key]: shout(calls[0]!.input[key] as string) })
    }
  },
  {
    name: "an optional parameter is left out",
    stays: true,
    apply: (row, calls) => {
      const key = Object.keys(calls[0]!.input).find(
        (name) => answersOf(row)[name]!.includes("") && !firstTool(row).required.includes(name)
      )
      return key === undefined ? undefined : withFirst(calls, without(calls[0]!.input, key))
    }
  }
]
