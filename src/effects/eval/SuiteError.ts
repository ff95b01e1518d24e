/** What is wrong with a suite: which file, where in it, and what helps. */
import * as Schema from "effect/Schema"

export class SuiteError extends Schema.TaggedError<SuiteError>()("SuiteError", {
  /** The file as it was named; empty where there is only a text. */
  path: Schema.String,
  /** From 1; absent where it is the whole file. */
  line: Schema.optionalKey(Schema.Natural),
  /** `cases[0].assertions[2].type`; empty where it is the whole file. */
  place: Schema.String,
  reason: Schema.String
}) {
  override get message(): string {
    const file = this.line === undefined ? this.path : `${this.path === "" ? "line " : `${this.path}:`}${this.line}`
    return [file, this.place, this.reason].filter((part) => part !== "").join(": ")
  }
}
