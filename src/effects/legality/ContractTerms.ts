/**
 * Evaluates the terms of a contract for one call. A term that throws, takes too long, or gives something that is no answer is
 * a fault of the contract, said by name; nothing is assumed in its place.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import type { RegisteredTool, ValidatedArguments } from "../../tools/Registry.ts"
import { looking, type Touch } from "../../tools/Terms.ts"
import type { ToolContext, ToolSettings } from "../../tools/ToolContext.ts"
import type { ToolError } from "../../tools/ToolError.ts"
import { misshapen, type shapes } from "./TermShapes.ts"

/** What is wrong with the contract, in words. */
export interface Fault {
  readonly fault: string
}

/** How long one look may take before the contract is at fault. */
const lookMillis = 10_000

const reasonOf = (error: unknown): string =>
  error instanceof Error ? `${error.name}: ${error.message}` : String(error)

const faultOf = (term: string, what: string): Fault => ({ fault: `the contract's ${term} ${what}`.slice(0, 500) })

export const term = <A>(name: string, of: () => A): Result.Result<A, Fault> =>
  Result.try({ try: of, catch: (error) => faultOf(name, `failed: ${reasonOf(error)}`) })

const price = (name: string, of: () => number): Result.Result<number, Fault> =>
  Result.flatMap(term(name, of), (value) =>
    typeof value === "number" && value >= 0
      ? Result.succeed(value)
      : Result.fail(faultOf(name, `gave ${String(value)}: a number from 0 is needed`))
  )

/** What a call would cost and harm. `Infinity` forbids it. */
export const prices = ({ terms }: RegisteredTool, args: ValidatedArguments) =>
  Result.flatMap(
    price("cost", () => terms.cost(args)),
    (cost) =>
      Result.map(
        price("hazard", () => terms.hazard(args)),
        (hazard) => ({ cost, hazard })
      )
  )

export interface Needs {
  readonly scopes: ReadonlyArray<string>
  readonly touches: ReadonlyArray<Touch>
}

/** The answer of a term, if it is one. */
const shaped = <A>(name: keyof typeof shapes, value: A): Result.Result<A, Fault> => {
  const wrong = misshapen(name, value)
  return wrong === undefined ? Result.succeed(value) : Result.fail(faultOf(name, wrong))
}

const list = <A>(name: "scopes" | "touches", of: () => ReadonlyArray<A>): Result.Result<ReadonlyArray<A>, Fault> =>
  Result.flatMap(term(name, of), (value) => shaped(name, value))

/** What a call needs permission for. */
export const needs = ({ contract, terms }: RegisteredTool, args: ValidatedArguments): Result.Result<Needs, Fault> =>
  Result.flatMap(
    list("scopes", () => terms.needs(args)),
    (scopes) =>
      Result.map(
        list("touches", () => terms.touches(args)),
        (touches) => ({ scopes: [...contract.scopes, ...scopes], touches: [...touches] })
      )
  )

/** A look at the world: its answer, the tool's word that it could not look, or a fault. Interruption stays interruption. */
export const look = <A>(
  name: "precondition" | "postcondition" | "probe" | "preview",
  of: () => Effect.Effect<A, ToolError, ToolContext>,
  settings: ToolSettings
): Effect.Effect<Result.Result<A, Fault | ToolError>> =>
  Effect.suspend(of).pipe(
    (effect) => looking(effect, settings),
    Effect.timeoutOption(lookMillis),
    Effect.exit,
    Effect.flatMap((exit): Effect.Effect<Result.Result<A, Fault | ToolError>> => {
      if (Exit.isSuccess(exit)) {
        return Effect.succeed(
          exit.value._tag === "Some"
            ? shaped(name, exit.value.value)
            : Result.fail(faultOf(name, `gave no answer within ${lookMillis} ms`))
        )
      }
      if (Cause.hasInterruptsOnly(exit.cause)) return Effect.interrupt
      const failure = Cause.findErrorOption(exit.cause)
      if (failure._tag === "Some") return Effect.succeed(Result.fail(failure.value))
      return Effect.succeed(Result.fail(faultOf(name, `failed: ${reasonOf(Cause.squash(exit.cause))}`)))
    })
  )
