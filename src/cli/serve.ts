/**
 * `writ serve`: chat completions over HTTP until somebody asks to stop; then requests go on for a while, and what is left is
 * cancelled with its record closed. Everything that can be checked is checked before a model is opened.
 */
import { readFileSync, statSync } from "node:fs"
import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { HttpServer } from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { reasonOf } from "../actors/Directories.ts"
import { variable } from "../actors/McpServer.ts"
import { Approval, allowAll, denyAll, suspendAll } from "../effects/Policy.ts"
import * as RunDirectory from "../effects/RunDirectory.ts"
import type { SettingName, Settings } from "../effects/SettingFields.ts"
import { load, placeOf, type RawSettings } from "../effects/Settings.ts"
import { defaultLimits, type ServeLimits } from "../effects/serve/ChatServer.ts"
import { isLoopback } from "../effects/serve/Origins.ts"
import { parse, type Tokens } from "../effects/serve/Tokens.ts"
import { Model } from "../engine/Model.ts"
import { endWith, inJson, UsageError, usage } from "./Ending.ts"
import { newRunId, runOptionsOf, servicesOf, sessionOptionsOf } from "./Execute.ts"
import { chosenBy } from "./ModelNames.ts"
import { problemAt } from "./Places.ts"
import { count, jsonText } from "./Printable.ts"
import { type About, check, engineOf } from "./run.ts"
import * as Screen from "./Screen.ts"
import { startLine } from "./ServeView.ts"
import { onStop } from "./StopRequests.ts"

export interface ServeFlags {
  readonly host: string | undefined
  readonly port: number | undefined
  readonly modelName: string | undefined
  readonly tokenFile: string | undefined
  readonly sessions: number | undefined
  readonly queue: number | undefined
  readonly keyRequests: number | undefined
  readonly keyRate: number | undefined
  readonly drainSeconds: number | undefined
  readonly json: boolean
  readonly settings: RawSettings
}

const tokensVariable = "WRIT_SERVE_TOKENS"

const atLeast = (name: string, value: number | undefined, least: number, most: number, otherwise: number) =>
  value === undefined || (value >= least && value <= most)
    ? Effect.succeed(value ?? otherwise)
    : usage(`--${name} ${value}: it has to be from ${least} to ${most}`)

const tokensIn = (text: string, place: string): Effect.Effect<Tokens, UsageError> =>
  Result.match(parse(text), {
    onFailure: (reason) => usage(`${place}: ${reason}`),
    onSuccess: (tokens) => Effect.succeed(tokens)
  })

const fileTokens = (path: string): Effect.Effect<Tokens, UsageError> =>
  Effect.suspend(() => {
    const problem = problemAt(path, "File")
    if (problem !== undefined) return usage(`--token-file ${path}: ${problem}`)
    // Windows has no such bits.
    if (process.platform !== "win32" && (statSync(path).mode & 0o077) !== 0) {
      return usage(`--token-file ${path}: others may read it; keep it to yourself (chmod 600 ${path})`)
    }
    const text = Effect.try({
      try: () => readFileSync(path, "utf8"),
      catch: (cause) => new UsageError({ message: `--token-file ${path}: it cannot be read: ${reasonOf(cause)}` })
    })
    return Effect.flatMap(text, (said) => tokensIn(said, `--token-file ${path}`))
  })

/** Who may ask. Somewhere others reach, somebody has to be named. */
const tokensOf = Effect.fnUntraced(function* (
  file: string | undefined,
  host: string
): Effect.fn.Return<Tokens | undefined, UsageError> {
  const said = Option.getOrUndefined(yield* variable(tokensVariable))
  if (file !== undefined && said !== undefined) return yield* usage(`give --token-file or ${tokensVariable}, not both`)
  if (file !== undefined) return yield* fileTokens(file)
  if (said !== undefined) return yield* tokensIn(said.replaceAll(",", "\n"), tokensVariable)
  if (isLoopback(host)) return undefined
  return yield* usage(
    `--host ${host}: others can reach it, so name who may ask: --token-file FILE, or ${tokensVariable}=NAME:TOKEN,…`
  )
})

interface Numbers {
  readonly port: number
  readonly sessions: number
  readonly drainMillis: number
  readonly limits: Pick<ServeLimits, "queue" | "keyConcurrency" | "keyPerMinute">
}

const numbersOf = Effect.fnUntraced(function* (flags: ServeFlags): Effect.fn.Return<Numbers, UsageError> {
  const { queue, keyConcurrency, keyPerMinute } = defaultLimits
  return {
    port: yield* atLeast("port", flags.port, 0, 65_535, 8123),
    sessions: yield* atLeast("sessions", flags.sessions, 1, 64, 4),
    drainMillis: 1_000 * (yield* atLeast("drain-seconds", flags.drainSeconds, 0, 86_400, 30)),
    limits: {
      queue: yield* atLeast("queue", flags.queue, 0, 10_000, queue),
      keyConcurrency: yield* atLeast("key-requests", flags.keyRequests, 1, 10_000, keyConcurrency),
      keyPerMinute: yield* atLeast("key-rate", flags.keyRate, 1, 1_000_000, keyPerMinute)
    }
  }
})

/** Nobody can be asked. */
const approverOf = ({ approve }: Settings) =>
  approve === "all" ? allowAll : approve === "suspend" ? suspendAll : denyAll

type Prepared = About & Effect.Success<ReturnType<typeof check>>

interface Place {
  readonly host: string
  readonly tokens: Tokens | undefined
  readonly numbers: Numbers
}

const addressOf = (host: string, { address }: HttpServer["Service"]): string => {
  const port = "port" in address ? Number(address.port) : 0
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}/v1`
}

const announce = (flags: ServeFlags, { tokens }: Place, job: Prepared, model: string, url: string) => {
  if (flags.json) return Console.log(jsonText({ url, model, tools: job.registry.tools.map(({ name }) => name) }))
  const line = startLine({
    title: job.model.title,
    model,
    url,
    tools: job.registry.tools.map(({ name }) => name),
    names: tokens?.names
  })
  return Console.error(job.notice === undefined ? line : `${line}\n${job.notice}`)
}

/** Listens until somebody asks to stop, then drains. Returns how many requests had to be cancelled. */
const listening = Effect.fnUntraced(function* (flags: ServeFlags, place: Place, job: Prepared) {
  const [ChatServer, HttpListener, HttpRouter] = yield* Effect.promise(() =>
    Promise.all([
      import("../effects/serve/ChatServer.ts"),
      import("../effects/serve/HttpListener.ts"),
      import("effect/http/HttpRouter")
    ])
  )
  const { host, numbers, tokens } = place
  const scope = yield* Effect.scope
  const model = flags.modelName ?? (yield* Model).identity.name.replace(/\.gguf$/i, "")
  const server = yield* ChatServer.make({
    ...sessionOptionsOf(job),
    ...runOptionsOf(job),
    model,
    host,
    sessions: numbers.sessions,
    alone: job.settings.approve === "suspend",
    serving: numbers.limits,
    ...(tokens === undefined ? {} : { tokens })
  })
  const stop = yield* Deferred.make<void>()
  yield* onStop(Effect.asVoid(Deferred.succeed(stop, undefined)))
  const listener = yield* Layer.buildWithScope(HttpListener.layer({ host, port: numbers.port }), scope)
  const routes = HttpRouter.serve(server.routes, { disableLogger: true, disableListenLog: true })
  yield* Layer.buildWithScope(Layer.provide(routes, Layer.succeedContext(listener)), scope)
  yield* announce(flags, place, job, model, addressOf(host, Context.get(listener, HttpServer)))
  yield* Deferred.await(stop)
  return yield* server.drain(numbers.drainMillis)
})

const whyNot: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program listens there; choose another with --port, or 0 for any that is free",
  EACCES: "this port is for privileged programs; choose one above 1023 with --port",
  EADDRNOTAVAIL: "this machine has no such address; choose another with --host",
  ENOTFOUND: "there is no machine of that name; choose an address of this one with --host"
}

const cannotListen = ({ host, numbers }: Place, cause: unknown) => {
  const { code } = cause as { readonly code?: unknown }
  const why = whyNot[String(code)] ?? reasonOf(cause)
  return Effect.andThen(Console.error(`writ: cannot listen on ${host}, port ${numbers.port}: ${why}`), endWith(1))
}

export const serve = (flags: ServeFlags) =>
  Effect.gen(function* () {
    const host = flags.host ?? "127.0.0.1"
    const place: Place = { host, numbers: yield* numbersOf(flags), tokens: yield* tokensOf(flags.tokenFile, host) }
    const screen = yield* Screen.make(undefined)
    const resolved = yield* load(flags.settings)
    const checked = yield* check(resolved)
    const { settings } = checked
    const said = (name: SettingName) => placeOf(resolved.origins[name], name)
    if (settings.runDir !== undefined) {
      return yield* usage(`${said("runDir")}: each request is a run in a directory of its own; leave it out`)
    }
    if (settings.route !== "task")
      return yield* usage(`${said("route")}: a request without tools talks, any other works; leave it out`)
    if (settings.contextPolicy !== "refuse")
      return yield* usage(
        `${said("contextPolicy")}: what the model is shown is the request, which the client shortens; leave it out`
      )
    if (settings.script === undefined && settings.engineUrl === undefined) yield* chosenBy(settings)
    yield* RunDirectory.check(RunDirectory.standard(yield* newRunId))
    const about: About = yield* engineOf(settings, { json: flags.json, quiet: true }, screen)
    const job: Prepared = { ...about, ...checked }
    const layer = yield* servicesOf(job, RunDirectory.standard, undefined, place.numbers.sessions)
    const cancelled = yield* Effect.scoped(listening(flags, place, job)).pipe(
      Effect.provideService(Approval, approverOf(settings)),
      Effect.provide(layer),
      Effect.catchTag("ServeError", ({ cause }) => Effect.as(cannotListen(place, cause), 0))
    )
    if (cancelled > 0) yield* Console.error(`writ: ${count(cancelled, "request")} had to be cancelled`)
    yield* endWith(cancelled > 0 ? 4 : 0)
  }).pipe(Effect.scoped, inJson(flags.json))
