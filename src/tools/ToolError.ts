/** The one way a tool's own code fails on purpose. Everything else it throws is a crash. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

export class ToolError extends Schema.TaggedError<ToolError>()("ToolError", {
  /**
   * `not_found` and `invalid_arguments` invite the model to repair; `execution_failed` does not. `unavailable`: the other
   * side could not be reached or gave no answer; where the contract allows it, the runtime tries again with the same key.
   */
  kind: Schema.Literals(["not_found", "invalid_arguments", "execution_failed", "refused", "unavailable"]),
  /** In words for a model: what is wrong and what to do about it. Never a host path. */
  message: Schema.String,
  /** The argument concerned, in dotted form; empty for the call as a whole. */
  path: Schema.String.pipe(Schema.withConstructorDefault(Effect.succeed(""))),
  /** What is known of the outside world: `none` unless the tool says otherwise. */
  effect: Schema.Literals(["none", "present", "unknown"]).pipe(
    Schema.withConstructorDefault(Effect.succeed("none" as const))
  )
}) {}
