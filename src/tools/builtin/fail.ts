/** Fails on purpose: for tests and for trying out what a failure looks like. */

import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Risk } from "../Contract.ts"
import { ToolError } from "../ToolError.ts"

export const fail = Tool.make("fail", {
  description: "Fail with the given message.",
  parameters: Schema.Struct({ message: Schema.String.annotate({ description: "The message" }) }),
  success: Schema.String,
  failure: ToolError
}).annotate(Risk, "read")

export const handleFail = ({ message }: { readonly message: string }): Effect.Effect<never, ToolError> =>
  Effect.fail(new ToolError({ kind: "execution_failed", message }))
