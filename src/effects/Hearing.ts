/** What a turn comes to beyond its family's syntax, and the phase it is written in. Reads; the states act on it. */
import type { Action } from "../engine/codecs/Codec.ts"
import type { EndReason } from "../engine/Generation.ts"
import { recorded } from "./Phases.ts"
import { listening, phaseNow, type RunContext } from "./RunContext.ts"
import { type Spoken, spokenIn } from "./Spoken.ts"

/** A turn as it is acted on. */
export interface Saying {
  readonly action: Action
  /** What is said instead of an answer, or beside calls that are then dropped. */
  readonly says?: Exclude<Spoken, { readonly _tag: "Broken" }>
}

/** A turn that was cut says nothing but what there is of it. Beside a question, also one that is none, no call counts. */
export const hear = (run: RunContext, action: Action, reason: EndReason): Saying => {
  if (action._tag === "Malformed" || reason === "length") return { action }
  const calls = action._tag === "ToolCalls"
  const visible = calls ? action.textBefore + action.textAfter : action.text
  const says = spokenIn(visible, listening(run))
  if (says === undefined || (calls && says._tag === "HandOver")) return { action }
  if (says._tag !== "Broken") return { action, says }
  const reasoning = action.reasoning === undefined ? {} : { reasoning: action.reasoning }
  return {
    action: {
      _tag: "Malformed",
      code: "invalid_question",
      reason: says.reason,
      excerpt: visible.slice(0, 160),
      position: says.position,
      partial: calls ? action.calls : [],
      ...reasoning
    }
  }
}

/** Turns of one phase in a row say once what holds for them. */
export const enterPhase = (run: RunContext, turn: number): void => {
  const phase = phaseNow(run)
  if (run.phase === phase) return
  run.phase = phase
  const data = { turn, phase, ...recorded(run.settings.phases[phase]) }
  run.trace.note({ type: "phase_started", step: `model-${turn}`, data })
}
