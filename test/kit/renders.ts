/**
 * Sorts every row of the conformance renders: byte-equal as some codec prints it, or refused by a rule that is named. What is
 * neither, a rule nothing needs any more and a template nobody planned for are problems.
 */
import * as Result from "effect/Result"
import type { Codec } from "../../src/engine/codecs/Codec.ts"
import { byId, ids } from "../../src/engine/codecs/Families.ts"
import { flatten } from "../../src/engine/Prompt.ts"
import { isObject, type Json, type JsonObject, parse } from "../../src/tools/JsonText.ts"
import { firstDifference, messagesOf, type RenderRow } from "./codecs.ts"
import type { Ruling } from "./conformance.ts"

/** A template that a codec speaks for. */
export interface Spoken {
  readonly codec: string
  /** Arguments given as JSON text are printed as they are: the text is read, so that it is an object for us. */
  readonly readArguments?: boolean
  readonly today?: string
  /** The template prints no tools. */
  readonly withoutTools?: boolean
  /** Rows only one engine could render are held to it as well; they are not counted. */
  readonly referenceToo?: boolean
  /** Matched against `id: difference`. */
  readonly rules?: ReadonlyArray<Ruling>
}

/** A template that is refused as a whole, with the rule. */
export interface Refused {
  readonly refused: string
}

export type Plan = Spoken | Refused

/** The rule for rows that have no text to be equal to. */
export const templateRefuses = "the template itself gives up on the conversation"

export interface Sorted {
  readonly rows: number
  readonly equal: number
  /** Rows by the rule that refuses them. */
  readonly refused: ReadonlyMap<string, number>
  readonly problems: ReadonlyArray<string>
}

/** What the codec prints for a row. */
export const renderRow = (codec: Codec, row: RenderRow, how: Omit<Spoken, "codec" | "rules"> = {}): string => {
  const thinking = row.options.enable_thinking ?? row.options.think
  return flatten(
    codec.render(how.readArguments === true ? readArguments(messagesOf(row)) : messagesOf(row), {
      tools: how.withoutTools === true ? [] : (row.tools ?? []).map((one) => one.function),
      generationPrompt: row.add_generation_prompt,
      ...(thinking === undefined ? {} : { thinking }),
      ...(how.today === undefined ? {} : { today: how.today })
    })
  )
}

/** Sorts the rows of one template. */
export const sortRows = (rows: ReadonlyArray<RenderRow>, plan: Plan): Sorted => {
  const agreed = rows.filter((row) => row.trust === "agreed")
  if ("refused" in plan) return refuseAll(agreed, plan)
  const codec = Result.getOrThrow(byId(plan.codec))
  const refused = new Map<string, number>()
  const problems: Array<string> = []
  const needed = new Set<Ruling>()
  let equal = 0
  for (const row of plan.referenceToo === true ? rows : agreed) {
    const text = renderRow(codec, row, plan)
    const counts = row.trust === "agreed" ? 1 : 0
    if (row.expected_text === undefined) {
      refused.set(templateRefuses, (refused.get(templateRefuses) ?? 0) + counts)
      continue
    }
    const difference = firstDifference(text, row.expected_text)
    if (difference === undefined) {
      equal += counts
      continue
    }
    const rule = (plan.rules ?? []).find(([pattern]) => pattern.test(`${row.id}: ${difference}`))
    if (rule === undefined) problems.push(`${row.id} as ${plan.codec}: ${difference}`)
    else {
      needed.add(rule)
      if (counts > 0) refused.set(rule[1], (refused.get(rule[1]) ?? 0) + counts)
    }
  }
  for (const rule of plan.rules ?? [])
    if (!needed.has(rule)) problems.push(`no row needs the rule ${rule[0]} (${rule[1]})`)
  return { rows: agreed.length, equal, refused, problems }
}

const manners: ReadonlyArray<Omit<Spoken, "codec" | "rules">> = [undefined, "30 Nov 2026", "2026-11-30"].flatMap(
  (today) =>
    [false, true].flatMap((withoutTools) =>
      [false, true].map((readArguments) => ({ withoutTools, readArguments, ...(today === undefined ? {} : { today }) }))
    )
)

/** A template is not refused any more once a codec prints all of it in some manner. */
const refuseAll = (rows: ReadonlyArray<RenderRow>, { refused }: Refused): Sorted => {
  const printed = rows.filter((row) => row.expected_text !== undefined)
  const speaks = ids.filter((id) => {
    const codec = Result.getOrThrow(byId(id))
    return (
      printed.length > 0 &&
      manners.some((how) => printed.every((row) => renderRow(codec, row, how) === row.expected_text))
    )
  })
  return {
    rows: rows.length,
    equal: 0,
    refused: new Map([[refused, rows.length]]),
    problems: [
      ...speaks.map((id) => `${rows[0]!.template} is refused, and ${id} prints every row of it`),
      ...(refused === templateRefuses ? printed.map((row) => `the template does print ${row.id}`) : [])
    ]
  }
}

const readArguments = (messages: ReturnType<typeof messagesOf>): ReturnType<typeof messagesOf> =>
  messages.map((message) =>
    message.role !== "assistant" || message.calls === undefined
      ? message
      : {
          ...message,
          calls: message.calls.map((call) => ({ ...call, arguments: asObject(call.arguments) }))
        }
  )

const asObject = (value: Json): JsonObject => {
  if (typeof value !== "string") return value as JsonObject
  const read = parse(value)
  return Result.isSuccess(read) && isObject(read.success) ? read.success : {}
}

/** Adds up templates. */
export const sum = (parts: ReadonlyArray<Sorted>): Sorted => {
  const refused = new Map<string, number>()
  for (const part of parts) for (const [why, count] of part.refused) refused.set(why, (refused.get(why) ?? 0) + count)
  return {
    rows: parts.reduce((total, part) => total + part.rows, 0),
    equal: parts.reduce((total, part) => total + part.equal, 0),
    refused,
    problems: parts.flatMap((part) => part.problems)
  }
}

export const refusedCount = ({ refused }: Sorted): number => [...refused.values()].reduce((all, one) => all + one, 0)
