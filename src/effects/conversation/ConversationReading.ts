/** A text as documents, the documents as a meta and messages, and every refusal as an error with its place. `ConversationText` is the way in. */
import * as Result from "effect/Result"
import type { Json } from "../../tools/JsonText.ts"
import type { Conversation, Message, Meta } from "./Conversation.ts"
import { ConversationError } from "./ConversationError.ts"
import { messageOf } from "./MessageReading.ts"
import { metaOf } from "./MetaReading.ts"
import { placeOf } from "./Place.ts"
import { type Piece, pieces, Refusal, read } from "./YamlDocuments.ts"

/** A conversation and the piece of text each of its documents was read from, the meta's first. */
export interface Read {
  readonly conversation: Conversation
  readonly pieces: ReadonlyArray<Piece>
}

const tried = <A>(
  attempt: () => A,
  errorOf: (refusal: Refusal) => ConversationError
): Result.Result<A, ConversationError> => {
  try {
    return Result.succeed(attempt())
  } catch (error) {
    if (error instanceof Refusal) return Result.fail(errorOf(error))
    throw error
  }
}

/** Reads a piece and gives its value to `decode`. `index` is -1 for the meta. */
const documentOf = <A>(piece: Piece, index: number, path: string, decode: (value: Json) => A) =>
  Result.flatMap(
    tried(
      () => read(piece),
      (refusal) => new ConversationError({ path, place: placeOf(index, refusal.path), reason: refusal.message })
    ),
    ({ lineOf, value }) =>
      tried(
        () => decode(value),
        ({ message, path: at }) =>
          new ConversationError({ path, place: placeOf(index, at, lineOf(at)), reason: message })
      )
  )

export const readText = (whole: string, path: string): Result.Result<Read, ConversationError> =>
  Result.gen(function* () {
    const text = whole.startsWith("\ufeff") ? whole.slice(1) : whole
    const cut = yield* tried(
      () => pieces(text),
      (refusal) => new ConversationError({ path, place: "", reason: refusal.message })
    )
    const [first, ...rest] = cut
    if (first === undefined) {
      const reason = "there is nothing in it: a conversation begins with --- and the meta (model: …)"
      return yield* Result.fail(new ConversationError({ path, place: "", reason }))
    }
    const meta: Meta = yield* documentOf(first, -1, path, metaOf)
    const session: Array<Message> = []
    for (const [index, piece] of rest.entries()) session.push(yield* documentOf(piece, index, path, messageOf))
    return { conversation: { meta, session }, pieces: cut }
  })
