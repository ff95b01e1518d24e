/** Asks the user. The loop ends the run as `needs_input` when it sees a call of it; it is never executed. */

import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { about } from "../About.ts"
import { declare } from "../Contract.ts"

const declared = Tool.make("clarify", {
  description: "Ask the user for missing information.",
  parameters: Schema.Struct({ question: Schema.String.annotate({ description: "The question" }) }),
  success: Schema.String
})

export const clarify = about(declare(declared, { risk: "read", asksUser: true, touches: () => [] }), {
  text: `A call of it ends the run with the question (exit code 6); it is never executed. \`writ run --resume RUN --answer TEXT\` goes on with the answer as its result.`,
  example: { question: "Which city?" }
})

export const handleClarify = (): Effect.Effect<never> =>
  Effect.die(new Error("clarify is answered by the user and cannot be executed"))
