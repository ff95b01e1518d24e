/** What provenance says of how calls are gated: the task profile, the retry policy, and the terms of each tool. */
import * as Result from "effect/Result"
import type { EventData } from "../../../actors/TraceEvent.ts"
import type { RetryPolicy } from "../../Backoff.ts"
import { type Gated, type Gates, gatesOf, parse, type TaskProfile } from "../../Profile.ts"

type Recorded = EventData<"provenance">
type RecordedTool = Recorded["tools"][number]

/** A registered tool. `terms` only where the trace says all of them. */
export interface KnownTool {
  readonly risk: string
  readonly ledger: string
  readonly terms: Gated | undefined
  readonly compensation: string | undefined
}

export interface RunGates {
  readonly weights: { readonly cost: number; readonly risk: number }
  readonly retry: RetryPolicy
  readonly dryRun: boolean
  /** How many turns are sampled before one of them is generated in earnest. */
  readonly candidates: number
  /** None where it is not one of the profiles that can be stated. */
  readonly profile: TaskProfile | undefined
}

const profileOf = ({ evidence, retry, reversibility, sideEffects }: Readonly<Record<string, string>>) => {
  const stated = `reversibility=${reversibility},sideEffects=${sideEffects},retry=${retry},evidence=${evidence}`
  return Result.getOrUndefined(parse(stated))
}

export const runGatesOf = ({ gates }: Recorded): RunGates | undefined => {
  if (gates === undefined) return undefined
  const { candidates, dry_run: dryRun, profile, retry, weights } = gates
  const { attempts, delay_ms: delayMillis, factor } = retry
  return { weights, retry: { attempts, delayMillis, factor }, dryRun, candidates, profile: profileOf(profile) }
}

export const knownTool = ({ compensation, evidence, ledger, retry, reversible, risk }: RecordedTool): KnownTool => {
  const terms =
    evidence === undefined || retry === undefined || reversible === undefined
      ? undefined
      : ({ risk, ledger, retry, reversible, evidence: { source: evidence } } as Gated)
  return { risk, ledger, terms, compensation }
}

/** How the run gates calls of this tool, where the trace says enough to tell. */
export const gating = (gates: RunGates | undefined, tool: KnownTool | undefined): Gates | undefined =>
  gates?.profile === undefined || tool?.terms === undefined ? undefined : gatesOf(gates.profile, tool.terms)
