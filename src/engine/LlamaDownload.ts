/**
 * A model named by URI to a file on this machine: finds it among the downloaded ones or downloads it. The library does the
 * work; it is loaded only when a URI is asked for.
 */
import * as Effect from "effect/Effect"
import { EngineError } from "./EngineError.ts"
import { importLibrary } from "./LlamaLibrary.ts"

export interface DownloadOptions {
  /** Where models are kept. */
  readonly directory: string
  /** Called while bytes arrive. */
  readonly onProgress?: (done: number, total: number) => void
}

/** Is this the name of a model to download rather than a file? */
export const isUri = (model: string): boolean => /^(?:hf|huggingface|https?):/i.test(model)

const networkCodes = [
  "ENOTFOUND",
  "ECONNREFUSED",
  "ECONNRESET",
  "EAI_AGAIN",
  "ETIMEDOUT",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT"
]

/** Codes and messages of an error and of what caused it. */
const chain = (error: unknown): ReadonlyArray<string> => {
  const said: Array<string> = []
  for (let at: unknown = error; at instanceof Error && said.length < 10; at = at.cause) {
    said.push(String((at as { readonly code?: unknown }).code ?? ""), at.message)
  }
  return said
}

const explain = (uri: string, cause: unknown): EngineError => {
  const said = chain(cause)
  const offline = said.some((text) => networkCodes.includes(text) || text.includes("fetch failed"))
  const why = offline
    ? "There is no connection to the server it names."
    : `${said.find((text) => text !== "" && !networkCodes.includes(text)) ?? String(cause)}.`.replace(/\.\.$/, ".")
  return new EngineError({
    reason: "missing_file",
    message: `The model ${uri} could not be downloaded. ${why} Check the name and the network, or pass a file: --model FILE.`,
    cause
  })
}

/** The path of the model's file. Interruption stops the download. */
export const download = (uri: string, options: DownloadOptions): Effect.Effect<string, EngineError> =>
  Effect.flatMap(importLibrary, (library) =>
    Effect.tryPromise({
      try: (signal) =>
        library.resolveModelFile(uri, {
          directory: options.directory,
          cli: false,
          signal,
          ...(options.onProgress === undefined
            ? {}
            : { onProgress: ({ downloadedSize, totalSize }) => options.onProgress!(downloadedSize, totalSize) })
        }),
      catch: (cause) => explain(uri, cause)
    })
  )
