/**
 * Answers kept in a directory, one file per canonical request, for runs that can be repeated: what was recorded is given
 * again, faults included, and with `replay` nothing else is. Holds no keys, no cookies and no headers beyond three.
 */
import { createHash, randomUUID } from "node:crypto"
import * as fs from "node:fs"
import { join } from "node:path"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Answer } from "./Exchange.ts"
import { failed, refused, WebFault } from "./WebFault.ts"
import type { WebSettings } from "./WebSettings.ts"

const format = "effect-writ.web.v1"

const Recorded = Schema.fromJsonString(
  Schema.Struct({
    format: Schema.Literal(format),
    request: Schema.Struct({ method: Schema.Literal("GET"), url: Schema.String, accept: Schema.String }),
    /** Milliseconds since 1970. */
    recordedAt: Schema.Finite,
    answer: Schema.Union([
      Schema.Struct({
        status: Schema.Int,
        contentType: Schema.optionalKey(Schema.String),
        location: Schema.optionalKey(Schema.String),
        /** SHA-256 (hex) of the body, decompressed. */
        sha256: Schema.String,
        base64: Schema.String
      }),
      Schema.Struct({
        fault: Schema.Literals(["refused", "unavailable", "not_found", "execution_failed", "invalid_arguments"]),
        message: Schema.String
      })
    ])
  })
)
type Recorded = typeof Recorded.Type

const readRecorded = Schema.decodeUnknownResult(Recorded)
const writeRecorded = Schema.encodeUnknownSync(Recorded)

const onlyRepeats = "this run only repeats recorded answers"

/** Is this what somebody was told because an answer was not recorded? */
export const isUnrecorded = (kind: string, message: string): boolean =>
  kind === "refused" && message.includes(onlyRepeats)

/** What makes two requests one. */
export interface Identity {
  readonly url: string
  readonly accept: string
}

const sha256 = (data: string | Uint8Array): string => createHash("sha256").update(data).digest("hex")

/** The name of the file that holds the answer to a request. */
export const fileName = ({ accept, url }: Identity): string =>
  `${sha256(JSON.stringify([format, "GET", url, accept])).slice(0, 40)}.json`

const answerOf = ({ answer }: Recorded): Result.Result<Answer, WebFault> | undefined => {
  if ("fault" in answer) return Result.fail(new WebFault({ kind: answer.fault, message: answer.message }))
  const body = new Uint8Array(Buffer.from(answer.base64, "base64"))
  if (sha256(body) !== answer.sha256) return undefined
  return Result.succeed({ status: answer.status, contentType: answer.contentType, location: answer.location, body })
}

const recordOf = (result: Result.Result<Answer, WebFault>): Recorded["answer"] => {
  if (result._tag === "Failure") return { fault: result.failure.kind, message: result.failure.message }
  const { body, contentType, location, status } = result.success
  return {
    status,
    ...(contentType === undefined ? {} : { contentType }),
    ...(location === undefined ? {} : { location }),
    sha256: sha256(body),
    base64: Buffer.from(body).toString("base64")
  }
}

/** The recorded answer; `undefined` if there is none, a fault if there is one that cannot be used. */
const load = (directory: string, identity: Identity): Result.Result<Answer, WebFault> | undefined => {
  let text: string
  try {
    text = fs.readFileSync(join(directory, fileName(identity)), "utf8")
  } catch (cause) {
    return codeOf(cause) === "ENOENT" ? undefined : Result.fail(broken("read", codeOf(cause)))
  }
  const recorded = readRecorded(text)
  const known = recorded._tag === "Success" && recorded.success.request.url === identity.url
  return (known ? answerOf(recorded.success) : undefined) ?? Result.fail(broken("used", "it was changed or cut"))
}

/** There whole or not at all: a run that reads meanwhile must not see half of it. */
const save = (directory: string, identity: Identity, recorded: Recorded): WebFault | undefined => {
  const path = join(directory, fileName(identity))
  // Threads of one process, and processes of two machines, may keep the same answer at the same time.
  const partial = `${path}.${randomUUID()}.part`
  try {
    fs.mkdirSync(directory, { recursive: true })
    fs.writeFileSync(partial, `${writeRecorded(recorded)}\n`)
    fs.renameSync(partial, path)
    return undefined
  } catch (cause) {
    return broken("written", codeOf(cause))
  }
}

const codeOf = (cause: unknown): string => String((cause as { readonly code?: unknown } | undefined)?.code ?? cause)
const broken = (done: string, why: string): WebFault =>
  failed(`the recorded answer cannot be ${done} (${why}); whoever started this run has to look at its web cache`)

/** Answers from the recording where there is one, and otherwise by `ask`, unless only the recording may answer. */
export const recorded = Effect.fnUntraced(function* <R>(
  cache: WebSettings["cache"],
  identity: Identity,
  ask: Effect.Effect<Answer, WebFault, R>
): Effect.fn.Return<Answer, WebFault, R> {
  if (cache === undefined) return yield* ask
  const found = load(cache.directory, identity)
  if (found !== undefined) return yield* Effect.fromResult(found)
  if (cache.mode === "replay") {
    const what = identity.url.slice(0, 200)
    return yield* refused(`${onlyRepeats}, and there is none for ${what}; use what is known`)
  }
  const result = yield* Effect.result(ask)
  const recordedAt = yield* Clock.currentTimeMillis
  const fault = save(cache.directory, identity, {
    format,
    request: { method: "GET", ...identity },
    recordedAt,
    answer: recordOf(result)
  })
  return fault === undefined ? yield* Effect.fromResult(result) : yield* fault
})
