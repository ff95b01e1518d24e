/**
 * The contract of a tool, as annotations on an `effect/ai` `Tool`. Every default is the cautious one: a tool that says
 * nothing is treated as the most dangerous kind.
 */

import type * as Tool from "effect/ai/Tool"
import * as Context from "effect/Context"

/** What running a tool can do: look, change things inside the workspace and artifact store, or act on the outside world. */
export type RiskLevel = "read" | "local-write" | "external"

/** How an effect is kept from happening twice: `atomic` with the ledger, by a key the other side honours (`external`), by looking afterwards (`observe`), or not at all (`none`). */
export type LedgerMode = "atomic" | "external" | "observe" | "none"

export const Risk = Context.Reference<RiskLevel>("effect-writ/tools/Contract/Risk", { defaultValue: () => "external" })

/** What makes a repeat harmless. A tool that says nothing has nothing: its effect is never run again. */
/** The default is the cautious one: nothing makes a repeat harmless, so an effect of unknown outcome is never run again. */
export const Ledger = Context.Reference<LedgerMode>("effect-writ/tools/Contract/Ledger", {
  defaultValue: () => "none"
})

/** Milliseconds one execution may take; `undefined` means the run's own limit. */
export const DeadlineMillis = Context.Reference<number | undefined>("effect-writ/tools/Contract/DeadlineMillis", {
  defaultValue: () => undefined
})

/** May the thread be terminated after a deadline? `false` lets a straggler finish on its own. */
export const Terminable = Context.Reference<boolean>("effect-writ/tools/Contract/Terminable", {
  defaultValue: () => true
})

/** A polling tool is expected to be asked the same thing again: loop detection leaves it alone. */
export const Polling = Context.Reference<boolean>("effect-writ/tools/Contract/Polling", { defaultValue: () => false })

/** A call of this tool asks the user something and ends the run as `needs_input`; it is never executed. */
export const AsksUser = Context.Reference<boolean>("effect-writ/tools/Contract/AsksUser", { defaultValue: () => false })

/** The resolved contract of one tool: plain data, hashable, and what the trace records. */
export interface Contract {
  readonly risk: RiskLevel
  readonly ledger: LedgerMode
  readonly deadlineMillis: number | undefined
  readonly terminable: boolean
  readonly polling: boolean
  readonly asksUser: boolean
}

export const contractOf = (tool: Tool.Any): Contract => {
  const at = tool.annotations
  const risk = Context.get(at, Risk)
  return {
    risk,
    ledger: Context.get(at, Ledger),
    deadlineMillis: Context.get(at, DeadlineMillis),
    terminable: Context.get(at, Terminable),
    polling: Context.get(at, Polling),
    asksUser: Context.get(at, AsksUser)
  }
}
