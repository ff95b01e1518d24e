/** `writ doctor`: what works here and what does not, each with its remedy, and which setting came from where. */

import { accessSync, constants, existsSync } from "node:fs"
import { isBuiltin } from "node:module"
import { dirname, join, resolve } from "node:path"
import * as Console from "effect/Console"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { isAddress, shownPlace } from "../actors/EffectLedgerAddress.ts"
import { ToolPool } from "../actors/ToolPool.ts"
import * as RunDirectory from "../effects/RunDirectory.ts"
import { names, type SettingName, type Settings, variableOf } from "../effects/SettingFields.ts"
import { gatesProblem, grantText, load, type Resolved } from "../effects/Settings.ts"
import { effectVersion, version } from "../effects/Version.ts"
import * as Wiring from "../effects/Wiring.ts"
import * as LlamaLibrary from "../engine/LlamaLibrary.ts"
import { Model } from "../engine/Model.ts"
import { control, text } from "../engine/Prompt.ts"
import { registry } from "../tools/builtin/index.ts"
import type { Check } from "./DoctorCheck.ts"
import { endWith, inJson } from "./Ending.ts"
import { checkIsolation } from "./EngineFindings.ts"
import { checkCodec, choose } from "./ModelChoice.ts"
import { chosenBy, localPath, named } from "./ModelNames.ts"
import { duration, inline, jsonText } from "./Printable.ts"
import { type Paint, paintFor } from "./Screen.ts"
import { described } from "./WebSource.ts"

export interface DoctorFlags {
  readonly json: boolean
  readonly color: boolean | undefined
}

const least = [22, 19] as const

const checkNode = (): Check => {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)
  const good = major > least[0] || (major === least[0] && minor >= least[1])
  const said = `${process.versions.node} on ${process.platform} ${process.arch}`
  return good
    ? { name: "node", state: "ok", text: said }
    : { name: "node", state: "no", text: said, remedy: `install Node ${least.join(".")} or newer` }
}

const checkLibrary = Effect.map(LlamaLibrary.report, (found): ReadonlyArray<Check> => {
  if (!found.installed) {
    const remedy = "npm install node-llama-cpp@3.21.1 (local models need it; scripted engines do not)"
    return [{ name: "engine", state: "no", text: found.problem ?? "node-llama-cpp is not installed", remedy }]
  }
  const gpus = found.gpuTypes.filter((type) => type !== false)
  return [
    found.binary
      ? { name: "engine", state: "ok", text: `node-llama-cpp ${found.version ?? "?"} with a prebuilt llama.cpp` }
      : {
          name: "engine",
          state: "no",
          text: found.problem ?? "no binary for this machine loads",
          remedy: "reinstall without --omit=optional; musl systems have no prebuilt binary"
        },
    gpus.length > 0
      ? { name: "gpu", state: "ok", text: `${gpus.join(", ")} can be used` }
      : { name: "gpu", state: "note", text: "none that llama.cpp can use; inference runs on the processor" }
  ]
})

const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.timed(effect), ([elapsed, value]) => [value, duration(Duration.toMillis(elapsed))] as const)

/** Loads the model that ships and asks it something: the only proof that inference works. */
const checkInference = ({ gpu, isolation }: Pick<Settings, "gpu" | "isolation">): Effect.Effect<Check> =>
  Model.use((model) =>
    Effect.map(model.tokenize([control("<|im_start|>"), text("hello")]), (tokens) => ({ tokens, model }))
  ).pipe(
    Effect.provide(Wiring.layerModel({ sessions: 1, gpu, isolation })),
    timed,
    Effect.map(([{ model, tokens }, took]): Check => {
      const used = model.identity.build?.["gpu"]
      const where = used === undefined || used === "none" ? "the processor" : String(used)
      const asked = gpu === false ? "off" : gpu
      return {
        name: "inference",
        state: tokens.length > 0 ? "ok" : "no",
        text: `the demo model loads in its own ${isolation}, on ${where} (gpu: ${asked}; ${took})`
      }
    }),
    Effect.catch((error) =>
      Effect.succeed<Check>({
        name: "inference",
        state: "no",
        text: error.message,
        remedy: "see the engine line above, and --gpu"
      })
    )
  )

/** Runs a calculation on a thread of the pool. */
const checkPool: Effect.Effect<Check> = Effect.gen(function* () {
  const tool = (yield* registry).get("calculate")
  const args = tool?.check({ expression: "6 * 7" })
  if (tool === undefined || args === undefined || Result.isFailure(args))
    return yield* Effect.die(new Error("no calculate"))
  const pool = yield* ToolPool
  return yield* pool.run({
    callId: "doctor",
    tool,
    arguments: args.success,
    deadlineMillis: 20_000,
    settings: { fixtures: {} }
  })
}).pipe(
  Effect.provide(Wiring.layerTools({})),
  timed,
  Effect.map(
    ([outcome, took]): Check =>
      outcome._tag === "Succeeded" && outcome.result === 42
        ? { name: "tools", state: "ok", text: `a call ran on a thread of the pool (${took})` }
        : {
            name: "tools",
            state: "no",
            text: `a call on the pool came to ${JSON.stringify(outcome)}`,
            remedy: "please report this"
          }
  ),
  Effect.catch((error) =>
    Effect.succeed<Check>({ name: "tools", state: "no", text: error.message, remedy: "please report this" })
  )
)

const existing = (path: string): string => (existsSync(path) || dirname(path) === path ? path : existing(dirname(path)))

const canWrite = (path: string): boolean => {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

const checkFiles = (settings: Settings | undefined): ReadonlyArray<Check> => {
  const home = resolve(RunDirectory.home)
  const writable = canWrite(existing(home))
  const ledger = settings?.ledger ?? RunDirectory.ledger
  return [
    writable
      ? { name: "runs", state: "ok", text: `${join(RunDirectory.home, "runs")} can be written` }
      : {
          name: "runs",
          state: "no",
          text: `${home} cannot be written`,
          remedy: "change to another directory, or use --run-dir"
        },
    checkLedger(ledger, writable)
  ]
}

/** Looks at the ledger without making one. */
const checkLedger = (ledger: string, writable: boolean): Check => {
  const name = "ledger"
  if (ledger === "memory") {
    return {
      name,
      state: "note",
      text: "memory: effects are forgotten with the process, and its runs cannot be resumed",
      remedy: "name a file with --ledger"
    }
  }
  if (isAddress(ledger)) {
    const remedy = "writ ledger list says whether it answers"
    return { name, state: "note", text: `${shownPlace(ledger)}: a server, not asked here`, remedy }
  }
  if (!isBuiltin("node:sqlite")) {
    return {
      name,
      state: "no",
      text: "this Node has no SQLite",
      remedy: `install Node ${least.join(".")} or newer`
    }
  }
  const usable = ledger === RunDirectory.ledger ? writable : canWrite(existing(resolve(ledger)))
  return usable
    ? { name, state: "ok", text: `${ledger}: SQLite is there` }
    : { name, state: "no", text: `${ledger} cannot be written`, remedy: "name another file with --ledger" }
}

const chosenWhy = {
  setting: "named by a setting",
  alias: "the alias default",
  "only one": "the only one that was taken in",
  none: "the one that ships, since no other is here"
} as const

const checkChosenModel = Effect.fnUntraced(function* (settings: Settings): Effect.fn.Return<Check> {
  const { engineUrl, modelsDir } = settings
  if (engineUrl !== undefined)
    return { name: "model", state: "note", text: `on the server ${engineUrl}; a run asks it` }
  const chosen = yield* Effect.result(chosenBy(settings))
  if (Result.isFailure(chosen)) return { name: "model", state: "note", text: chosen.failure.message }
  const { because, model } = chosen.success
  const meant = model === undefined ? undefined : yield* Effect.option(named(model, modelsDir))
  if (meant?._tag === "Some" && localPath(meant.value, modelsDir) === undefined) {
    return { name: "model", state: "note", text: `${model} is downloaded into ${modelsDir} when a run needs it` }
  }
  return yield* checkCodec(settings.codec).pipe(
    Effect.andThen(choose({ ...settings, model }, () => {})),
    Effect.map(
      ({ codec, title }): Check => ({
        name: "model",
        state: "ok",
        text: `${title}, codec ${codec}; ${chosenWhy[because]}`
      })
    ),
    Effect.catch((error) =>
      Effect.succeed<Check>({
        name: "model",
        state: "no",
        text: error.message,
        remedy: "writ models inspect FILE says more"
      })
    )
  )
})

/** Nothing where the engine is a server: it is in a process of its own anyway. */
const checkedIsolation = (settings: Settings): Effect.Effect<ReadonlyArray<Check>> =>
  Effect.map(Effect.option(chosenBy(settings)), (chosen) =>
    settings.engineUrl === undefined
      ? [checkIsolation(settings, chosen._tag === "Some" && chosen.value.because === "none")]
      : []
  )

const listed = (what: string, items: ReadonlyArray<string>): string =>
  items.length === 0 ? "" : `; ${what} ${items.join(", ")}`

/** What decides about calls, in a line. */
const checkGates = (settings: Settings): Check => {
  const name = "gates"
  const problem = gatesProblem(settings)
  if (problem !== undefined) return { name, state: "no", text: problem, remedy: "docs/cli.md lists every setting" }
  const { approve, deny, dryRun, grant, profile, scope } = settings
  const permitted =
    grant.length === 0 ? "everything is permitted" : `only ${grant.map(grantText).join(", ")} is permitted`
  const but = `${listed("never", deny.map(grantText))}${listed("scopes", scope)}`
  const text = `profile ${profile.name}, approvals: ${approve}; ${permitted}${but}${dryRun ? "; dry run" : ""}`
  return { name, state: "ok", text }
}

const checkWeb = Effect.fnUntraced(function* (settings: Settings): Effect.fn.Return<Check> {
  const { problem, text } = yield* described(settings)
  return problem === undefined
    ? { name: "web", state: "ok", text }
    : { name: "web", state: "no", text: problem, remedy: "docs/web.md says what the web tools need" }
})

const places = { flag: "flag", environment: "environment", file: "file", default: "default" } as const

const settingRows = ({ origins, settings }: Resolved) =>
  names.map((name) => ({ name, value: plain(name, settings[name]), origin: places[origins[name]] }))

/** JSON has no Infinity and no undefined; a password is not shown; grants and profiles are as they are said. */
const plain = (name: SettingName, value: Settings[SettingName]) => {
  if (name === "profile") return (value as Settings["profile"]).name
  // A pattern may be what it is to keep out of sight.
  if (name === "redact") return (value as Settings["redact"]).map((rule) => rule.name)
  if (name === "grant" || name === "deny") return (value as Settings["grant"]).map(grantText)
  if (name === "ledger" && typeof value === "string") return shownPlace(value)
  return value === Infinity ? "none" : value === undefined ? null : value
}

const human = (checks: ReadonlyArray<Check>, resolved: Resolved | undefined, paint: Paint): string => {
  const marks = { ok: paint.green("ok  "), note: paint.yellow("note"), no: paint.red("NO  ") }
  const lines = checks.flatMap(({ name, remedy, state, text: said }) => [
    `${marks[state]} ${name.padEnd(10)} ${inline(said)}`,
    ...(remedy === undefined ? [] : [`${" ".repeat(16)}${paint.dim(`→ ${remedy}`)}`])
  ])
  if (resolved === undefined) return lines.join("\n")
  const said = settingRows(resolved).filter(({ origin }) => origin !== "default")
  const from = (origin: string, name: SettingName) => (origin === "environment" ? variableOf(name) : resolved.file)
  return [
    ...lines,
    "",
    said.length === 0 ? "settings: all at their defaults" : "settings that are not at their defaults:",
    ...said.map(
      ({ name, origin, value }) =>
        `  ${name.padEnd(16)} ${inline(JSON.stringify(value))}  ${paint.dim(`from ${from(origin, name)}`)}`
    )
  ].join("\n")
}

export const doctor = (flags: DoctorFlags) =>
  Effect.gen(function* () {
    const loaded = yield* Effect.result(load({}))
    const resolved = Result.isSuccess(loaded) ? loaded.success : undefined
    const config: Check = Result.isSuccess(loaded)
      ? { name: "settings", state: "ok", text: `file ${loaded.success.file ?? "writ.config.json (not there)"}` }
      : { name: "settings", state: "no", text: loaded.failure.message, remedy: "docs/cli.md lists every setting" }
    const writ: Check = { name: "writ", state: "ok", text: `${version} on Effect ${effectVersion}` }
    const library = yield* checkLibrary
    const checks: ReadonlyArray<Check> = [
      writ,
      checkNode(),
      ...library,
      ...(library.some(({ state }) => state === "no")
        ? []
        : [yield* checkInference(resolved?.settings ?? { gpu: "auto", isolation: "thread" })]),
      yield* checkPool,
      ...checkFiles(resolved?.settings),
      config,
      ...(resolved === undefined
        ? []
        : [
            checkGates(resolved.settings),
            ...(yield* checkedIsolation(resolved.settings)),
            yield* checkWeb(resolved.settings),
            yield* checkChosenModel(resolved.settings)
          ])
    ]
    const works = checks.every(({ state }) => state !== "no")
    if (flags.json) {
      const document = { works, checks, settings: resolved === undefined ? null : settingRows(resolved) }
      yield* Console.log(jsonText(document))
    } else yield* Console.log(human(checks, resolved, yield* paintFor(flags.color)))
    yield* endWith(works ? 0 : 3)
  }).pipe(inJson(flags.json))
