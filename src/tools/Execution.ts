/**
 * One call, here and now: run the tool, collect what it produced, and say how it ended. Knows nothing of deadlines,
 * threads or queues; interruption of the caller stays interruption.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { type Contract, leavesNothing } from "./Contract.ts"
import { BadResult } from "./JsonResult.ts"
import type { Json } from "./JsonText.ts"
import { rawResult } from "./RawResult.ts"
import type { RegisteredTool } from "./Registry.ts"
import { copyOf as copyOfStatement, maxStatements, stagingFault } from "./Staging.ts"
import type { EffectClaim, Failed, FailureKind, ProducedArtifact, StagedStatement, ToolOutcome } from "./ToolCall.ts"
import { type Staging, ToolContext, type ToolSettings } from "./ToolContext.ts"
import { ToolError } from "./ToolError.ts"
import type { ValidatedArguments } from "./Validation.ts"

/** Most bytes of JSON text one result may have; what a model is shown of it is cut much shorter, elsewhere. */
export const defaultMaxResultBytes = 8 * 1024 * 1024

/** Most bytes of artifacts one call may hand over. */
export const maxArtifactBytes = 64 * 1024 * 1024

/** Most artifacts one call may hand over. */
const maxArtifacts = 1024

/** Most characters of a tool's own words about what went wrong; the rest is cut off. */
const maxReason = 4_000

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
    const handed = emptyHands()
    const context = {
      settings: options.settings,
      produce: (artifact: ProducedArtifact) => take(handed, artifact),
      stage: (statement: Staging) => stage(handed, statement)
    }
    const end = (exit: Exit.Exit<Json, ToolError>): ToolOutcome => {
      const millis = clock.currentTimeMillisUnsafe() - start
      try {
        return outcomeOf(exit, handed, tool.contract, millis, options)
      } catch {
        // What it threw cannot even be looked at.
        return failed("crashed", unseenEffect(tool.contract), "the tool crashed: it threw something unreadable", millis)
      }
    }
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

/** What a tool handed over; of what is over the limit only the sizes, so that handing over for ever takes no memory. */
interface Handed {
  readonly artifacts: Array<ProducedArtifact>
  artifactBytes: number
  artifactCount: number
  readonly staged: Array<StagedStatement>
}

const emptyHands = (): Handed => ({ artifacts: [], artifactBytes: 0, artifactCount: 0, staged: [] })

const take = (handed: Handed, artifact: ProducedArtifact): void => {
  handed.artifactCount++
  const { bytes, mediaType, name } = artifact
  handed.artifactBytes += (bytes?.byteLength ?? 0) + (name?.length ?? 0) + (mediaType?.length ?? 0)
  if (artifactFault(handed) === undefined) handed.artifacts.push(copyOf(artifact))
}

/** One more than may be kept is kept, so that it is seen that there were too many. */
const stage = (handed: Handed, statement: Staging): void => {
  if (handed.staged.length <= maxStatements) handed.staged.push(copyOfStatement(statement))
}

/** The effect claim of a call whose end nobody saw. */
export const unseenEffect = (contract: Contract): EffectClaim => (leavesNothing(contract) ? "none" : "unknown")

/** The effect claim of a tool that did its work, and whose answer cannot be used. */
const doneEffect = (contract: Contract): EffectClaim => (leavesNothing(contract) ? "none" : "present")

/** A failed outcome with one reason. */
export const failed = (kind: FailureKind, effect: EffectClaim, reason: string, millis: number, path = ""): Failed => ({
  _tag: "Failed",
  kind,
  errors: [{ path, reason }],
  effect,
  millis
})

/** The tool did its work; only its answer cannot be used. It is kept, so that somebody can see what came instead. */
const badResult = (contract: Contract, reason: string, millis: number, value: unknown): Failed => ({
  ...failed("bad_result", doneEffect(contract), reason, millis),
  ...(value === undefined ? {} : { raw: rawResult(value) })
})

/** A crash in words: the error's name and message without stack and without paths of this machine. */
export const crashReason = (error: unknown): string => {
  const text =
    error instanceof Error
      ? `${error.name}: ${error.message}`
      : `it threw ${typeof error === "string" ? error : typeof error}`
  return `the tool crashed: ${plain(text)}`
}

const cut = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most).toWellFormed()}…` : text

/** Somebody else's words, cut short and without paths of this machine. */
export const plain = (text: string): string => {
  const pathless = text
    .slice(0, maxReason)
    .replace(/(?:file:\/\/)?(?:[A-Za-z]:)?(?:[\\/][^\s\\/'":,)]+){2,}/g, "<path>")
  return cut(pathless, 300)
}

const outcomeOf = (
  exit: Exit.Exit<Json, ToolError>,
  handed: Handed,
  contract: Contract,
  millis: number,
  options: ExecutionOptions
): ToolOutcome => {
  if (exit._tag === "Success") {
    const { artifacts, staged } = handed
    const fault =
      sizeFault(exit.value, handed, options.maxResultBytes ?? defaultMaxResultBytes) ??
      stagingFault(contract, staged, artifacts)
    if (fault !== undefined) return badResult(contract, fault, millis, exit.value)
    return { _tag: "Succeeded", result: exit.value, artifacts, ...(staged.length === 0 ? {} : { staged }), millis }
  }
  const error = Cause.squash(exit.cause)
  if (error instanceof ToolError) {
    return failed(error.kind, error.effect, cut(error.message, maxReason), millis, cut(error.path, maxReason))
  }
  if (error instanceof BadResult) {
    return badResult(contract, cut(error.message, maxReason), millis, error.value)
  }
  const reason = Cause.hasInterruptsOnly(exit.cause) ? "the tool crashed: it interrupted itself" : crashReason(error)
  return failed("crashed", unseenEffect(contract), reason, millis)
}

/**
 * An outcome that comes from where a tool runs, measured again by the side that relies on it: a tool that can write to the pipe
 * between them can write what no execution would have given.
 */
export const received = (outcome: ToolOutcome, contract: Contract, maxResultBytes: number): ToolOutcome => {
  if (outcome._tag === "Failed") return outcome
  const { artifacts, millis, result, staged = [] } = outcome
  const artifactBytes = artifacts.reduce(
    (sum, { bytes, mediaType, name }) => sum + bytes.byteLength + name.length + mediaType.length,
    0
  )
  const handed = { artifactBytes, artifactCount: artifacts.length }
  const fault = sizeFault(result, handed, maxResultBytes) ?? stagingFault(contract, staged, artifacts)
  return fault === undefined ? outcome : badResult(contract, fault, millis, result)
}

type Sizes = Pick<Handed, "artifactBytes" | "artifactCount">

const sizeFault = (result: Json, handed: Sizes, maxBytes: number): string | undefined => {
  // A short string cannot be over any limit worth having: six bytes per code unit is the most JSON can make of it.
  const bytes =
    typeof result === "string" && result.length * 6 + 2 <= maxBytes ? 0 : Buffer.byteLength(JSON.stringify(result))
  if (bytes > maxBytes) return `the result has ${bytes} bytes, at most ${maxBytes} are allowed`
  return artifactFault(handed)
}

const artifactFault = ({ artifactBytes, artifactCount }: Sizes): string | undefined => {
  if (artifactBytes > maxArtifactBytes) {
    return `the artifacts have ${artifactBytes} bytes, at most ${maxArtifactBytes} are allowed`
  }
  return artifactCount > maxArtifacts
    ? `there are ${artifactCount} artifacts, at most ${maxArtifacts} are allowed`
    : undefined
}
