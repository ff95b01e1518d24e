/** Gives a text back: the smallest tool there is. */

import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Risk } from "../Contract.ts"

export const echo = Tool.make("echo", {
  description: "Return the given text unchanged.",
  parameters: Schema.Struct({ text: Schema.String.annotate({ description: "The text" }) }),
  success: Schema.String
}).annotate(Risk, "read")

export const handleEcho = ({ text }: { readonly text: string }): Effect.Effect<string> => Effect.succeed(text)
