/**
 * Who may do what: risk to allow, ask or deny, and whom to ask. Cautious by default: reading and writing inside the
 * workspace run, anything that reaches outside is asked about, and without somebody to ask the answer is no.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Evidence, RiskLevel } from "../tools/Contract.ts"
import type { JsonObject } from "../tools/JsonText.ts"

export type Decision = "allow" | "deny" | "suspend"

/** What somebody is asked to approve. `digest` is SHA-256 over tool and canonical arguments: an approval is for exactly that. */
export interface ApprovalRequest {
  /** The run that effects are keyed under: the first part of a run that was resumed. */
  readonly runId: string
  readonly callId: string
  readonly tool: string
  readonly risk: RiskLevel
  readonly arguments: JsonObject
  readonly digest: string
  /** In units of value; `Infinity` does not get this far. */
  readonly cost: number
  readonly hazard: number
  readonly reversible: boolean
  /** By what success will be judged. */
  readonly evidence: Evidence
  /** What would change, where the tool can say so. */
  readonly preview?: string
}

/** A decision that was made by somebody else than the approver that passes it on. */
export interface Decided {
  readonly decision: Decision
  readonly by: string
  /** What the model is told with a no. */
  readonly reason?: string
}

/** Somebody, or a rule, that answers approval requests. */
export interface Approver {
  readonly name: string
  readonly decide: (request: ApprovalRequest) => Effect.Effect<Decision | Decided>
}

/** An answer with who gave it: the approver, unless it names somebody else. */
export const decidedBy = (approver: Approver, answer: Decision | Decided): Decided =>
  typeof answer === "string" ? { decision: answer, by: approver.name } : answer

/** The name of whoever asks a person and waits for the answer. */
export const person = "person"
/** Says no. What there is when nobody can be asked. */
export const denyAll: Approver = { name: "nobody", decide: () => Effect.succeed("deny") }
/** Says yes to everything: `--approve all`. */
export const allowAll: Approver = { name: "allow-all", decide: () => Effect.succeed("allow") }
/** Stops the run until a person decided: `--approve suspend`. */
export const suspendAll: Approver = { name: "suspend", decide: () => Effect.succeed("suspend") }

export const Approval = Context.Reference<Approver>("effect-writ/effects/Policy/Approval", {
  defaultValue: () => denyAll
})
