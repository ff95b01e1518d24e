/**
 * What a running tool may reach: plain settings that can cross a thread, and a place to hand over artifacts and statements.
 * Artifacts are published, and statements executed, by the runtime after the call succeeded, so a tool that fails, is cut or
 * is cancelled leaves none.
 */
import * as Context from "effect/Context"
import type { ProducedArtifact, StagedStatement } from "./ToolCall.ts"
import type { WebSettings } from "./web/WebSettings.ts"

/** Structured-clone safe, sent with every call. */
export interface ToolSettings {
  /** Absolute path of the directory that file tools read; without it they refuse. */
  readonly workspace?: string
  /** Absolute path of the run's artifacts, filled in by the runtime where they are files; without it the tools that read them refuse. */
  readonly artifacts?: string
  /** Facts for `lookup`. */
  readonly fixtures: Readonly<Record<string, string>>
  /** The key of this logical attempt, for a tool whose other side honours one. The same on every repeat. */
  readonly idempotencyKey?: string
  /** What the web tools may reach; without it they refuse. */
  readonly web?: WebSettings
}

/** A statement as a tool hands it over. */
export type Staging = Pick<StagedStatement, "sql"> & Partial<StagedStatement>

export class ToolContext extends Context.Service<
  ToolContext,
  {
    readonly settings: ToolSettings
    /** Hands bytes over; they are published when the call succeeds. */
    readonly produce: (artifact: ProducedArtifact) => void
    /**
     * Hands one SQL statement over. When the call succeeds, all of its statements are executed in order in the transaction
     * that records its outcome: all of it is there or nothing. For tools whose contract says `stages: true`.
     */
    readonly stage: (statement: Staging) => void
  }
>()("effect-writ/tools/ToolContext") {}
