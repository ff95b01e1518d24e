/**
 * The inference library itself: loading it, what it can do on this machine, and the last lines it logged. It is an
 * optional dependency, so it is imported only when asked for and its absence is an answer, not a crash.
 */

import * as Effect from "effect/Effect"
import type { Llama, LlamaGpuType } from "node-llama-cpp"
import { EngineError } from "./EngineError.ts"

export type Library = typeof import("node-llama-cpp")

/** `false`: the processor only. */
export type Gpu = "auto" | LlamaGpuType

/** What `doctor` wants to know. `problem` says in words why something is missing. */
export interface LibraryReport {
  readonly installed: boolean
  readonly version?: string
  /** A prebuilt binary for this machine loads. */
  readonly binary: boolean
  /** `false` stands for the processor. */
  readonly gpuTypes: ReadonlyArray<string | false>
  readonly problem?: string
}

export const importLibrary: Effect.Effect<Library, EngineError> = Effect.tryPromise({
  try: () => import("node-llama-cpp"),
  catch: (cause) =>
    new EngineError({
      reason: "unavailable",
      message:
        "Local models need the package node-llama-cpp, which is not installed. Install it with: npm install node-llama-cpp@3.21.1",
      cause
    })
})

/** Reports without failing: library version, whether a binary loads, and which processors it can use. */
export const report: Effect.Effect<LibraryReport> = Effect.gen(function* () {
  const library = yield* importLibrary
  const version = yield* Effect.promise(() => library.getModuleVersion())
  const gpuTypes = yield* Effect.promise(() => library.getLlamaGpuTypes("supported"))
  const probe = yield* Effect.result(
    Effect.tryPromise({
      try: () =>
        library.getLlama({
          gpu: "auto",
          build: "never",
          skipDownload: true,
          dryRun: true,
          progressLogs: false,
          logger: () => {}
        }),
      catch: (cause) => (cause instanceof Error ? cause.message : String(cause))
    })
  )
  return {
    installed: true,
    version,
    binary: probe._tag === "Success",
    gpuTypes,
    ...(probe._tag === "Success" ? {} : { problem: `No binary for this machine loads: ${probe.failure}.` })
  }
}).pipe(
  Effect.catch((error) =>
    Effect.succeed<LibraryReport>({ installed: false, binary: false, gpuTypes: [], problem: error.message })
  )
)

/** The last lines the library logged: a load failure says its reason only there. */
export class LogTail {
  readonly #lines: Array<string> = []

  readonly write = (level: string, message: string): void => {
    const line = message.trim()
    if (line === "") return
    this.#lines.push(`${level}: ${line}`)
    if (this.#lines.length > 12) this.#lines.shift()
  }

  /** As a sentence's end, or nothing. */
  get said(): string {
    return this.#lines.length === 0 ? "" : ` The library said: ${this.#lines.slice(-4).join("; ")}`
  }
}

/** The library with a prebuilt binary; never builds and never downloads. */
export const start = (library: Library, gpu: Gpu, threads: number, log: LogTail): Promise<Llama> =>
  library.getLlama({
    gpu,
    build: "never",
    skipDownload: true,
    progressLogs: false,
    maxThreads: threads,
    logLevel: library.LlamaLogLevel.warn,
    logger: log.write
  })
