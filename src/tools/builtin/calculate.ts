/** Arithmetic for a model that cannot be trusted with it. The language is `Arithmetic`'s; nothing is ever run as code. */

import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { evaluate } from "../Arithmetic.ts"
import { Risk } from "../Contract.ts"
import { ToolError } from "../ToolError.ts"

export const calculate = Tool.make("calculate", {
  description: "Evaluate an arithmetic expression with + - * / and parentheses.",
  parameters: Schema.Struct({ expression: Schema.String.annotate({ description: "For example (3 + 4) * 2" }) }),
  success: Schema.Finite,
  failure: ToolError
}).annotate(Risk, "read")

export const handleCalculate = ({ expression }: { readonly expression: string }): Effect.Effect<number, ToolError> =>
  Effect.suspend(() => {
    const outcome = evaluate(expression)
    if (typeof outcome === "number") return Effect.succeed(outcome)
    const kind = outcome.syntax ? "invalid_arguments" : "execution_failed"
    return Effect.fail(new ToolError({ kind, message: outcome.reason, path: "expression" }))
  })
