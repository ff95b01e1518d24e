/** What a run came to as the JSON document of `--json`. */
import { exitCode, type Outcome } from "../effects/Outcome.ts"
import { round3 } from "../effects/RunContext.ts"
import type { Stop } from "../effects/State.ts"
import type { wouldDocument } from "./DryRun.ts"

/** `ContextExhausted` as documents spell it: `context_exhausted`. */
export const snake = (tag: string): string => tag.replace(/(?!^)[A-Z]/g, (letter) => `_${letter}`).toLowerCase()

const stopDocument = (stop: Stop): Readonly<Record<string, string>> => {
  const { _tag, ...rest } = stop
  return {
    status: snake(_tag),
    ...Object.fromEntries(Object.entries(rest).map(([key, value]) => [snake(key), String(value)]))
  }
}

export interface RunAbout {
  readonly model: string
  readonly codec: string
  readonly tools: ReadonlyArray<string>
  readonly transcriptPath: string | undefined
  /** The run that this one continues. */
  readonly resumed?: string | undefined
  /** The command that continues the run, if it can be continued. */
  readonly next?: string | undefined
  /** What a dry run would have done. */
  readonly would?: ReturnType<typeof wouldDocument>
}

/** The one document `run --json` and `demo --json` print. */
export const document = (outcome: Outcome, about: RunAbout) => {
  const { artifacts, millis, usage } = outcome
  return {
    run_id: outcome.runId,
    resumed_from: about.resumed ?? null,
    exit_code: exitCode(outcome.stop),
    stop: stopDocument(outcome.stop),
    text: outcome.text ?? null,
    turns: outcome.turns,
    tool_calls: outcome.toolCalls,
    rejected: outcome.rejected,
    skipped: outcome.skipped,
    artifacts: artifacts.map(({ artifactId, bytes, mediaType, name, path, sha256 }) => ({
      artifact_id: artifactId,
      name,
      sha256,
      size_bytes: bytes,
      media_type: mediaType,
      path: path ?? null
    })),
    usage: { prefill_tokens: usage.prefillTokens, output_tokens: usage.outputTokens },
    millis: {
      total: round3(millis.total),
      model: round3(millis.model),
      tools: round3(millis.tools),
      orchestration: round3(millis.orchestration)
    },
    model: about.model,
    codec: about.codec,
    tools: about.tools,
    trace: outcome.tracePath ?? null,
    transcript: about.transcriptPath ?? null,
    next: about.next ?? null,
    ...(about.would === undefined ? {} : { would: about.would })
  }
}
