/**
 * The contract of a tool: what it can do, what it owes, and what may be done about a call whose outcome nobody knows. Plain
 * data, hashable, carried by an `effect/ai` `Tool` as annotations. The parts that are functions of the arguments are in
 * `Terms`. Every default is the cautious one: a tool that says nothing is treated as the most dangerous kind.
 */

import type * as Tool from "effect/ai/Tool"
import * as Context from "effect/Context"
import type { Terms } from "./Terms.ts"

/** What running a tool can do: look, change things inside the workspace and artifact store, or act on the outside world. */
export type RiskLevel = "read" | "local-write" | "external"

/**
 * How an effect is kept from happening twice: `atomic`, in one transaction with the ledger or published under a name that
 * follows from the arguments; `external`, by a key the other side honours; `observe`, by looking afterwards; or not at all.
 */
export type LedgerMode = "atomic" | "external" | "observe" | "none"

/** What is around a running call: a thread of this process, or a process of its own. */
export type Isolation = "thread" | "process"

/** May an attempt without an answer be repeated, with its original key? */
export type RetryRule = "safe" | "never"

/**
 * By what it is judged whether the effect is there: the tool's own word, a look by the runtime through the same door
 * (`probe`), another system (`sensor`), or a person. `describes` says it in words, for whoever approves.
 */
export interface Evidence {
  readonly source: "self" | "probe" | "sensor" | "person"
  readonly describes: string
}

/** How long the postcondition may stay open, and how often it is looked at meanwhile. */
export interface Settle {
  readonly everyMillis: number
  readonly withinMillis: number
}

export const Risk = Context.Reference<RiskLevel>("effect-writ/tools/Contract/Risk", { defaultValue: () => "external" })

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

/** Everything else a tool has stated, as `declare` was given it. */
export const Stated = Context.Reference<Statement | undefined>("effect-writ/tools/Contract/Stated", {
  defaultValue: () => undefined
})

/** The terms that are plain data. */
export interface PlainTerms {
  readonly risk: RiskLevel
  readonly ledger?: LedgerMode
  /**
   * All it does is stage statements (`ToolContext.stage`), which the ledger executes with its own entry: by itself the tool
   * changes nothing. With ledger mode `atomic`, and in runs whose ledger has a database.
   */
  readonly stages?: true
  readonly retry?: RetryRule
  /** Can what it does be undone? */
  readonly reversible?: boolean
  readonly evidence?: Evidence
  /** Names of permissions the caller must hold, whatever the arguments are. */
  readonly scopes?: ReadonlyArray<string>
  readonly settle?: Settle
  /** The tool that undoes this one. It is never called by itself. */
  readonly compensation?: string
  /** The parameter that takes the key: hidden from the model, filled in by the runtime. */
  readonly keyParameter?: string
  /** Major version: part of a business key's scope. */
  readonly version?: number
  readonly deadlineMillis?: number
  readonly terminable?: boolean
  /** `process`: it runs where a native crash, an abort or a lack of memory ends nothing but itself. Default `thread`. */
  readonly isolation?: Isolation
  readonly polling?: boolean
  readonly asksUser?: boolean
}

// biome-ignore lint/suspicious/noExplicitAny: the parameters are those of the tool it was declared for
export interface Statement extends PlainTerms, Terms<any, any> {}

/**
 * States a tool's contract. A tool that acts must state all it owes (`ledger`, `retry`, `reversible`, `evidence`, `post`);
 * registration names what is missing. The functions get the decoded parameters.
 */
export const declare = <T extends Tool.Any>(
  tool: T,
  statement: PlainTerms & Terms<Tool.Parameters<T>, Tool.Success<T>>
): T => tool.annotate(Stated, statement) as T

/** The functions among the terms: which of them a tool has is part of its hash, what they compute cannot be. */
export const functionNames = ["needs", "touches", "pre", "post", "cost", "hazard", "key", "probe", "preview"] as const

// biome-ignore lint/suspicious/noExplicitAny: only the names matter
export const functionsOf = (terms: Terms<any, any>): ReadonlyArray<string> =>
  functionNames.filter((name) => terms[name] !== undefined)

/** The resolved contract of one tool: plain data, hashable, and what the trace records. */
export interface Contract {
  readonly risk: RiskLevel
  readonly ledger: LedgerMode
  readonly retry: RetryRule
  readonly reversible: boolean
  readonly evidence: Evidence
  readonly scopes: ReadonlyArray<string>
  readonly settle: Settle | undefined
  readonly compensation: string | undefined
  readonly keyParameter: string | undefined
  readonly version: number
  readonly deadlineMillis: number | undefined
  readonly terminable: boolean
  readonly polling: boolean
  readonly asksUser: boolean
  /** Did the tool state what it owes? Otherwise all of this is assumed. */
  readonly stated: boolean
  /** Names of the terms that are functions. */
  readonly functions: ReadonlyArray<string>
  /** Its effects are statements that the ledger executes. Absent: they are not. */
  readonly stages?: true
  /** What is around a running call. Absent: a thread. */
  readonly isolation?: Isolation
}

/** Has a call that did not succeed left nothing, however it ended? What a tool stages is done only when the ledger commits. */
export const leavesNothing = ({ risk, stages }: Contract): boolean => risk === "read" || stages === true

/** What a tool owes that says nothing about itself, or what a reading tool owes. */
const assumed = (risk: RiskLevel): Contract => ({
  risk,
  ledger: "none",
  retry: "never",
  reversible: risk === "read",
  evidence: { source: "self", describes: "the tool's own answer" },
  scopes: [],
  settle: undefined,
  compensation: undefined,
  keyParameter: undefined,
  version: 1,
  deadlineMillis: undefined,
  terminable: true,
  polling: false,
  asksUser: false,
  stated: false,
  functions: []
})

const defined = <A extends object>(record: A): Partial<A> =>
  Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as Partial<A>

/** A contract from what is said; what is not said is assumed to be dangerous. */
export const cautious = (said: Partial<Contract>): Contract => ({
  ...assumed(said.risk ?? "external"),
  ...defined(said)
})

export const contractOf = (tool: Tool.Any): Contract => {
  const at = tool.annotations
  const said = Context.get(at, Stated)
  const single = {
    risk: Context.get(at, Risk),
    ledger: Context.get(at, Ledger),
    deadlineMillis: Context.get(at, DeadlineMillis),
    terminable: Context.get(at, Terminable),
    polling: Context.get(at, Polling),
    asksUser: Context.get(at, AsksUser)
  }
  if (said === undefined) return cautious(single)
  const functions = functionsOf(said)
  const { needs, touches, pre, post, cost, hazard, key, probe, preview, ...plain } = said
  return cautious({ ...single, ...plain, functions, stated: true })
}

const owed = ["ledger", "retry", "reversible", "evidence", "post"] as const

/** Why a statement cannot stand, in words; empty if it can. Nothing said is allowed, and assumed to be dangerous. */
export const faultsOf = (said: Partial<Statement>): ReadonlyArray<string> => {
  if (said.risk === "read" || Object.keys(said).length === 0) return contradictions(said)
  const missing = (["risk", ...owed] as const).filter((term) => said[term] === undefined)
  if (missing.length === 0) return contradictions(said)
  const what = said.risk === undefined ? "its contract" : `its contract says risk "${said.risk}" and`
  return [`${what} lacks ${missing.join(", ")}`, ...contradictions(said)]
}

/** What a tool says about itself, in either way. A tool that acts cannot say so by `Risk` alone: it has to `declare`. */
export const statementOf = (tool: Tool.Any): Partial<Statement> => {
  const at = tool.annotations
  return Context.get(at, Stated) ?? (at.mapUnsafe.has(Risk.key) ? { risk: Context.get(at, Risk) } : {})
}

const contradictions = (said: Partial<Statement>): ReadonlyArray<string> => {
  const faults: Array<string> = []
  const { compensation, evidence, ledger, retry, reversible, settle, version } = said
  const acts = said.risk !== "read" && said.risk !== undefined
  if (acts && retry === "safe" && ledger === "none") {
    faults.push('retry "safe" needs a ledger mode that makes a repeat harmless, and "none" does not')
  }
  if (acts && reversible === false && evidence?.source === "self") {
    faults.push("what cannot be undone needs evidence other than the tool's own word")
  }
  if (said.stages === true && !(acts && ledger === "atomic")) {
    faults.push('what stages statements acts, and is of ledger mode "atomic"')
  }
  if (said.stages === true && typeof said.post === "function") {
    faults.push('what stages statements says in them what has to hold (rows, constraints), and its post is "result"')
  }
  if (ledger === "observe" && said.probe === undefined) faults.push('ledger mode "observe" needs a probe')
  if (said.keyParameter !== undefined && ledger !== "external") {
    faults.push('a key parameter is for ledger mode "external"')
  }
  if (evidence !== undefined && evidence.describes.trim() === "") faults.push("its evidence has no description")
  if (settle !== undefined && !(settle.everyMillis > 0 && settle.withinMillis >= settle.everyMillis)) {
    faults.push("its settle rule needs everyMillis above 0 and withinMillis of at least as much")
  }
  if (version !== undefined && !(Number.isSafeInteger(version) && version >= 1)) {
    faults.push("its version is a whole number from 1")
  }
  if (compensation !== undefined && reversible === false) {
    faults.push("a tool with a compensation can be undone: say reversible: true, or leave the compensation out")
  }
  return faults
}
