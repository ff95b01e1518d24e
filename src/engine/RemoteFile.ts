/**
 * What a server says of a model file before anything is downloaded: whether it is there, its length, its hash, whether it is
 * given in pieces. One question with one answer, so that a machine without a network is told so at once. Downloads nothing.
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import type { Headers } from "effect/http/Headers"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { EngineError } from "./EngineError.ts"

export interface RemoteFile {
  /** Where it lies. For people it is shown without its query, which may hold a key. */
  readonly url: string
  /** Of a repository at Hugging Face or a mirror of it, which names its files by its own rule. */
  readonly hub: boolean
  /** Pieces can be asked for, so that a download that broke off can go on. */
  readonly ranges: boolean
  readonly bytes?: number
  /** SHA-256 in hex, where the server states it. */
  readonly sha256?: string
  /** Changes with the content. */
  readonly etag?: string
}

/** Is this the name of a model to download rather than a file? */
export const isUri = (model: string): boolean => /^(?:hf|huggingface|https?):/i.test(model)

/** How long a server may take to answer. */
const patience = "20 seconds"

/** `HF_TOKEN` and the mirror are the same variables that the library reads. */
const variable = (name: string): Effect.Effect<string | undefined> =>
  Effect.map(
    Effect.orElseSucceed(Config.option(Config.String(name)), () => Option.none<string>()),
    Option.getOrUndefined
  )

const endpoint = Effect.gen(function* () {
  const named = (yield* variable("MODEL_ENDPOINT")) ?? (yield* variable("HF_ENDPOINT"))
  const valid = named !== undefined && URL.canParse(named) ? named : "https://huggingface.co/"
  return valid.endsWith("/") ? valid : `${valid}/`
})

export const failed = (uri: string, why: string, cause?: unknown): EngineError =>
  new EngineError({
    reason: "missing_file",
    message: `The model ${shownUri(uri)} could not be downloaded. ${why}`,
    // A cause repeats the address, and with it what is not shown of it.
    ...(cause === undefined || shownUri(uri) !== uri ? {} : { cause })
  })

/** Without name, password and query, also where it is no proper address. */
export const shownUri = (uri: string): string =>
  /^https?:/i.test(uri) ? uri.replace(/[?#].*$/s, "").replace(/^([a-z]+:\/*)[^/]*@/i, "$1") : uri

const noConnection = (uri: string, url: string, cause?: unknown) =>
  failed(
    uri,
    `There is no connection to ${new URL(url).host}. Check the network and the name, and say the same again: what has arrived is ` +
      "kept. A file that is here already works without a network: --model FILE.",
    cause
  )

const refused = (uri: string, url: string, status: number, hub: boolean): EngineError => {
  const { host } = new URL(url)
  if (status === 404 || status === 410) {
    return failed(
      uri,
      `${host} has no such file (${status}). Check the name: user, repository, and quantization or file.`
    )
  }
  if (status === 401 || status === 403) {
    const how = hub
      ? "It does not exist, or asks for an account: accept its terms there and put a token into HF_TOKEN."
      : "It asks for an account."
    return failed(uri, `${host} does not give it away (${status}). ${how}`)
  }
  return failed(uri, `${host} answers ${status}. Try again later.`)
}

type Method = "HEAD" | "GET"

/** One request that is not repeated; a redirect of a hub is an answer, since only the hub itself states the hash. */
const request = (uri: string, method: Method, url: string, headers: Readonly<Record<string, string>>, hub: boolean) =>
  HttpClient.execute(
    HttpClientRequest.make(method)(url, { headers: { "accept-encoding": "identity", ...headers } })
  ).pipe(
    Effect.timeoutOrElse({ duration: patience, orElse: () => Effect.fail(undefined) }),
    Effect.mapError((cause) => noConnection(uri, url, cause)),
    Effect.provideService(FetchHttpClient.RequestInit, hub ? { redirect: "manual" } : {}),
    Effect.provide(FetchHttpClient.layer)
  )

const hashOf = (headers: Headers): string | undefined => {
  const linked = /^(?:W\/)?"?([0-9a-f]{64})"?$/i.exec(headers["x-linked-etag"] ?? "")?.[1]
  if (linked !== undefined) return linked.toLowerCase()
  const digest = /(?:^|[\s,])sha-256=:([A-Za-z0-9+/]{43}=):/.exec(headers["repr-digest"] ?? "")?.[1]
  return digest === undefined ? undefined : Buffer.from(digest, "base64").toString("hex")
}

const lengthOf = (headers: Headers, status: number): number | undefined => {
  const linked = headers["x-linked-size"]
  const ranged = /\/(\d+)$/.exec(headers["content-range"] ?? "")?.[1]
  // What a redirect or a piece weighs says nothing of the file.
  const said = linked ?? (status === 206 ? ranged : status === 200 ? headers["content-length"] : undefined)
  return said !== undefined && /^\d+$/.test(said) ? Number(said) : undefined
}

const described = (url: string, hub: boolean, { headers, status }: HttpClientResponse): RemoteFile => {
  const bytes = lengthOf(headers, status)
  const sha256 = hashOf(headers)
  const etag = headers["x-linked-etag"] ?? headers["etag"] ?? headers["last-modified"]
  return {
    url,
    hub,
    // Where a hub sends one on, pieces can be had.
    ranges: hub || status === 206 || headers["accept-ranges"] === "bytes",
    ...(bytes === undefined ? {} : { bytes }),
    ...(sha256 === undefined ? {} : { sha256 }),
    ...(etag === undefined ? {} : { etag })
  }
}

const askAt = Effect.fnUntraced(function* (
  uri: string,
  url: string,
  hub: boolean,
  headers: Readonly<Record<string, string>>
): Effect.fn.Return<RemoteFile, EngineError> {
  const head = yield* request(uri, "HEAD", url, headers, hub)
  if (head.status < 400) return described(url, hub, head)
  // Not every server knows HEAD; the first byte says the same.
  if (head.status !== 405 && head.status !== 501) return yield* refused(uri, url, head.status, hub)
  const first = yield* request(uri, "GET", url, { ...headers, range: "bytes=0-0" }, hub)
  return first.status < 400 ? described(url, hub, first) : yield* refused(uri, url, first.status, hub)
})

const Manifest = Schema.Struct({ ggufFile: Schema.Struct({ rfilename: Schema.String }) })
const decodeManifest = Schema.decodeUnknownOption(Schema.fromJsonString(Manifest))

const inPath = (path: string): string => path.split("/").map(encodeURIComponent).join("/")

/** Its path becomes the name of a file, so each part of it must mean something. */
const isAddress = (uri: string): boolean =>
  URL.canParse(uri) && Result.isSuccess(Result.try(() => decodeURIComponent(new URL(uri).pathname)))

/** `USER/REPO[:TAG]` or `USER/REPO/FILE[#BRANCH]`, as the library reads it. */
const hubName = /^(?:hf|huggingface):(?:\/\/)?([^/:#]+)\/([^/:#]+)(?:\/([^#]+?)(?:#(.+))?|:([^/#]+))?$/i

/** What is wrong with how a model to download is written, which no server need be asked. */
export const uriProblem = (uri: string): string | undefined => {
  if (/^https?:/i.test(uri)) return isAddress(uri) ? undefined : "that is no address"
  return hubName.test(uri) ? undefined : "it is written hf:USER/REPO:QUANT or hf:USER/REPO/FILE.gguf"
}

/** Asks the server of a URI. Fails with `missing_file`, saying what to do: no connection, no such file, no permission. */
export const ask = Effect.fnUntraced(function* (uri: string): Effect.fn.Return<RemoteFile, EngineError> {
  const base = yield* endpoint
  const token = yield* variable("HF_TOKEN")
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  if (/^https?:/i.test(uri)) {
    if (!isAddress(uri)) return yield* failed(uri, "That is no address.")
    const hub = new URL(uri).host === new URL(base).host
    const url = hub ? uri.replace("/blob/", "/resolve/") : uri
    return yield* askAt(uri, url, hub, hub ? headers : {})
  }
  const [, user = "", repository = "", file, branch = "main", tag = "latest"] = hubName.exec(uri) ?? []
  if (user === "") return yield* failed(uri, "It is written hf:USER/REPO:QUANT or hf:USER/REPO/FILE.gguf.")
  const place = `${encodeURIComponent(user)}/${encodeURIComponent(repository)}`
  if (file !== undefined) {
    return yield* askAt(uri, `${base}${place}/resolve/${encodeURIComponent(branch)}/${inPath(file)}`, true, headers)
  }
  const manifest = `${base}v2/${place}/manifests/${encodeURIComponent(tag)}`
  // Only this name is told which file it is.
  const answer = yield* request(uri, "GET", manifest, { ...headers, "user-agent": "llama-cpp" }, true)
  if (answer.status === 400) return yield* refused(uri, manifest, 404, true)
  if (answer.status >= 300) return yield* refused(uri, manifest, answer.status, true)
  const text = yield* Effect.mapError(answer.text, (cause) => noConnection(uri, manifest, cause))
  const found = decodeManifest(text)
  if (Option.isNone(found))
    return yield* failed(uri, "The repository names no GGUF file for that. Name one: hf:USER/REPO/FILE.gguf.")
  return yield* askAt(uri, `${base}${place}/resolve/main/${inPath(found.value.ggufFile.rfilename)}`, true, headers)
})
