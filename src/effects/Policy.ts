/**
 * Who may do what: risk to allow, ask or deny, and whom to ask. Cautious by default: reading and writing inside the
 * workspace run, anything that reaches outside is asked about, and without somebody to ask the answer is no.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { RiskLevel } from "../tools/Contract.ts"
import type { JsonObject } from "../tools/JsonText.ts"

export type Decision = "allow" | "deny" | "suspend"

/** What somebody is asked to approve. `digest` is SHA-256 over tool and canonical arguments: an approval is for exactly that. */
export interface ApprovalRequest {
  readonly callId: string
  readonly tool: string
  readonly risk: RiskLevel
  readonly arguments: JsonObject
  readonly digest: string
}

/** Somebody, or a rule, that answers approval requests. */
export interface Approver {
  readonly name: string
  readonly decide: (request: ApprovalRequest) => Effect.Effect<Decision>
}

/** Says no. What there is when nobody can be asked. */
export const denyAll: Approver = { name: "nobody", decide: () => Effect.succeed("deny") }
/** Says yes to everything: `--approve all`. */
export const allowAll: Approver = { name: "allow-all", decide: () => Effect.succeed("allow") }
/** Stops the run until a person decided: `--approve suspend`. */
export const suspendAll: Approver = { name: "suspend", decide: () => Effect.succeed("suspend") }

export const Approval = Context.Reference<Approver>("effect-writ/effects/Policy/Approval", {
  defaultValue: () => denyAll
})

/** Does a tool of this risk have to be asked about? */
export const mustAsk = (risk: RiskLevel): boolean => risk === "external"
