/** Waits: for tests of deadlines and cancellation. */

import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { about } from "../About.ts"
import { declare } from "../Contract.ts"

const declared = Tool.make("slow", {
  description: "Wait for the given time.",
  parameters: Schema.Struct({
    milliseconds: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 600_000 })).annotate({
      description: "How long to wait"
    })
  }),
  success: Schema.String
})

export const slow = about(declare(declared, { risk: "read", touches: () => [] }), {
  text: `For tests of deadlines and cancellation. Not among the tools a run has by itself.`,
  example: { milliseconds: 1 }
})

export const handleSlow = ({ milliseconds }: { readonly milliseconds: number }): Effect.Effect<string> =>
  Effect.as(Effect.sleep(milliseconds), `waited ${milliseconds} ms`)
