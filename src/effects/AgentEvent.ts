/** What somebody watching a run sees as it happens. Live and lossy under pressure; the record is the trace. */
import type { ArtifactRef } from "../actors/ArtifactStore.ts"
import type { Recovery } from "../engine/Model.ts"
import type { JsonObject } from "../tools/JsonText.ts"
import type { Answer, EffectClaim } from "../tools/ToolCall.ts"
import type { Decision } from "./Policy.ts"
import type { State, Stop } from "./State.ts"

export type AgentEvent =
  | { readonly _tag: "RunStarted"; readonly runId: string; readonly tracePath: string | undefined }
  /** Whether the run talks or works, and who decided that; `chat`: the talk handed over. */
  | { readonly _tag: "Routed"; readonly route: "chat" | "task"; readonly by: "model" | "caller" | "chat" }
  | { readonly _tag: "StateEntered"; readonly state: State["_tag"]; readonly turn: number }
  /** So many of so many tokens of what the model is to read next are evaluated. */
  | { readonly _tag: "Prefill"; readonly done: number; readonly total: number }
  /** Tokens of this turn so far, shown or not, and the milliseconds they took: a few times a second, and when it has ended. */
  | {
      readonly _tag: "Generated"
      readonly turn: number
      readonly tokens: number
      readonly millis: number
      readonly ended: boolean
    }
  | { readonly _tag: "Text"; readonly turn: number; readonly text: string }
  | { readonly _tag: "Reasoning"; readonly turn: number; readonly text: string }
  /** Text shown in this turn was not an answer: it turned out to be a call, was malformed, or was rolled back. */
  | {
      readonly _tag: "Retracted"
      readonly turn: number
      readonly reason: "call" | "malformed" | "rolled_back" | "handed_over"
    }
  | { readonly _tag: "CallProposed"; readonly callId: string; readonly tool: string; readonly arguments: JsonObject }
  | { readonly _tag: "CallRejected"; readonly callId: string; readonly tool: string; readonly answer: Answer }
  /** Somebody is asked whether the call may run; nothing happens until they have answered. */
  | { readonly _tag: "ApprovalRequested"; readonly callId: string; readonly tool: string }
  | {
      readonly _tag: "ApprovalDecided"
      readonly callId: string
      readonly tool: string
      readonly decision: Decision
      readonly by: string
    }
  | { readonly _tag: "CallStarted"; readonly callId: string; readonly tool: string }
  | {
      readonly _tag: "CallFinished"
      readonly callId: string
      readonly tool: string
      readonly answer: Answer
      readonly millis: number
      /** What the call left behind outside, as far as anybody knows. */
      readonly effect?: EffectClaim
    }
  | { readonly _tag: "CallSkipped"; readonly callId: string; readonly tool: string; readonly reason: string }
  | { readonly _tag: "Malformed"; readonly turn: number; readonly code: string; readonly reason: string }
  | { readonly _tag: "ArtifactWritten"; readonly callId: string; readonly artifact: ArtifactRef }
  /** The oldest exchanges left a context that was full: so many now, and so many so far; and its tokens before and after. */
  | {
      readonly _tag: "Compacted"
      readonly exchanges: number
      readonly removed: number
      readonly before: number
      readonly after: number
    }
  /** The engine died and was opened again, for so many times by now; the session is at its last boundary. */
  | { readonly _tag: "EngineRestarted"; readonly cause: Recovery["cause"]; readonly restarts: number }
  | { readonly _tag: "Finished"; readonly stop: Stop }
