/**
 * What the record says of one call, tries at its effect included, and what that comes to for the six numbers. Fed event by
 * event; takes nothing for granted but the envelope, since traces may be cut, old or forged. A tool's own word is never
 * evidence: only a settlement's status is.
 */
import { type AttemptClass, attemptClasses, classOf } from "../../tools/AttemptClass.ts"
import { type EffectClaim, type FailureKind, failureKinds } from "../../tools/ToolCall.ts"
import type { TraceRecord } from "./TraceReader.ts"

type Data = TraceRecord["data"]

/** A class of the closed table, or that neither a class nor a known kind is on record. */
export type Classed = AttemptClass | "unclassified"

export type Status = "settled_ok" | "settled_failed" | "ambiguous"

/** Where something was first seen. */
export interface Place {
  readonly file: string
  readonly runId: string
  readonly seq: number
  /** Milliseconds since 1970, where the record says so. */
  readonly at: number | undefined
}

/** One try at an effect: from its intent to the next one. */
interface Try {
  /** `undefined` where the record has none that could be compared. */
  readonly key: string | undefined
  /** Repeats under this key are one effect, as the contract says. */
  readonly honoured: boolean
  step: string
  began: boolean
  /** The execution said that it succeeded. */
  ok: boolean
  /** The other side said that it took the request, which says nothing of the effect. */
  accepted: boolean
  /** What is known of the effect otherwise. */
  claim: EffectClaim | undefined
}

/** How often the effect of one key is there, and how often nobody knows. */
export interface Keyed {
  readonly key: string | undefined
  readonly present: number
  readonly unclear: number
}

const claims: ReadonlySet<unknown> = new Set(["none", "present", "unknown"])
const statuses: ReadonlySet<unknown> = new Set(["settled_ok", "settled_failed", "ambiguous"])
const classes: ReadonlySet<unknown> = new Set(attemptClasses)
const kinds: ReadonlySet<unknown> = new Set(failureKinds)
const found: Readonly<Record<string, EffectClaim>> = { present: "present", absent: "none", unclear: "unknown" }

/** Kinds that only Ember has. */
const emberKinds = new Map<unknown, AttemptClass>([
  ["malformed_tool_call", "schema"],
  ["malformed_json", "schema"],
  ["denied_by_policy", "authorization"]
])

const claimOf = (value: unknown): EffectClaim | undefined => (claims.has(value) ? (value as EffectClaim) : undefined)

/** The class on record, else the one that follows from the kind. */
const classIn = (data: Data, kind: unknown): Classed => {
  if (classes.has(data["class"])) return data["class"] as AttemptClass
  if (kinds.has(kind)) return classOf(kind as FailureKind, claimOf(data["effect"]) ?? "none")
  return emberKinds.get(kind) ?? "unclassified"
}

const blockedBy = (data: Data, test: string): boolean =>
  data[test] === "fail" || (Array.isArray(data["blocked_by"]) && data["blocked_by"].includes(test))

/** Causes for which arguments are not looked at because there is nothing to look at them with. */
const schemaCauses: ReadonlySet<unknown> = new Set(["malformed", "unknown_tool"])

/** One call of a run. A malformed turn counts as one that nothing but its place is known of. */
export class CallLog {
  /** Place among all attempts that were read, from 0; `undefined` if it was never checked on record. */
  attempt: number | undefined
  place: Place | undefined
  id: string | undefined
  /** A malformed turn that an event about a call has spoken of. */
  named = false
  schema = false
  pre = false
  scopes = false
  risk: unknown
  compensation = false
  /** Executions that began; what a ledger answered is none. */
  executions = 0
  #finished: { readonly ok: boolean; readonly class: Classed } | undefined
  #rejected: Classed | undefined
  #status: Status | undefined
  #outcome: unknown
  #escalated = false
  /** What the ledger answered in place of an execution. */
  #known: { readonly outcome: unknown; readonly status: unknown } | undefined
  readonly #tries: Array<Try> = []
  #open = false

  /** @param scope what keys of this run may be compared within; empty where they are the ledger's own */
  readonly see = ({ data, event_type: type, step }: TraceRecord, scope: string): void => {
    if (type === "legality_checked") this.#legality(data)
    else if (type === "precondition_checked") this.pre ||= data["pre"] === "fail"
    else if (type === "tool_call_validated") this.risk ??= data["risk"]
    else if (type === "tool_call_rejected") this.#reject(classIn(data, data["kind"]))
    else if (type === "effect_intent") this.#intent(data, scope, step)
    else if (type === "tool_execution_started") this.#start(step)
    else if (type === "tool_execution_finished") this.#finish(data)
    else if (type === "effect_accepted") this.#accept()
    else if (type === "retry_scheduled") this.#lastClaim("unknown", false)
    else if (type === "effect_probed") this.#lastClaim(found[String(data["found"])], true)
    else if (type === "effect_settled") this.#settle(data)
    else if (type === "effect_escalated") this.#escalated = true
    else if (type === "late_outcome") this.#late(data, step)
  }

  readonly malformed = (): void => {
    this.schema = true
    this.#rejected = "schema"
  }

  #legality(data: Data): void {
    this.schema ||= blockedBy(data, "schema") || schemaCauses.has(data["cause"])
    this.pre ||= blockedBy(data, "pre")
    this.scopes ||= blockedBy(data, "scopes")
    // The refusal follows, unless the record ends here.
    if (this.schema) this.#rejected ??= "schema"
    else if (this.scopes) this.#rejected ??= "authorization"
    else if (this.pre) this.#rejected ??= "precondition"
  }

  #reject(why: Classed): void {
    this.#rejected = why
    if (why === "schema") this.schema = true
    if (why === "precondition") this.pre = true
    if (why === "authorization") this.scopes = true
  }

  #intent(data: Data, scope: string, step: string): void {
    const { compensates, key, mode } = data
    if (typeof compensates === "string") this.compensation = true
    this.#tries.push({
      key: typeof key === "string" ? `${scope}${key}` : undefined,
      honoured: mode === "atomic" || mode === "external",
      step,
      began: this.#open,
      ok: false,
      accepted: false,
      claim: undefined
    })
  }

  #start(step: string): void {
    this.executions += 1
    this.#open = true
    const last = this.#tries.at(-1)
    if (last === undefined) return
    // A repeat whose intent is not on record goes by the key of the try before it.
    if (last.began) this.#tries.push({ ...last, step, ok: false, accepted: false, claim: undefined })
    else Object.assign(last, { step, began: true })
  }

  #finish(data: Data): void {
    const ok = data["ok"] === true
    if (data["replayed"] === true) {
      this.#known = { outcome: ok ? "succeeded" : "failed", status: undefined }
      return
    }
    if (!this.#open) this.#start("")
    this.#open = false
    const why = classIn(data, data["failure_kind"])
    this.#finished = { ok, class: why }
    const last = this.#tries.at(-1)
    if (last === undefined) return
    last.ok = ok
    if (!ok) last.claim = claimOf(data["effect"]) ?? "unknown"
    // Stopped before it began, by the run or by a second look at its precondition: nothing was done.
    const stopped = why === "cancelled" || data["stage"] === "precondition"
    if (!ok && stopped && last.claim === "none") last.began = false
  }

  #settle(data: Data): void {
    const { outcome, replayed } = data
    const status = statuses.has(data["status"]) ? (data["status"] as Status) : undefined
    if (replayed === true) this.#known = { outcome, status }
    // What a ledger remembers settles a call that an earlier part of the run performed; one that nothing did stays so.
    if (replayed === true && status === undefined) return
    this.#status = status
    this.#outcome = outcome
  }

  #accept(): void {
    const last = this.#tries.at(-1)
    if (last !== undefined) last.accepted = true
  }

  /** @param sure overrules what was said before */
  #lastClaim(claim: EffectClaim | undefined, sure: boolean): void {
    const last = this.#tries.at(-1)
    if (last === undefined || claim === undefined) return
    last.claim = sure ? claim : (last.claim ?? claim)
    // Somebody saw it: it began, whether or not its start is on record.
    if (claim === "present") last.began = true
  }

  #late(data: Data, step: string): void {
    if (data["ok"] !== true) return
    // It outweighs a look that found nothing: the look was too early. A try that ended well is not late.
    const waiting = this.#tries.find((one) => one.step === step && one.began && !one.ok && one.claim !== "present")
    if (waiting !== undefined) waiting.claim = "present"
  }

  get isEffect(): boolean {
    return this.#tries.length > 0
  }

  /** An effect counts as executed once its execution began. */
  get executed(): boolean {
    return this.#tries.some(({ began }) => began)
  }

  get status(): Status | undefined {
    return this.#status
  }

  /** It was settled, but the record does not say whether its promise was kept. */
  get unjudged(): boolean {
    return this.#outcome !== undefined && this.#status === undefined
  }

  get isRead(): boolean {
    return !this.isEffect && (this.risk === "read" || this.risk === "read_only")
  }

  get finished(): boolean {
    return this.#finished !== undefined
  }

  get finishedWell(): boolean {
    return this.#finished?.ok === true
  }

  /** Why the call failed; `undefined` if it did not, or if the record ends before it is known. */
  get failedOf(): Classed | undefined {
    if (this.#rejected !== undefined) return this.#rejected
    const why = this.#finished?.ok === false ? this.#finished.class : undefined
    if (this.#status === "settled_ok") return undefined
    if (this.#escalated || this.#status === "ambiguous") return why ?? "timeout"
    if (this.#status === "settled_failed") return why ?? "postcondition"
    if (this.#finished !== undefined) return why
    return this.#failedBefore
  }

  get #failedBefore(): Classed | undefined {
    if (this.#known === undefined) return undefined
    const { outcome, status } = this.#known
    if (status === "settled_ok" || (status === undefined && outcome === "succeeded")) return undefined
    if (status === "ambiguous" || outcome === "unknown") return "timeout"
    return status === "settled_failed" ? "postcondition" : "unclassified"
  }

  #effectOf(one: Try, last: boolean): EffectClaim {
    if (!one.began) return "none"
    if (!last || (this.#status === undefined && this.#outcome === undefined)) {
      return one.claim ?? (one.ok && !one.accepted ? "present" : "unknown")
    }
    if (this.#status === "settled_ok" || (this.unjudged && this.#outcome === "succeeded")) return "present"
    return one.claim ?? "unknown"
  }

  /** Its effects by key. Repeats under a key that the other side honours are one effect. */
  get effects(): ReadonlyArray<Keyed> {
    const counted: Array<{ key: string | undefined; present: number; unclear: number }> = []
    for (const [at, one] of this.#tries.entries()) {
      const claim = this.#effectOf(one, at === this.#tries.length - 1)
      if (claim === "none") continue
      const same = one.honoured ? counted.find(({ key }) => key !== undefined && key === one.key) : undefined
      const into = same ?? { key: one.key, present: 0, unclear: 0 }
      if (same === undefined) counted.push(into)
      if (claim === "present") Object.assign(into, { present: 1, unclear: 0 })
      else if (into.present === 0) into.unclear = 1
    }
    return counted
  }
}
