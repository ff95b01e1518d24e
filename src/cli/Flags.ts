/** Flags, made from the table of settings, and the few that are not settings. Light: help is printed from this alone. */

import * as Flag from "effect/cli/Flag"
import * as Option from "effect/Option"
import { fields, flagOf, type SettingName } from "../effects/SettingFields.ts"
import type { Field } from "../effects/SettingForms.ts"
import type { RawSettings } from "../effects/Settings.ts"

/** What one flag says; undefined when it is not there. */
type RawFlag = Flag.Flag<string | boolean | ReadonlyArray<string> | undefined>

const optional = <A>(flag: Flag.Flag<A>): Flag.Flag<A | undefined> =>
  Flag.map(Flag.optional(flag), Option.getOrUndefined)

const flagFor = (name: SettingName): RawFlag => {
  const { choices, description, form, kind } = fields[name] as Field<unknown>
  const spelled = flagOf(name)
  if (kind === "boolean") return optional(Flag.withDescription(Flag.Boolean(spelled), description))
  if (choices !== undefined) return optional(Flag.withDescription(Flag.Literals(spelled, choices), description))
  const text = Flag.String(spelled).pipe(Flag.withMetavar(form), Flag.withDescription(description))
  if (kind !== "repeated") return optional(text)
  return Flag.map(Flag.atLeast(text, 0), (values) => (values.length === 0 ? undefined : values))
}

/** One flag per named setting; `rawOf` makes settings of what they parse to. */
export const settings = <const Names extends ReadonlyArray<SettingName>>(
  ...names: Names
): { readonly [K in Names[number]]: RawFlag } =>
  Object.fromEntries(names.map((name) => [name, flagFor(name)])) as { readonly [K in Names[number]]: RawFlag }

/** The settings among a command's parsed flags. */
export const rawOf = (parsed: Readonly<Record<string, unknown>>): RawSettings =>
  Object.fromEntries(
    Object.entries(parsed).filter(([name, value]) => Object.hasOwn(fields, name) && value !== undefined)
  )

/** A switch that is off unless it is there. */
export const switchOn = (name: string, description: string): Flag.Flag<boolean> =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false))

export const json = switchOn("json", "Print one JSON document and nothing else")

export const quiet = switchOn("quiet", "Print the answer and nothing else").pipe(Flag.withAlias("q"))

export const color = optional(Flag.Boolean("color")).pipe(
  Flag.withDescription("Colours (default: on a terminal, unless NO_COLOR is set)")
)

/** A flag with a text, or nothing. */
export const text = (name: string, form: string, description: string): Flag.Flag<string | undefined> =>
  optional(Flag.String(name).pipe(Flag.withMetavar(form), Flag.withDescription(description)))

/** One of a few words, or nothing. */
export const choice = <const Words extends ReadonlyArray<string>>(name: string, words: Words, description: string) =>
  optional(Flag.Literals(name, words).pipe(Flag.withDescription(description)))

/** A switch that can be set either way, or not at all. */
export const switchable = (name: string, description: string): Flag.Flag<boolean | undefined> =>
  optional(Flag.Boolean(name)).pipe(Flag.withDescription(description))

/** A number, or nothing. */
export const number = (name: string, form: string, description: string): Flag.Flag<number | undefined> =>
  optional(Flag.Int(name).pipe(Flag.withMetavar(form), Flag.withDescription(description)))
