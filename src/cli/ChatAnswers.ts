/** Does what a word of a chat asks for, and says so in lines. What cannot be done is an answer too, and the chat goes on. */
import * as Effect from "effect/Effect"
import type { Model } from "../engine/Model.ts"
import type { Registry } from "../tools/Registry.ts"
import type { ChatSession } from "./ChatSession.ts"
import { helpLines, toolLines, traceLines, undoneLines, type Word } from "./ChatWords.ts"
import { block } from "./Printable.ts"
import type { Screen } from "./Screen.ts"
import { wrapped } from "./WordWrap.ts"

export interface Conversation {
  readonly chat: ChatSession
  readonly registry: Registry
}

const failed =
  (what: string, { paint }: Pick<Screen, "paint">) =>
  (error: { readonly message: string }) =>
    Effect.succeed([`  ${paint.red(`${what}: ${block(error.message)}`)}`])

export const linesFor = (
  word: Exclude<Word, "exit">,
  { chat, registry }: Conversation,
  screen: Pick<Screen, "columns" | "paint">
): Effect.Effect<ReadonlyArray<string>, never, Model> => {
  switch (word) {
    case "help":
      return Effect.succeed(helpLines(screen))
    case "tools":
      return Effect.succeed(toolLines(registry, screen))
    case "trace":
      return Effect.succeed(traceLines(chat.last, screen))
    case "undo":
      return Effect.matchEffect(chat.undo, {
        onFailure: failed("it cannot be taken back", screen),
        onSuccess: (exchange) => Effect.succeed(undoneLines(exchange, screen))
      })
    case "new":
      return Effect.matchEffect(chat.renew, {
        onFailure: failed("there is no new conversation", screen),
        onSuccess: () =>
          Effect.succeed([
            wrapped("  A new conversation. The model remembers nothing; what was done stays done.", screen.columns)
          ])
      })
  }
}

/** A word there is not. */
export const unknownLines = (word: string, { columns }: Pick<Screen, "columns">): ReadonlyArray<string> => [
  wrapped(
    `  There is no /${word}; /help lists what there is. For a message that is just this, write two slashes.`,
    columns
  )
]
