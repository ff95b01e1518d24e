/**
 * Sends spans to a collector through Effect's own OTLP exporter, which batches, retries what may pass, and says nothing of what
 * did not work; what the collector answered is overheard at the client. A few hundred spans at a time, in their order, until
 * something is not taken.
 */
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import type { HttpClientError } from "effect/http/HttpClientError"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as OtlpExporter from "effect/observability/OtlpExporter"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"
import type { TraceData } from "effect/observability/OtlpTracer"
import * as Schema from "effect/Schema"
import type { ExportBody, Span } from "../effects/trace/TraceSpans.ts"
import { count } from "./Printable.ts"

/** The collector could not be reached, or did not take what it was sent. */
export class ExportError extends Schema.TaggedError<ExportError>()("ExportError", { message: Schema.String }) {}

export interface Destination {
  /** Without name and password. */
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
}

/** Collectors refuse bodies of many megabytes, and a span with content can have some. */
const batch = 200

/** For one batch, the exporter's retries included. */
const timeout = "15 seconds"

/** What was heard last. */
interface Heard {
  status?: number
  text?: string
  failure?: HttpClientError
}

const hearing = (heard: Heard): ((client: HttpClient.HttpClient) => HttpClient.HttpClient) =>
  HttpClient.transformResponse((response: Effect.Effect<HttpClientResponse, HttpClientError>) =>
    response.pipe(
      Effect.tap((answer) =>
        Effect.map(
          Effect.orElseSucceed(answer.text, () => ""),
          (text) => {
            heard.status = answer.status
            heard.text = text
            delete heard.failure
          }
        )
      ),
      Effect.tapError((error) =>
        Effect.sync(() => {
          heard.failure = error
        })
      )
    )
  )

/** What a collector says it did not take. It answers 200 all the same. */
const rejectedIn = (text: string): string | undefined => {
  try {
    const { partialSuccess } = JSON.parse(text) as {
      readonly partialSuccess?: { readonly rejectedSpans?: unknown; readonly errorMessage?: unknown }
    }
    const rejected = Number(partialSuccess?.rejectedSpans ?? 0)
    return rejected > 0
      ? `${count(rejected, "span")} (${String(partialSuccess?.errorMessage ?? "no reason given")})`
      : undefined
  } catch {
    return undefined
  }
}

/** What lies at the bottom of a failure: a refused connection, a name that nobody knows. */
const bottomOf = (cause: unknown): string | undefined => {
  if (!(cause instanceof Error)) return undefined
  const { code } = cause as { readonly code?: unknown }
  return bottomOf(cause.cause) ?? (typeof code === "string" ? code : cause.message || undefined)
}

const complaint = ({ failure, status, text = "" }: Heard): string | undefined => {
  if (failure !== undefined) return `cannot be reached: ${bottomOf(failure.reason.cause) ?? failure.reason._tag}`
  if (status === undefined) return `did not answer in ${timeout}`
  if (status < 200 || status > 299) return `answered ${status}`
  const rejected = rejectedIn(text)
  return rejected === undefined ? undefined : `did not take ${rejected}`
}

/** As the exporter has it: nothing dropped, no links. */
const dataOf = ({ resourceSpans }: ExportBody, spans: ReadonlyArray<Span>): TraceData => ({
  resourceSpans: resourceSpans.map(({ resource, scopeSpans }) => ({
    resource: { attributes: [...resource.attributes], droppedAttributesCount: 0 },
    scopeSpans: scopeSpans.map(({ scope }) => ({
      scope,
      spans: spans.map(({ attributes, events, parentSpanId, ...span }) => ({
        ...span,
        parentSpanId,
        attributes: [...attributes],
        droppedAttributesCount: 0,
        events: events.map((event) => ({ ...event, attributes: [...event.attributes], droppedAttributesCount: 0 })),
        droppedEventsCount: 0,
        links: [],
        droppedLinksCount: 0
      }))
    }))
  }))
})

/** Sends all spans of a body. Where it was sent to, as it may be shown. */
export const send = Effect.fnUntraced(function* (
  body: ExportBody,
  { headers, url }: Destination
): Effect.fn.Return<string, ExportError> {
  const spans = body.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans))
  // Only the address without its query is said again.
  const place = `${url.origin}${url.pathname}`
  const heard: Heard = {}
  const work = Effect.gen(function* () {
    const { traces } = yield* OtlpSerialization.OtlpSerialization
    const { flush } = yield* OtlpExporter.Flusher
    const exporter = yield* OtlpExporter.make({
      url: url.href,
      headers,
      label: "Writ",
      // Nothing leaves but what is flushed.
      exportInterval: "1 hour",
      maxBatchSize: "disabled",
      shutdownTimeout: "1 second",
      body: (some: Array<Span>) => [traces(dataOf(body, some)), Effect.void]
    })
    for (let at = 0; at < spans.length; at += batch) {
      delete heard.status
      delete heard.failure
      for (const span of spans.slice(at, at + batch)) exporter.push(span)
      yield* Effect.timeoutOption(flush, timeout)
      const said = complaint(heard)
      if (said !== undefined) return yield* new ExportError({ message: `${place} ${said}` })
    }
    return place
  })
  const client = Layer.effect(HttpClient.HttpClient, Effect.map(HttpClient.HttpClient, hearing(heard))).pipe(
    Layer.provide(FetchHttpClient.layer)
  )
  return yield* Effect.scoped(work).pipe(
    Effect.provide(Layer.mergeAll(client, OtlpExporter.layerFlusher, OtlpSerialization.layerJson))
  )
})
