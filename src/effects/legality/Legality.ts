/**
 * `legal = schema and scopes and precondition`, found in that order, with the ledger asked before the precondition: after an
 * effect its own precondition may be false because of it, and whoever asks again is owed the outcome. Looks, decides nothing
 * else, changes nothing. Every attempt gets all three results, refused ones included.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { LedgerError } from "../../actors/EffectLedgerError.ts"
import type { EventData } from "../../actors/TraceEvent.ts"
import type { RegisteredTool, ValidatedArguments } from "../../tools/Registry.ts"
import type { Touch } from "../../tools/Terms.ts"
import { undeclared } from "../Authority.ts"
import type { CallRecord, RunContext } from "../RunContext.ts"
import { type Fault, needs } from "./ContractTerms.ts"
import { inquire } from "./Inquiry.ts"
import { unmet } from "./Precondition.ts"
import { type Refusal, refusal } from "./Refusal.ts"

type Check = EventData<"legality_checked">["schema"]

/** The three results, and the refusal that follows from the first that failed. */
export interface Legality {
  readonly schema: Check
  readonly scopes: Check
  readonly pre: Check
  readonly cause?: string
  readonly refusal?: Refusal
  readonly arguments?: ValidatedArguments
  /** What the call would change, as far as its arguments could be read. */
  readonly touches: ReadonlyArray<Touch>
  /** The ledger has this attempt already: nothing is decided anew. */
  readonly inquiry: boolean
}

const at = (schema: Check, scopes: Check, pre: Check): Legality => ({
  schema,
  scopes,
  pre,
  touches: [],
  inquiry: false
})

/** Nothing was looked at, for a reason that has nothing to do with the call. */
export const unchecked = (cause: string): Legality => ({
  ...at("not_evaluated", "not_evaluated", "not_evaluated"),
  cause
})

const unknownTool = (run: RunContext, name: string): Legality => {
  const names = run.session.registry.tools.map((tool) => tool.name)
  const known = names.length === 0 ? "no tools are available" : `available tools: ${names.join(", ")}`
  const errors = [{ path: "name", reason: `there is no tool ${JSON.stringify(name)}; ${known}` }]
  return {
    ...at("fail", "not_evaluated", "not_evaluated"),
    cause: "unknown_tool",
    refusal: { kind: "unknown_tool", stage: "schema", errors }
  }
}

/** The tool's own arguments do not fit. What it may do regardless of them is still looked at. */
const invalidArguments = Effect.fnUntraced(function* (
  run: RunContext,
  tool: RegisteredTool,
  errors: Refusal["errors"]
) {
  const { functions, scopes } = tool.contract
  const depends = functions.includes("needs") || functions.includes("touches")
  const denied = depends ? [] : yield* run.settings.gates.authority.check({ tool: tool.name, scopes, touches: [] })
  const found = depends ? "not_evaluated" : denied.length === 0 ? "pass" : "fail"
  return {
    ...at("fail", found, "not_evaluated"),
    cause: "invalid_arguments",
    refusal: { kind: "invalid_arguments", stage: "schema", errors }
  } satisfies Legality
})

const faulty = (stage: Refusal["stage"], { fault }: Fault, found: Legality): Legality => ({
  ...found,
  cause: "contract_fault",
  refusal: refusal("contract_fault", stage, fault)
})

/** What a tool that acts and does not say on what is taken to touch. */
const touchesOf = (tool: RegisteredTool, touches: ReadonlyArray<Touch>): ReadonlyArray<Touch> =>
  tool.contract.risk === "read" || tool.contract.functions.includes("touches") ? touches : [undeclared(tool.name)]

const permitted = Effect.fnUntraced(function* (
  run: RunContext,
  record: CallRecord,
  tool: RegisteredTool,
  args: ValidatedArguments
): Effect.fn.Return<Legality, LedgerError> {
  const needed = needs(tool, args)
  if (Result.isFailure(needed)) return faulty("scopes", needed.failure, at("pass", "fail", "not_evaluated"))
  const touches = touchesOf(tool, needed.success.touches)
  const need = { tool: tool.name, scopes: needed.success.scopes, touches }
  const denied = yield* run.settings.gates.authority.check(need)
  const known = { arguments: args, touches, inquiry: false }
  if (denied.length > 0) {
    return {
      ...at("pass", "fail", "not_evaluated"),
      ...known,
      cause: "unauthorized",
      refusal: {
        kind: "unauthorized",
        stage: "scopes",
        errors: denied.map(({ reason, what }) => ({ path: "", reason: `${what}: ${reason}` }))
      }
    }
  }
  const asked = yield* inquire(run, record, tool, args)
  if (asked._tag === "Refused") {
    return { ...at("pass", "pass", "not_evaluated"), ...known, cause: asked.refusal.kind, refusal: asked.refusal }
  }
  const inquiry: Legality = {
    ...at("pass", "pass", "not_evaluated"),
    ...known,
    cause: "superseded_by_ledger",
    inquiry: true
  }
  if (asked._tag === "Inquiry") return inquiry
  const failed = yield* unmet(run, tool, args)
  if (failed === undefined) return { ...at("pass", "pass", "pass"), ...known }
  // The look may have seen what another delivery of this very attempt has done since the ledger was asked.
  const since = yield* inquire(run, record, tool, args)
  return since._tag === "Inquiry" ? inquiry : { ...at("pass", "pass", "fail"), ...known, refusal: failed }
})

/** All that can be said about one proposed call. */
export const legalityOf = Effect.fnUntraced(function* (
  run: RunContext,
  record: CallRecord
): Effect.fn.Return<Legality, LedgerError> {
  const { arguments: args, name } = record.proposed
  const tool = run.session.registry.get(name)
  if (tool === undefined) return unknownTool(run, name)
  const checked = tool.check(args)
  if (Result.isSuccess(checked)) return yield* permitted(run, record, tool, checked.success)
  return yield* invalidArguments(
    run,
    tool,
    checked.failure.map(({ path, reason }) => ({ path, reason }))
  )
})
