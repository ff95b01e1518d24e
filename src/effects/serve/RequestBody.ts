/** The body of a request as text: no longer than it may be, in time, and nothing but UTF-8. */
import * as Effect from "effect/Effect"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Stream from "effect/Stream"
import { type ChatError, refused } from "./ChatError.ts"

export interface BodyLimits {
  readonly bodyBytes: number
  readonly bodyMillis: number
}

const tooLarge = (bytes: number) => refused(413, "request_too_large", `The body is larger than ${bytes} bytes`)

const typeProblem = ({ headers }: HttpServerRequest): ChatError | undefined => {
  const encoding = headers["content-encoding"]
  if (encoding !== undefined && encoding !== "identity") {
    return refused(415, "unsupported_encoding", `A body in the encoding '${encoding}' is not read`)
  }
  // A page of a stranger can have a browser send other types than this one without being asked.
  return /^application\/json *(?:;|$)/i.test(headers["content-type"] ?? "")
    ? undefined
    : refused(415, "unsupported_media_type", "The body has to be application/json")
}

const decoded = (chunks: ReadonlyArray<Uint8Array>): Effect.Effect<string, ChatError> =>
  Effect.try({
    try: () => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks)),
    catch: () => refused(400, "invalid_encoding", "The body is not UTF-8")
  })

export const read = Effect.fnUntraced(function* (
  request: HttpServerRequest,
  { bodyBytes, bodyMillis }: BodyLimits
): Effect.fn.Return<string, ChatError> {
  const problem =
    typeProblem(request) ??
    (Number(request.headers["content-length"] ?? 0) > bodyBytes ? tooLarge(bodyBytes) : undefined)
  if (problem !== undefined) return yield* problem
  const chunks: Array<Uint8Array> = []
  let size = 0
  yield* Stream.runForEachWhile(request.stream, (chunk) =>
    Effect.sync(() => {
      size += chunk.byteLength
      if (size <= bodyBytes) chunks.push(chunk)
      return size <= bodyBytes
    })
  ).pipe(
    Effect.mapError(() => refused(400, "broken_body", "The body ended before it was whole")),
    Effect.timeoutOrElse({
      duration: bodyMillis,
      orElse: () => Effect.fail(refused(408, "request_timeout", `The body did not come within ${bodyMillis} ms`))
    })
  )
  return size > bodyBytes ? yield* tooLarge(bodyBytes) : yield* decoded(chunks)
})
