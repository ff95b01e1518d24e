/** What somebody watching a run sees as it happens. Live and lossy under pressure; the record is the trace. */
import type { ArtifactRef } from "../actors/ArtifactStore.ts"
import type { JsonObject } from "../tools/JsonText.ts"
import type { Answer } from "../tools/ToolCall.ts"
import type { State, Stop } from "./State.ts"

export type AgentEvent =
  | { readonly _tag: "RunStarted"; readonly runId: string; readonly tracePath: string | undefined }
  | { readonly _tag: "StateEntered"; readonly state: State["_tag"]; readonly turn: number }
  | { readonly _tag: "Prefill"; readonly done: number; readonly total: number }
  | { readonly _tag: "Text"; readonly turn: number; readonly text: string }
  | { readonly _tag: "Reasoning"; readonly turn: number; readonly text: string }
  /** Text shown in this turn was not an answer: it turned out to be a call, was malformed, or was rolled back. */
  | { readonly _tag: "Retracted"; readonly turn: number; readonly reason: "call" | "malformed" | "rolled_back" }
  | { readonly _tag: "CallProposed"; readonly callId: string; readonly tool: string; readonly arguments: JsonObject }
  | { readonly _tag: "CallRejected"; readonly callId: string; readonly tool: string; readonly answer: Answer }
  | { readonly _tag: "CallStarted"; readonly callId: string; readonly tool: string }
  | {
      readonly _tag: "CallFinished"
      readonly callId: string
      readonly tool: string
      readonly answer: Answer
      readonly millis: number
    }
  | { readonly _tag: "CallSkipped"; readonly callId: string; readonly tool: string; readonly reason: string }
  | { readonly _tag: "Malformed"; readonly turn: number; readonly code: string; readonly reason: string }
  | { readonly _tag: "ArtifactWritten"; readonly callId: string; readonly artifact: ArtifactRef }
  | { readonly _tag: "Finished"; readonly stop: Stop }
