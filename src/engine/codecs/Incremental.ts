/** A conversation as a live session would put it into its context, message by message. */
import type { Message } from "../Message.ts"
import type { Segment } from "../Prompt.ts"
import type { Codec, RenderOptions } from "./Codec.ts"
import { grouped } from "./Conversation.ts"

/** The segments of all messages; with `generationPrompt`, the opening of the next turn. Later system texts go in as a user's. */
export const incremental = (
  codec: Codec,
  messages: ReadonlyArray<Message>,
  options: RenderOptions
): ReadonlyArray<Segment> => {
  const lead = messages[0]?.role === "system" ? messages[0].content : undefined
  const out: Array<Segment> = [...codec.system(lead, options)]
  let after: "user" | "answers" = "user"
  for (const group of grouped(lead === undefined ? messages : messages.slice(1))) {
    if (group.kind === "answers") {
      out.push(...codec.answers(group.answers))
      after = "answers"
    } else if (group.message.role === "assistant") {
      const opened = { ...options, after }
      const calls = (group.message.calls ?? []).length > 0
      const closing = calls ? (codec.closingAfterCalls ?? codec.closing) : codec.closing
      out.push(...codec.opening(opened), ...codec.written(group.message, opened), ...closing)
    } else {
      out.push(...codec.user(group.message.content))
      after = "user"
    }
  }
  return options.generationPrompt === true ? [...out, ...codec.opening({ ...options, after })] : out
}
