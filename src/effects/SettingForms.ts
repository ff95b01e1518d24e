/**
 * How one setting is read from a raw value, whatever source it came from: texts, numbers, switches, choices, times, lists.
 * Knows no setting by name.
 */
import { isAbsolute, relative, sep } from "node:path"
import * as Result from "effect/Result"
import { type Json, parse } from "../tools/JsonText.ts"

/** A raw value as a source has it: text from flags and variables, JSON from the file, lists from repeated flags. */
export type Raw = Json | ReadonlyArray<string>

export interface Field<A> {
  readonly description: string
  /** What a value looks like, for help and for messages. */
  readonly form: string
  readonly choices?: ReadonlyArray<string>
  readonly kind?: "boolean" | "repeated"
  /** Must not come from a file that may lie in somebody else's directory. */
  readonly notFromFile?: (value: A) => boolean
  readonly read: (raw: Raw) => Result.Result<A, string>
  readonly fallback: A
}

export const expected = (form: string): Result.Result<never, string> => Result.fail(`expected ${form}`)

export const text = (description: string, form: string): Field<string | undefined> => ({
  description,
  form,
  fallback: undefined,
  read: (raw) => (typeof raw === "string" && raw !== "" ? Result.succeed(raw) : expected(form))
})

export const path = (description: string, fallback: string): Field<string> => ({
  description,
  form: "DIR",
  fallback,
  read: (raw) => (typeof raw === "string" && raw !== "" ? Result.succeed(raw) : expected("a directory"))
})

/** Does a path of the settings file lead out of the directory the file lies in? Whoever wrote the file may be somebody else. */
export const leavesHere = (said: string | undefined): boolean => {
  if (said === undefined) return false
  const way = relative(".", said)
  return isAbsolute(way) || way === ".." || way.startsWith(`..${sep}`)
}

export const flag = (description: string, fallback = false): Field<boolean> => ({
  description,
  form: "on|off",
  kind: "boolean",
  fallback,
  read: (raw) => (typeof raw === "boolean" ? Result.succeed(raw) : onOff(raw))
})

export const onOff = (raw: Raw): Result.Result<boolean, string> => {
  if (raw === true || raw === "on" || raw === "true" || raw === "1") return Result.succeed(true)
  if (raw === false || raw === "off" || raw === "false" || raw === "0") return Result.succeed(false)
  return expected("on or off")
}

export const choice = <const A extends string>(
  description: string,
  choices: ReadonlyArray<A>,
  fallback: A
): Field<A> => ({
  description,
  form: choices.join("|"),
  choices,
  fallback,
  read: (raw) => {
    const found = choices.find((one) => one === raw)
    return found === undefined ? expected(choices.join(", ")) : Result.succeed(found)
  }
})

/** A finite decimal number, from JSON or from text. Text like `0x10`, ` 1` or the empty one is none. */
const numberOf = (raw: Raw): number | undefined => {
  if (typeof raw === "number") return raw
  return typeof raw === "string" && /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(raw) ? Number(raw) : undefined
}

export interface Range {
  readonly least: number
  readonly most?: number
  readonly whole?: boolean
  readonly none?: boolean
  readonly scale?: number
}

const inRange = (value: number, { least, most = Number.MAX_SAFE_INTEGER, whole = true }: Range): boolean =>
  Number.isFinite(value) && value >= least && value <= most && (!whole || Number.isInteger(value))

const rangeForm = ({ least, most, none = false, whole = true }: Range): string =>
  `a ${whole ? "whole " : ""}number ${most === undefined ? `of at least ${least}` : `from ${least} to ${most}`}` +
  (none ? ' or "none"' : "")

export const number = (description: string, form: string, fallback: number, range: Range): Field<number> => ({
  description,
  form,
  fallback,
  read: (raw) => {
    if (range.none === true && raw === "none") return Result.succeed(Infinity)
    const value = numberOf(raw)
    if (value === undefined || !inRange(value, range)) return expected(rangeForm(range))
    return Result.succeed(Math.round(value * (range.scale ?? 1) * 1e6) / 1e6)
  }
})

export const limit = (description: string, fallback: number): Field<number> =>
  number(`${description} (default ${fallback})`, "N|none", fallback, { least: 0, none: true })

export const seconds = (description: string, fallbackMillis: number): Field<number> => {
  const range = { least: 0, most: 2_000_000, whole: false, none: true, scale: 1000 }
  const field = number(`${description} (default ${fallbackMillis / 1000})`, "SECONDS|none", fallbackMillis, range)
  // Limits count whole milliseconds.
  return {
    ...field,
    read: (raw) => Result.map(field.read(raw), (millis) => (millis === Infinity ? millis : Math.ceil(millis)))
  }
}

export const optionalNumber = (description: string, form: string, range: Range): Field<number | undefined> => ({
  description,
  form,
  read: number(description, form, 0, range).read,
  fallback: undefined
})

export const pairForm = "KEY=VALUE"

export const pairs = (list: ReadonlyArray<Json>): Result.Result<Record<string, string>, string> => {
  const entries: Array<readonly [string, string]> = []
  for (const pair of list) {
    const at = typeof pair === "string" ? pair.indexOf("=") : -1
    if (typeof pair !== "string" || at < 1) return expected(pairForm)
    entries.push([pair.slice(0, at), pair.slice(at + 1)])
  }
  return Result.succeed(Object.fromEntries(entries))
}

const units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const durationForm = "DURATION"

/** Milliseconds from `500ms`, `90s`, `30m`, `2h`, `1d`; a plain number is seconds. */
export const duration = (description: string, fallbackMillis: number, mostMillis: number): Field<number> => ({
  description,
  form: durationForm,
  fallback: fallbackMillis,
  read: (raw) => {
    const [, amount, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(String(raw)) ?? []
    const millis = Math.round(Number(amount) * units[(unit ?? "s") as keyof typeof units])
    return millis >= 1 && millis <= mostMillis
      ? Result.succeed(millis)
      : expected(`a time from 1ms to ${inDays(mostMillis)}, like 90s, 30m, 2h or 500ms`)
  }
})

const inDays = (millis: number): string => `${Math.floor(millis / units.d)}d`

/**
 * Texts of a flag that may be repeated. A variable holds one of them, or several as a JSON list; the file a list, or one.
 * `read` is what is wrong with one, or what it means.
 */
export const list = <A>(
  description: string,
  form: string,
  read: (text: string) => Result.Result<A, string>
): Field<ReadonlyArray<A>> => ({
  description,
  form,
  kind: "repeated",
  fallback: [],
  read: (raw) => {
    const value = typeof raw === "string" && raw.startsWith("[") ? Result.getOrElse(parse(raw), () => null) : raw
    const texts = typeof value === "string" ? [value] : value
    if (!Array.isArray(texts) || texts.length === 0 || !texts.every((one) => typeof one === "string" && one !== "")) {
      return expected(`${form}, or a list of them`)
    }
    const found: Array<A> = []
    for (const one of texts as ReadonlyArray<string>) {
      const meant = read(one)
      if (Result.isFailure(meant)) return Result.fail(meant.failure)
      found.push(meant.success)
    }
    return Result.succeed(found)
  }
})

/** Texts that are kept as they are said once they can be read; never from a file, which could start or reveal anything. */
export const words = (
  description: string,
  form: string,
  parse: (text: string) => Result.Result<unknown, string>
): Field<ReadonlyArray<string>> => ({
  ...list(description, form, (text) => Result.map(parse(text), () => text)),
  notFromFile: (said) => said.length > 0
})
