/** What the inference library's failures are called. Loading has more to say about its own: see `LlamaLoading.ts`. */
import { EngineError } from "./EngineError.ts"
import { Stopped } from "./LlamaControl.ts"

/** A failure as it is told: typed ones as they are, the rest as `failed` with what the library said. */
export const toEngineError = (cause: unknown): EngineError => {
  if (cause instanceof EngineError) return cause
  if (cause instanceof Stopped) return new EngineError({ reason: "lost", message: "The engine was closed." })
  const said = cause instanceof Error ? cause.message : String(cause)
  return new EngineError({ reason: "failed", message: `The inference library failed: ${said}.`, cause })
}
