/**
 * The terms of a contract that are functions of the arguments: permissions needed, things touched, precondition,
 * postcondition, cost, hazard, business key, probe and preview. They run in the runtime's own thread, next to the decision
 * they serve, and never in the tool. A term that throws, or says a number that is none, is a fault of the contract: the call
 * is blocked, and nothing is assumed in its place.
 */
import * as Effect from "effect/Effect"
import { asEffect } from "./JsonResult.ts"
import type { Json, JsonObject } from "./JsonText.ts"
import { ToolContext, type ToolSettings } from "./ToolContext.ts"
import type { ToolError } from "./ToolError.ts"
import { seal, type ValidatedArguments } from "./Validation.ts"

/** What is done to a resource. */
export type Verb = "read" | "write" | "delete" | "send" | "execute"

/** One thing a call touches, e.g. `workspace:notes/a.md`, `https://host/path`, `invoice:order-431`. */
export interface Touch {
  readonly verb: Verb
  readonly resource: string
}

/** A requirement that does not hold, in words for a model: which one, and what would help. */
export interface Unmet {
  /** The argument concerned, in dotted form; empty for the call as a whole. */
  readonly path?: string
  readonly reason: string
}

/** What looking at the world says about the promise: it holds, it is broken (which clauses), or it is not decided yet. */
export type Verdict =
  | { readonly _tag: "Holds"; readonly evidence?: Json }
  | { readonly _tag: "Broken"; readonly unmet: ReadonlyArray<Unmet>; readonly evidence?: Json }
  | { readonly _tag: "Pending"; readonly evidence?: Json }

/** What looking for an effect after a lost answer found. */
export type Found<A> =
  | { readonly _tag: "Present"; readonly result: A }
  | { readonly _tag: "Absent" }
  | { readonly _tag: "Unclear" }

export const holds = (evidence?: Json): Verdict => ({ _tag: "Holds", ...(evidence === undefined ? {} : { evidence }) })
export const pending = (evidence?: Json): Verdict => ({
  _tag: "Pending",
  ...(evidence === undefined ? {} : { evidence })
})
export const broken = (reason: string, evidence?: Json): Verdict => ({
  _tag: "Broken",
  unmet: [{ reason }],
  ...(evidence === undefined ? {} : { evidence })
})

type Look<A> = Effect.Effect<A, ToolError, ToolContext>

/** As a tool's author writes them: `P` are the decoded parameters, `A` is the result. */
export interface Terms<P, A> {
  /** Permissions that depend on the arguments, besides the contract's `scopes`. */
  readonly needs?: (params: P) => ReadonlyArray<string>
  readonly touches?: (params: P) => ReadonlyArray<Touch>
  /** What does not hold right now; nothing if the call may go ahead. */
  readonly pre?: (params: P) => Look<ReadonlyArray<Unmet>>
  /** Looks whether the promise is kept. `"result"`: the answer's own shape is all there is to see. */
  readonly post?: ((params: P, result: A) => Look<Verdict>) | "result"
  /** In units of value (see `Governor`), not negative. */
  readonly cost?: (params: P) => number
  /** Expected harm in units of value; `Infinity` forbids the call. */
  readonly hazard?: (params: P) => number
  /** Names the logical attempt, e.g. `invoice:order-431:v1`. Goes into ledgers and traces: never a secret. */
  readonly key?: (params: P) => string
  /** Looks whether an earlier attempt left its effect. */
  readonly probe?: (params: P, idempotencyKey: string) => Look<Found<A>>
  /** What would change, as text for whoever approves: a diff, say. */
  readonly preview?: (params: P) => Look<string>
}

/** The same, bound to one tool and to arguments that its check has passed. Functions that are absent are not promised. */
export interface BoundTerms {
  readonly needs: (args: ValidatedArguments) => ReadonlyArray<string>
  readonly touches: (args: ValidatedArguments) => ReadonlyArray<Touch>
  readonly cost: (args: ValidatedArguments) => number
  readonly hazard: (args: ValidatedArguments) => number
  readonly key: ((args: ValidatedArguments) => string) | undefined
  readonly pre: ((args: ValidatedArguments) => Look<ReadonlyArray<Unmet>>) | undefined
  readonly post: ((args: ValidatedArguments, result: Json) => Look<Verdict>) | undefined
  readonly probe: ((args: ValidatedArguments, idempotencyKey: string) => Look<Found<Json>>) | undefined
  readonly preview: ((args: ValidatedArguments) => Look<string>) | undefined
}

/** How a tool's own values come from arguments and results, and go back. */
export interface Binding {
  readonly params: (args: ValidatedArguments) => unknown
  readonly result: (result: Json) => unknown
  readonly encode: (result: unknown) => Effect.Effect<Json>
}

const none = { needs: [], touches: [] } as const

/** Arguments are flat as a rule, and a spread then takes a tenth of the time of a structured clone. */
const copyOf = (json: JsonObject): JsonObject =>
  Object.values(json).some((value) => typeof value === "object" && value !== null) ? structuredClone(json) : { ...json }

/** Arguments of its own: what a term does to them changes nothing of what was approved and will be performed. */
const ownCopy = ({ effective, raw }: ValidatedArguments): ValidatedArguments => {
  const copy = copyOf(raw)
  return seal(copy, effective === raw ? copy : copyOf(effective))
}

// biome-ignore lint/suspicious/noExplicitAny: the parameters are those of the tool the terms were declared for
export const bind = (terms: Terms<any, any>, { encode, params: own, result }: Binding): BoundTerms => {
  const { cost, hazard, key, needs, post, pre, preview, probe, touches } = terms
  const params = (args: ValidatedArguments) => own(ownCopy(args))
  const look = <A>(of: () => Look<A>): Look<A> => Effect.suspend(() => asEffect(of()))
  return {
    needs: needs === undefined ? () => none.needs : (args) => needs(params(args)),
    touches: touches === undefined ? () => none.touches : (args) => touches(params(args)),
    cost: cost === undefined ? () => 0 : (args) => cost(params(args)),
    hazard: hazard === undefined ? () => 0 : (args) => hazard(params(args)),
    key: key === undefined ? undefined : (args) => key(params(args)),
    pre: pre === undefined ? undefined : (args) => look(() => pre(params(args))),
    post:
      typeof post !== "function"
        ? undefined
        : (args, json) => look(() => post(params(args), result(structuredClone(json)))),
    probe:
      probe === undefined
        ? undefined
        : (args, idempotencyKey) =>
            Effect.flatMap(
              look(() => probe(params(args), idempotencyKey)),
              (found): Effect.Effect<Found<Json>> =>
                found._tag === "Present"
                  ? Effect.map(encode(found.result), (result) => ({ _tag: "Present", result }) as const)
                  : Effect.succeed(found)
            ),
    preview: preview === undefined ? undefined : (args) => look(() => preview(params(args)))
  }
}

/** Runs a look with what tools may reach; it produces nothing. */
export const looking = <A>(look: Look<A>, settings: ToolSettings): Effect.Effect<A, ToolError> =>
  Effect.provideService(look, ToolContext, { settings, produce: () => {}, stage: () => {} })
