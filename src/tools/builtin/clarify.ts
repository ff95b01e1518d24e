/** Asks the user. The loop ends the run as `needs_input` when it sees a call of it; it is never executed. */

import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { AsksUser, Risk } from "../Contract.ts"

export const clarify = Tool.make("clarify", {
  description: "Ask the user for missing information.",
  parameters: Schema.Struct({ question: Schema.String.annotate({ description: "The question" }) }),
  success: Schema.String
})
  .annotate(Risk, "read")
  .annotate(AsksUser, true)

export const handleClarify = (): Effect.Effect<never> =>
  Effect.die(new Error("clarify is answered by the user and cannot be executed"))
