/** Waits: for tests of deadlines and cancellation. */

import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Risk } from "../Contract.ts"

export const slow = Tool.make("slow", {
  description: "Wait for the given time.",
  parameters: Schema.Struct({
    milliseconds: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 600_000 })).annotate({
      description: "How long to wait"
    })
  }),
  success: Schema.String
}).annotate(Risk, "read")

export const handleSlow = ({ milliseconds }: { readonly milliseconds: number }): Effect.Effect<string> =>
  Effect.as(Effect.sleep(milliseconds), `waited ${milliseconds} ms`)
