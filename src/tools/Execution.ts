/**
 * One call, here and now: run the tool, collect what it produced, and say how it ended. Knows nothing of deadlines,
 * threads or queues; interruption of the caller stays interruption.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Contract } from "./Contract.ts"
import { BadResult } from "./JsonResult.ts"
import type { Json } from "./JsonText.ts"
import type { RegisteredTool } from "./Registry.ts"
import type { EffectClaim, Failed, FailureKind, ProducedArtifact, ToolOutcome } from "./ToolCall.ts"
import { ToolContext, type ToolSettings } from "./ToolContext.ts"
import { ToolError } from "./ToolError.ts"
import type { ValidatedArguments } from "./Validation.ts"

/** Most bytes of JSON text one result may have; what a model is shown of it is cut much shorter, elsewhere. */
export const defaultMaxResultBytes = 8 * 1024 * 1024

/** Most bytes of artifacts one call may hand over. */
export const maxArtifactBytes = 64 * 1024 * 1024

export interface ExecutionOptions {
  readonly settings: ToolSettings
  readonly maxResultBytes?: number | undefined
}

/** Runs one call in this thread. Never fails; a tool that fails, crashes or answers nonsense is a `Failed` outcome. */
export const execute = (
  tool: RegisteredTool,
  args: ValidatedArguments,
  options: ExecutionOptions
): Effect.Effect<ToolOutcome> =>
  Clock.clockWith((clock) => {
    const start = clock.currentTimeMillisUnsafe()
    const artifacts: Array<ProducedArtifact> = []
    const context = {
      settings: options.settings,
      produce: (artifact: ProducedArtifact) => void artifacts.push(copyOf(artifact))
    }
    const end = (exit: Exit.Exit<Json, ToolError>): ToolOutcome =>
      outcomeOf(exit, artifacts, tool.contract, clock.currentTimeMillisUnsafe() - start, options)
    return Effect.matchCause(
      Effect.provideService(
        Effect.suspend(() => tool.run(args)),
        ToolContext,
        context
      ),
      {
        onFailure: (cause) => end(Exit.failCause(cause)),
        onSuccess: (result) => end(Exit.succeed(result))
      }
    )
  })

/** Plain data of our own: the tool may go on using its buffer, and a view of a large one must not take all of it along. */
const copyOf = ({ bytes, mediaType, name }: ProducedArtifact): ProducedArtifact => {
  if (typeof name !== "string" || typeof mediaType !== "string" || !(bytes instanceof Uint8Array)) {
    throw new TypeError("an artifact has a name, a media type and bytes")
  }
  return { name, mediaType, bytes: Uint8Array.from(bytes) }
}

/** The effect claim of a call whose end nobody saw. */
export const unseenEffect = (contract: Contract): EffectClaim => (contract.risk === "read" ? "none" : "unknown")

/** A failed outcome with one reason. */
export const failed = (kind: FailureKind, effect: EffectClaim, reason: string, millis: number, path = ""): Failed => ({
  _tag: "Failed",
  kind,
  errors: [{ path, reason }],
  effect,
  millis
})

/** A crash in words: the error's name and message without stack and without paths of this machine. */
export const crashReason = (error: unknown): string => {
  const text =
    error instanceof Error
      ? `${error.name}: ${error.message}`
      : `it threw ${typeof error === "string" ? error : typeof error}`
  const plain = text.replace(/(?:file:\/\/)?(?:[A-Za-z]:)?(?:[\\/][^\s\\/'":,)]+){2,}/g, "<path>")
  return `the tool crashed: ${plain.length > 300 ? `${plain.slice(0, 300).toWellFormed()}…` : plain}`
}

const outcomeOf = (
  exit: Exit.Exit<Json, ToolError>,
  artifacts: ReadonlyArray<ProducedArtifact>,
  contract: Contract,
  millis: number,
  options: ExecutionOptions
): ToolOutcome => {
  if (exit._tag === "Success") {
    const fault = sizeFault(exit.value, artifacts, options.maxResultBytes ?? defaultMaxResultBytes)
    // The tool did its work; only its answer cannot be used.
    if (fault !== undefined) return failed("bad_result", contract.risk === "read" ? "none" : "present", fault, millis)
    return { _tag: "Succeeded", result: exit.value, artifacts, millis }
  }
  const error = Cause.squash(exit.cause)
  if (error instanceof ToolError) return failed(error.kind, error.effect, error.message, millis, error.path)
  if (error instanceof BadResult) {
    return failed("bad_result", contract.risk === "read" ? "none" : "present", error.message, millis)
  }
  const reason = Cause.hasInterruptsOnly(exit.cause) ? "the tool crashed: it interrupted itself" : crashReason(error)
  return failed("crashed", unseenEffect(contract), reason, millis)
}

const sizeFault = (result: Json, artifacts: ReadonlyArray<ProducedArtifact>, maxBytes: number): string | undefined => {
  // A short string cannot be over any limit worth having: six bytes per code unit is the most JSON can make of it.
  const bytes =
    typeof result === "string" && result.length * 6 + 2 <= maxBytes ? 0 : Buffer.byteLength(JSON.stringify(result))
  if (bytes > maxBytes) return `the result has ${bytes} bytes, at most ${maxBytes} are allowed`
  if (artifacts.length === 0) return undefined
  const size = artifacts.reduce((total, artifact) => total + artifact.bytes.byteLength, 0)
  return size > maxArtifactBytes
    ? `the artifacts have ${size} bytes, at most ${maxArtifactBytes} are allowed`
    : undefined
}
