/** Gives a text back: the smallest tool there is. */

import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { about } from "../About.ts"
import { declare } from "../Contract.ts"

const declared = Tool.make("echo", {
  description: "Return the given text unchanged.",
  parameters: Schema.Struct({ text: Schema.String.annotate({ description: "The text" }) }),
  success: Schema.String
})

export const echo = about(declare(declared, { risk: "read", touches: () => [] }), {
  text: `The smallest tool there is. A text that looks like JSON stays text.`,
  example: { text: "42" }
})

export const handleEcho = ({ text }: { readonly text: string }): Effect.Effect<string> => Effect.succeed(text)
