/** Arithmetic for a model that cannot be trusted with it. The language is `Arithmetic`'s; nothing is ever run as code. */

import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { about } from "../About.ts"
import { evaluate } from "../Arithmetic.ts"
import { declare } from "../Contract.ts"
import { ToolError } from "../ToolError.ts"

const declared = Tool.make("calculate", {
  description: "Evaluate an arithmetic expression with + - * / and parentheses.",
  parameters: Schema.Struct({ expression: Schema.String.annotate({ description: "For example (3 + 4) * 2" }) }),
  success: Schema.Finite,
  failure: ToolError
})

export const calculate = about(declare(declared, { risk: "read", touches: () => [] }), {
  text: `The language is \`src/tools/Arithmetic.ts\`: numbers, \`+ - * / ^ %\`, parentheses, \`pi\`, \`e\`, and \`sqrt abs floor ceil round ln log exp sin cos tan mod min max\`. Nothing is ever run as code. Results are rounded to 15 significant digits, so that 0.1 + 0.2 is 0.3; a division by zero and a result that is too large are failures, never \`null\`. At most 1000 characters, nested at most 64 deep.`,
  example: { expression: "(3 + 4) * 2" }
})

export const handleCalculate = ({ expression }: { readonly expression: string }): Effect.Effect<number, ToolError> =>
  Effect.suspend(() => {
    const outcome = evaluate(expression)
    if (typeof outcome === "number") return Effect.succeed(outcome)
    const kind = outcome.syntax ? "invalid_arguments" : "execution_failed"
    return Effect.fail(new ToolError({ kind, message: outcome.reason, path: "expression" }))
  })
