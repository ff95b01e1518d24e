/** Fails on purpose: for tests and for trying out what a failure looks like. */

import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { about } from "../About.ts"
import { declare } from "../Contract.ts"
import { ToolError } from "../ToolError.ts"

const declared = Tool.make("fail", {
  description: "Fail with the given message.",
  parameters: Schema.Struct({ message: Schema.String.annotate({ description: "The message" }) }),
  success: Schema.String,
  failure: ToolError
})

export const fail = about(declare(declared, { risk: "read", touches: () => [] }), {
  text: `For tests, and for trying out what a failure looks like. Not among the tools a run has by itself.`,
  example: { message: "out of paper" }
})

export const handleFail = ({ message }: { readonly message: string }): Effect.Effect<never, ToolError> =>
  Effect.fail(new ToolError({ kind: "execution_failed", message }))
