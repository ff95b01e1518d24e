/** What became of the calls of a turn, for its trace in the file: the same after a crash as without one. */
import type { ArtifactRef } from "../../actors/ArtifactStore.ts"
import { classOf } from "../../tools/AttemptClass.ts"
import type { EffectClaim, FailureKind } from "../../tools/ToolCall.ts"
import type { CallRecord } from "../RunContext.ts"
import { turnEvents } from "./Conversation.ts"
import type { Told } from "./Results.ts"
import { event, type TurnEvent } from "./TurnMessage.ts"

/** Failures that say nothing about what would have happened: the call has its turn again when the file is run again. */
const unsettled: ReadonlySet<string> = new Set(["cancelled", "not_executed", "outcome_unknown"])

/** Has the call its answer for good? Then the file may hold it. */
export const isSettled = ({ answer, outcome, replayed, skipped }: CallRecord): boolean => {
  if (answer === undefined || skipped === true || replayed === "unknown") return false
  return outcome?._tag !== "Failed" || (!unsettled.has(outcome.kind) && outcome.effect !== "unknown")
}

const doneBy = ({ tool }: CallRecord): EffectClaim => (tool?.contract.risk === "read" ? "none" : "present")

interface Came {
  readonly executed: boolean
  readonly effect: EffectClaim
}

/** Did it run, now or in an earlier process, and what did it leave? */
const cameTo = (record: CallRecord): Came => {
  const { outcome, replayed, replayedEffect = "none" } = record
  if (outcome?._tag === "Succeeded") return { executed: true, effect: doneBy(record) }
  // A call that its precondition stopped on the way had not begun.
  if (outcome !== undefined) return { executed: record.failedAt === undefined, effect: outcome.effect }
  if (replayed === undefined) return { executed: false, effect: "none" }
  return { executed: true, effect: replayed === "succeeded" ? doneBy(record) : replayedEffect }
}

const failureOf = (kind: FailureKind, effect: EffectClaim) => ({ outcome: kind, class: classOf(kind, effect) })

export const callEvent = (id: string, record: CallRecord, { attributes }: Told): TurnEvent => {
  const { effect, executed } = cameTo(record)
  const answer = record.answer!
  return event(turnEvents.call, {
    id,
    tool: record.proposed.name,
    ...(answer.ok ? { outcome: "ok" } : failureOf(answer.kind, effect)),
    effect,
    executed,
    ...attributes
  })
}

export type Artifact = Pick<ArtifactRef, "name" | "sha256" | "bytes">

export const artifactEvents = (
  id: string,
  tool: string,
  artifacts: ReadonlyArray<Artifact>
): ReadonlyArray<TurnEvent> =>
  artifacts
    .toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.sha256 < b.sha256 ? -1 : 1))
    .map(({ bytes, name, sha256 }) => event(turnEvents.artifact, { id, tool, sha256, name, bytes }))
