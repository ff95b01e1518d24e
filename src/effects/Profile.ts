/**
 * What a task is like, in four properties, and how strictly a tool is therefore gated: the same tool is judged per task.
 * Pure; it reads what a tool declares and neither approves, retries nor verifies anything itself.
 *
 *   property       low end                               high end
 *   reversibility  `reversible`: a reversible external    `irreversible`: for an irreversible tool its own word does
 *                  call is not asked about, if the task   not settle; if also `unobservable`, its local writes ask
 *                  is `local` as well
 *   side effects   `local`: risk weighs 1                 `external`: risk weighs 2, every external call is asked about
 *   retry          `harmless`: reads and key-safe         `dangerous`: never. Between, `ambiguous`: the original key
 *                  effects again without asking           asks the ledger, the other side or a probe first
 *   evidence       `self`: the tool's answer counts       `unobservable`: a person settles every effect. Between,
 *                                                         `observable`: the declared postcondition counts
 */
import * as Result from "effect/Result"
import type { LedgerMode, RiskLevel } from "../tools/Contract.ts"
import { nearest } from "../tools/Nearest.ts"

/** Each property's values, the most permissive first. */
const values = {
  reversibility: ["reversible", "irreversible"],
  sideEffects: ["local", "external"],
  retry: ["harmless", "ambiguous", "dangerous"],
  evidence: ["self", "observable", "unobservable"]
} as const

type Property = keyof typeof values

/** `name`: a profile's, followed by what was changed about it (`cautious,retry=harmless`). */
export type TaskProfile = { readonly name: string } & { readonly [K in Property]: (typeof values)[K][number] }

/**
 * The default, and the conservative end as far as it goes without a person at hand: changes inside the workspace run,
 * whatever reaches outside is asked about, nothing is tried again without its key.
 */
export const cautious: TaskProfile = {
  name: "cautious",
  reversibility: "irreversible",
  sideEffects: "external",
  retry: "ambiguous",
  evidence: "observable"
}

export const exploratory: TaskProfile = {
  name: "exploratory",
  reversibility: "reversible",
  sideEffects: "local",
  retry: "harmless",
  evidence: "self"
}

export const workspace: TaskProfile = { ...exploratory, name: "workspace", evidence: "observable" }

export const strict: TaskProfile = { ...cautious, name: "strict", retry: "dangerous", evidence: "unobservable" }

/** The profiles that have a name, each with a line for `--help`. */
export const profiles: ReadonlyArray<{ readonly profile: TaskProfile; readonly summary: string }> = [
  { profile: cautious, summary: "the default: ask before anything outside, retry only by key, check what was done" },
  { profile: exploratory, summary: "for trying things out: what can be undone is not asked about, tools are believed" },
  {
    profile: workspace,
    summary: "for work that stays local and can be undone: as exploratory, but results are checked"
  },
  { profile: strict, summary: "for what must not go wrong: no retries, and a person settles every effect" }
]

/** What of a tool's contract decides. */
export interface Gated {
  readonly risk: RiskLevel
  readonly reversible: boolean
  readonly evidence: { readonly source: "self" | "probe" | "sensor" | "person" }
  readonly ledger: LedgerMode
  readonly retry: "safe" | "never"
}

export interface Gates {
  /** Is somebody asked before the call runs? */
  readonly approve: boolean
  /** `auto`: again, with the same key. `inquiry`: only with the same key, and only after the ledger or a probe was asked. */
  readonly retry: "auto" | "inquiry" | "never"
  /** What settles the effect: the tool's result, the declared postcondition (without one the result, marked as self-reported), or a person. */
  readonly evidence: "result" | "post" | "person"
  /** Is evidence whose source is `self` enough to call the effect settled? Where not, it stays `accepted`. */
  readonly selfSettles: boolean
  /** What the governor's weight of risk is multiplied by. */
  readonly riskWeight: number
}

/** The gates one tool has to pass in a task of this profile. Raising a property never opens a gate. */
export const gatesOf = (profile: TaskProfile, contract: Gated): Gates => {
  const final = profile.reversibility === "irreversible" && !contract.reversible && contract.risk !== "read"
  const evidence = evidenceOf(profile, contract, final)
  return {
    approve: approveOf(profile, contract, final),
    retry: retryOf(profile, contract),
    evidence,
    selfSettles: evidence !== "person" && !final,
    riskWeight: riskWeightOf(profile)
  }
}

export const riskWeightOf = (profile: TaskProfile): number => (profile.sideEffects === "external" ? 2 : 1)

const approveOf = (profile: TaskProfile, contract: Gated, final: boolean): boolean => {
  if (contract.risk === "read") return false
  if (contract.risk === "local-write") return final && profile.evidence === "unobservable"
  return !(contract.reversible && profile.reversibility === "reversible" && profile.sideEffects === "local")
}

const retryOf = (profile: TaskProfile, contract: Gated): Gates["retry"] => {
  if (profile.retry === "dangerous") return "never"
  // Looking twice is harmless whatever the tool says of repeats: it has no effect that could happen again.
  if (contract.risk === "read" && profile.retry === "harmless") return "auto"
  if (contract.retry === "never" || contract.ledger === "none") return "never"
  return profile.retry === "harmless" && contract.ledger !== "observe" ? "auto" : "inquiry"
}

const evidenceOf = (profile: TaskProfile, contract: Gated, final: boolean): Gates["evidence"] => {
  if (contract.risk === "read") return profile.evidence === "self" ? "result" : "post"
  if (profile.evidence === "unobservable" || contract.evidence.source === "person") return "person"
  return profile.evidence === "self" && !final ? "result" : "post"
}

/** A profile from `name`, `name,key=value,…` or `key=value,…` (then on top of the default); or what is wrong, in words. */
export const parse = (text: string): Result.Result<TaskProfile, string> => {
  const parts = text.split(",").map((part) => part.trim())
  const bare = parts[0]!.includes("=")
  const named = bare ? cautious : profiles.find(({ profile }) => profile.name === parts[0])?.profile
  const names = profiles.map(({ profile }) => profile.name)
  if (named === undefined) return Result.fail(unknown("profile", parts[0]!, names))
  const changes = new Map<Property, string>()
  for (const part of bare ? parts : parts.slice(1)) {
    const [key, value, more] = part.split("=").map((side) => side.trim())
    if (value === undefined || more !== undefined) return Result.fail(`"${part}" is not of the form key=value`)
    const properties = Object.keys(values) as ReadonlyArray<Property>
    const property = properties.find((name) => fold(name) === fold(key!))
    if (property === undefined) return Result.fail(unknown("property", key!, properties))
    const allowed: ReadonlyArray<string> = values[property]
    if (!allowed.includes(value)) return Result.fail(unknown(`value of ${property}`, value, allowed))
    if (changes.has(property)) return Result.fail(`${property} is said twice`)
    changes.set(property, value)
  }
  const name = [named.name, ...[...changes].map(([property, value]) => `${property}=${value}`)].join(",")
  return Result.succeed({ ...named, ...(Object.fromEntries(changes) as Partial<TaskProfile>), name })
}

/** `side-effects`, `side_effects` and `sideEffects` are one key. */
const fold = (key: string): string => key.toLowerCase().replaceAll(/[-_]/g, "")

const unknown = (what: string, name: string, known: ReadonlyArray<string>): string => {
  const near = nearest(name, known)
  const hint = near === undefined ? `one of ${known.join(", ")}` : `did you mean ${near}?`
  return `there is no ${what} "${name}": ${hint}`
}
