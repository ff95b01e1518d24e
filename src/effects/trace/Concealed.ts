/**
 * Records in which redaction rules replaced something, for whoever compares what is recorded: a redacted text says nothing
 * about the original, its length and keyed digest do. Whoever shows a record shows the text with its marks.
 */
import * as Schema from "effect/Schema"
import { marked } from "../../actors/Redaction.ts"
import { RedactedField } from "../../actors/TraceEvent.ts"
import type { TraceRecord } from "./TraceReader.ts"

/** Stands for content as if it had been left out. A class, since what a tool answers may look like anything. */
export class Concealed {
  readonly bytes: number
  readonly hmac: string
  constructor({ bytes, hmac }: Pick<RedactedField, "bytes" | "hmac">) {
    this.bytes = bytes
    this.hmac = hmac
  }
}

const isList = Schema.is(Schema.Array(RedactedField))

/** What was replaced in a record; `undefined` for something that is no such list. */
export const redactedIn = ({ redacted }: TraceRecord): ReadonlyArray<RedactedField> | undefined =>
  redacted === undefined ? [] : isList(redacted) ? redacted : undefined

/** Replacements in a record. */
export const replacements = (record: TraceRecord): number =>
  redactedIn(record)?.reduce((sum, { count }) => sum + count, 0) ?? 0

/** Why nothing can be made of these records that needs every text as it was; `undefined` where none is redacted. */
export const redactedReason = (records: ReadonlyArray<TraceRecord>): string | undefined => {
  const first = records.find(({ redacted }) => redacted !== undefined)
  if (first === undefined) return undefined
  const names = new Set<string>()
  for (const record of records) {
    if (record.redacted === undefined) continue
    for (const [, name] of JSON.stringify(record.data).matchAll(marked)) names.add(name!)
  }
  const rules = [...names].sort().join(", ")
  return `redacted: texts of this record were replaced by redaction rules${rules === "" ? "" : ` (${rules})`}, first in event ${first.seq}, and what stood there is nowhere`
}

const partsOf = (pointer: string): ReadonlyArray<string> => (pointer.startsWith("/") ? pointer.slice(1).split("/") : [])

/** What stands at a place of `data`; `undefined` where there is nothing. */
export const at = (data: unknown, pointer: string): unknown =>
  partsOf(pointer).reduce<unknown>(
    (value, part) =>
      typeof value === "object" && value !== null && Object.hasOwn(value, part)
        ? (value as Readonly<Record<string, unknown>>)[part]
        : undefined,
    data
  )

const put = (value: unknown, parts: ReadonlyArray<string>, field: Concealed): unknown => {
  const [part, ...rest] = parts
  if (part === undefined) return field
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, part)) return value
  if (Array.isArray(value)) return value.map((item, index) => (String(index) === part ? put(item, rest, field) : item))
  const members = value as Readonly<Record<string, unknown>>
  return { ...members, [part]: put(members[part], rest, field) }
}

/** The record with what was redacted left out. */
export const concealed = (record: TraceRecord): TraceRecord => {
  const fields = redactedIn(record) ?? []
  if (fields.length === 0) return record
  const data = fields.reduce<unknown>((all, field) => put(all, partsOf(field.at), new Concealed(field)), record.data)
  return { ...record, data: data as TraceRecord["data"] }
}
