/** Why the web gave nothing, before it is told to a model. Kinds are those of `ToolError`. */
import * as Schema from "effect/Schema"

export class WebFault extends Schema.TaggedError<WebFault>()("WebFault", {
  /** `refused`: a rule of this run; `unavailable`: another time it may work; the others as in `ToolError`. */
  kind: Schema.Literals(["refused", "unavailable", "not_found", "execution_failed", "invalid_arguments"]),
  /** What is wrong and what to do about it. Names no address but the one that was asked for, and no key. */
  message: Schema.String
}) {}

export const refused = (message: string): WebFault => new WebFault({ kind: "refused", message })
export const unavailable = (message: string): WebFault => new WebFault({ kind: "unavailable", message })
export const failed = (message: string): WebFault => new WebFault({ kind: "execution_failed", message })
