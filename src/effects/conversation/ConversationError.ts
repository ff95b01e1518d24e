/** What is wrong with a conversation file or with what one is assembled from: which file, where in it, and what helps. */
import * as Schema from "effect/Schema"

export class ConversationError extends Schema.TaggedError<ConversationError>()("ConversationError", {
  /** The file as the caller named it; empty where there is only a text. */
  path: Schema.String,
  /** `meta.tools[1].name`, `message 3, content[0].type`; empty where it is the whole file. Messages count from 0. */
  place: Schema.String,
  /** In words, with the remedy where there is one. */
  reason: Schema.String
}) {
  override get message(): string {
    return [this.path, this.place, this.reason].filter((part) => part !== "").join(": ")
  }
}
