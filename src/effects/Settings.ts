/**
 * Settings from flags, environment and file, in that order of weight, with where each came from. All problems are reported
 * at once. Nothing here opens a model or looks whether a tool exists.
 */

import { hash } from "node:crypto"
import { readFileSync } from "node:fs"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { isObject, type JsonObject, parse } from "../tools/JsonText.ts"
import { nearest } from "../tools/Nearest.ts"
import { type Authority, fromGrants, type Grant } from "./Authority.ts"
import { defaults as defaultGates, type Gates, problemWith } from "./Gates.ts"
import type { Limits } from "./Limits.ts"
import { rulesProblem } from "./RedactSettings.ts"
import { fields, flagOf, names, type SettingName, type Settings, variableOf } from "./SettingFields.ts"
import type { Field, Raw } from "./SettingForms.ts"

/** Settings that cannot be used; one line per problem, each naming its source and what it takes. */
export class SettingsError extends Schema.TaggedError<SettingsError>()("SettingsError", {
  problems: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return this.problems.join("\n")
  }
}

export type Origin = "flag" | "environment" | "file" | "default"

export interface Resolved {
  readonly settings: Settings
  readonly origins: { readonly [K in SettingName]: Origin }
  /** The file that was read, if there is one. */
  readonly file: string | undefined
}

/** What each source says. Absent names are not said. */
export type RawSettings = { readonly [K in SettingName]?: Raw | undefined }

export interface Sources {
  readonly flags: RawSettings
  readonly environment: RawSettings
  readonly file: RawSettings
}

/** Name of the settings file in the current directory. */
const fileName = "writ.config.json"

/** Where a setting was said, for messages: its flag, its variable, its key in the file. */
export const placeOf = (origin: Origin, name: SettingName): string => {
  if (origin === "flag") return `--${flagOf(name)}`
  return origin === "environment" ? variableOf(name) : `${fileName}, "${name}"`
}

const sourceOf = (sources: Sources, name: SettingName): readonly [Origin, Raw | undefined] => {
  if (sources.flags[name] !== undefined) return ["flag", sources.flags[name]]
  if (sources.environment[name] !== undefined) return ["environment", sources.environment[name]]
  if (sources.file[name] !== undefined) return ["file", sources.file[name]]
  return ["default", undefined]
}

/** Puts the sources together. */
export const resolve = (sources: Sources): Result.Result<Omit<Resolved, "file">, SettingsError> => {
  const problems: Array<string> = []
  const settings: Record<string, unknown> = {}
  const origins: Record<string, Origin> = {}
  for (const name of names) {
    const field = fields[name] as Field<unknown>
    const [origin, raw] = sourceOf(sources, name)
    origins[name] = origin
    settings[name] = field.fallback
    if (raw === undefined) continue
    const read = field.read(raw)
    if (Result.isFailure(read)) problems.push(`${placeOf(origin, name)}: ${read.failure}`)
    else if (origin === "file" && field.notFromFile?.(read.success) === true) {
      problems.push(
        `${placeOf(origin, name)}: "${String(raw)}" has to be said on the command line or in ${variableOf(name)}`
      )
    } else settings[name] = read.success
  }
  if (problems.length > 0) return Result.fail(new SettingsError({ problems }))
  return Result.succeed({
    settings: settings as unknown as Settings,
    origins: origins as Resolved["origins"]
  })
}

const fromEnvironment: Effect.Effect<RawSettings, SettingsError> = Effect.gen(function* () {
  const found: Record<string, string> = {}
  for (const name of names) {
    const value = yield* Config.option(Config.String(variableOf(name)))
    if (Option.isSome(value)) found[name] = value.value
  }
  return found as RawSettings
}).pipe(Effect.mapError((error) => new SettingsError({ problems: [error.message] })))

const readFile = (path: string): Result.Result<JsonObject | undefined, string> => {
  let text: string
  try {
    text = readFileSync(path, "utf8")
  } catch (cause) {
    const code = (cause as { readonly code?: unknown }).code
    return code === "ENOENT" ? Result.succeed(undefined) : Result.fail(`${fileName} cannot be read: ${String(code)}`)
  }
  const value = parse(text, { maxDepth: 100 })
  if (Result.isFailure(value)) {
    const { position, reason } = value.failure
    const line = text.slice(0, position).split("\n").length
    return Result.fail(`${fileName}, line ${line}: ${reason}`)
  }
  return isObject(value.success) ? Result.succeed(value.success) : Result.fail(`${fileName}: expected an object`)
}

const unknownKeys = (values: JsonObject): ReadonlyArray<string> =>
  Object.keys(values)
    .filter((key) => key !== "$schema" && !(names as ReadonlyArray<string>).includes(key))
    .map((key) => {
      const near = nearest(key, names)
      return `${fileName}: there is no setting "${key}"${near === undefined ? "" : `; did you mean "${near}"?`}`
    })

const fromFile = (path: string): Effect.Effect<JsonObject | undefined, SettingsError> =>
  Effect.suspend(() => {
    const read = readFile(path)
    if (Result.isFailure(read)) return Effect.fail(new SettingsError({ problems: [read.failure] }))
    const unknown = read.success === undefined ? [] : unknownKeys(read.success)
    return unknown.length > 0 ? Effect.fail(new SettingsError({ problems: unknown })) : Effect.succeed(read.success)
  })

/** The settings of a program started here with these flags. `path` is the settings file; without it `writ.config.json`. */
export const load = Effect.fnUntraced(function* (
  flags: RawSettings,
  path: string = fileName
): Effect.fn.Return<Resolved, SettingsError> {
  const file = yield* fromFile(path)
  const environment = yield* fromEnvironment
  const resolved = yield* Effect.fromResult(resolve({ flags, environment, file: (file ?? {}) as RawSettings }))
  const problem = yield* rulesProblem(resolved.settings.redact)
  if (problem !== undefined) {
    return yield* new SettingsError({ problems: [`${placeOf(resolved.origins.redact, "redact")}: ${problem}`] })
  }
  return { ...resolved, file: file === undefined ? undefined : path }
})

/** The settings that bound a run, as the loop wants them. */
export const limitsOf = (settings: Settings): Limits => ({
  modelTurns: settings.maxTurns,
  toolCalls: settings.maxToolCalls,
  wallMillis: settings.wallTime,
  toolMillis: settings.toolTimeout,
  outputTokens: settings.maxOutputTokens,
  thinkTokens: settings.maxThinkTokens,
  resultBytes: settings.maxResultBytes,
  repairs: settings.maxRepairs,
  loopThreshold: settings.loopThreshold
})

/** A grant as it is said. */
export const grantText = ({ pattern, verb }: Grant): string => `${verb}:${pattern}`

/** What the settings permit; `undefined` where they say nothing about it. Its name tells one set of permissions from another. */
export const authorityOf = ({ deny, grant, scope }: Settings): Authority | undefined => {
  if (grant.length + deny.length + scope.length === 0) return undefined
  const said = [grant.map(grantText), deny.map(grantText), scope].map((texts) => texts.toSorted())
  const grants = {
    resources: grant.length === 0 ? ("all" as const) : grant,
    deny,
    scopes: scope.length === 0 ? ("all" as const) : scope
  }
  // The patterns themselves may name files, which a record without content must not.
  return fromGrants(grants, `grants-${hash("sha256", JSON.stringify(said)).slice(0, 12)}`)
}

/** What decides about calls, as the loop wants it. */
export const gatesOf = (settings: Settings): Partial<Gates> => {
  const authority = authorityOf(settings)
  return {
    ...(authority === undefined ? {} : { authority }),
    profile: settings.profile,
    retry: retryOf(settings),
    dryRun: settings.dryRun,
    approvalMillis: settings.approvalExpiry,
    candidates: settings.candidates
  }
}

const retryOf = ({ retryAttempts, retryDelay, retryFactor }: Settings) => ({
  attempts: retryAttempts,
  delayMillis: retryDelay,
  factor: retryFactor
})

/** Why settings that are each in order cannot be used together. `undefined` when they can. */
export const gatesProblem = (settings: Settings): string | undefined =>
  problemWith({ ...defaultGates, ...gatesOf(settings) })
