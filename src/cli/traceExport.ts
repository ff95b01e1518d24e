/** `writ trace export TRACE`: a run as OpenTelemetry spans, printed as OTLP's JSON or posted to a collector. */
import * as Config from "effect/Config"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { exportBody } from "../effects/trace/TraceSpans.ts"
import { version } from "../effects/Version.ts"
import { inJson, type UsageError, usage } from "./Ending.ts"
import { count, inline, jsonText } from "./Printable.ts"
import { load } from "./TraceFile.ts"

export interface ExportFlags {
  readonly trace: string
  readonly otlp: string | undefined
  readonly json: boolean
}

/** A base address gets the path of OTLP over HTTP; any other path is taken as it is. */
const endpointOf = (given: string): Effect.Effect<URL, UsageError> => {
  const url = URL.parse(given)
  if (url === null || !["http:", "https:"].includes(url.protocol)) {
    return usage(`--otlp ${given}: expected the http or https address of a collector, like http://127.0.0.1:4318`)
  }
  if (url.pathname === "/") url.pathname = "/v1/traces"
  return Effect.succeed(url)
}

/** `name=value,…`, percent-encoded: the variable every OpenTelemetry exporter reads. */
const headersIn = (text: string): Effect.Effect<Readonly<Record<string, string>>, UsageError> =>
  Effect.try({
    try: () =>
      Object.fromEntries(
        text
          .split(",")
          .map((pair) => pair.trim())
          .filter((pair) => pair.includes("="))
          .map((pair) => [
            pair.slice(0, pair.indexOf("=")).trim(),
            decodeURIComponent(pair.slice(pair.indexOf("=") + 1).trim())
          ])
      ),
    catch: () => "malformed"
  }).pipe(Effect.catch(() => usage("OTEL_EXPORTER_OTLP_HEADERS: expected name=value pairs, percent-encoded")))

const headers = Config.String("OTEL_EXPORTER_OTLP_HEADERS").pipe(
  Config.withDefault(""),
  Effect.catch(() => usage("OTEL_EXPORTER_OTLP_HEADERS cannot be read")),
  Effect.flatMap(headersIn)
)

/** Name and password of an address go where a request can have them. */
const credentials = ({ password, username }: URL): Readonly<Record<string, string>> => {
  if (username === "" && password === "") return {}
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { authorization: `Basic ${Buffer.from(pair).toString("base64")}` }
}

const bare = (url: URL): URL => {
  const copy = new URL(url)
  copy.username = ""
  copy.password = ""
  return copy
}

export const exportTrace = (flags: ExportFlags) =>
  Effect.gen(function* () {
    if (flags.otlp === undefined && !flags.json)
      return yield* usage("say where to: --json prints it, --otlp URL sends it")
    const url = flags.otlp === undefined ? undefined : yield* endpointOf(flags.otlp)
    const { epochMillis, path, records, run } = yield* load(flags.trace)
    if (records.length === 0) return yield* usage(`${path} holds no events`)
    const body = exportBody(run, { epochMillis, version })
    if (url === undefined) return yield* Console.log(jsonText(body))
    const { send } = yield* Effect.promise(() => import("./OtlpSending.ts"))
    const place = yield* send(body, { url: bare(url), headers: { ...credentials(url), ...(yield* headers) } })
    const spans = body.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans))
    return yield* flags.json
      ? Console.log(jsonText({ sent: spans.length, to: place, trace_id: spans[0]!.traceId }))
      : Console.log(`${count(spans.length, "span")} sent to ${inline(place)}, trace ${spans[0]!.traceId}`)
  }).pipe(inJson(flags.json))
