/**
 * What a running tool may reach: plain settings that can cross a thread, and a place to hand over artifacts.
 * Artifacts are published by the runtime after the call succeeded, so a tool that fails, is cut or is cancelled leaves none.
 */
import * as Context from "effect/Context"
import type { ProducedArtifact } from "./ToolCall.ts"

/** Structured-clone safe, sent with every call. */
export interface ToolSettings {
  /** Absolute path of the directory that file tools read; without it they refuse. */
  readonly workspace?: string
  /** Facts for `lookup`. */
  readonly fixtures: Readonly<Record<string, string>>
  /** The key of this logical attempt, for a tool whose other side honours one. The same on every repeat. */
  readonly idempotencyKey?: string
}

export class ToolContext extends Context.Service<
  ToolContext,
  {
    readonly settings: ToolSettings
    /** Hands bytes over; they are published when the call succeeds. */
    readonly produce: (artifact: ProducedArtifact) => void
  }
>()("effect-writ/tools/ToolContext") {}
