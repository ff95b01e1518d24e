/**
 * A conversation file as text (R-AILLY-4): YAML documents, the first the meta, each other one message. Reading refuses by
 * place; writing gives one text for one conversation. Knows no disk: `ConversationFile` does.
 */
import * as Result from "effect/Result"
import type { Conversation } from "./Conversation.ts"
import type { ConversationError } from "./ConversationError.ts"
import { readText } from "./ConversationReading.ts"
import { documents } from "./ConversationWriting.ts"

/** The conversation a text holds, or the first thing that is wrong with it. `path` only names the file in errors. */
export const parse = (text: string, path = ""): Result.Result<Conversation, ConversationError> =>
  Result.map(readText(text, path), ({ conversation }) => conversation)

/** The text of a conversation. Fails for what has none: a lone surrogate, a number that is not finite, nesting without end. */
export const write = (conversation: Conversation, path = ""): Result.Result<string, ConversationError> =>
  Result.map(documents(conversation, path), (all) => all.join(""))

/** As `write`, and throws the `ConversationError` where there is one. */
export const emit = (conversation: Conversation): string => Result.getOrThrow(write(conversation))

/**
 * The text of a conversation that was read from `before` and went on: documents that say what they said keep their bytes,
 * comments included, and the others are written anew. Where nothing changed it is `before`.
 */
export const update = (
  before: string,
  conversation: Conversation,
  path = ""
): Result.Result<string, ConversationError> =>
  Result.gen(function* () {
    const now = yield* documents(conversation, path)
    const old = readText(before, path)
    // What is no conversation keeps nothing; whoever saves over it means to.
    if (Result.isFailure(old)) return now.join("")
    const then = yield* documents(old.success.conversation, path)
    const kept = old.success.pieces.map(({ text }) => text)
    const parts = matched(then, now).map((from, index) => (from === undefined ? now[index]! : kept[from]!))
    const mark = before.startsWith("\ufeff") ? "\ufeff" : ""
    return mark + joined(parts, kept.at(-1)!)
  })

/** For each of `now` the index of the same text in `then`, in ascending order. Both ends first: a run changes the middle. */
const matched = (then: ReadonlyArray<string>, now: ReadonlyArray<string>): ReadonlyArray<number | undefined> => {
  const found: Array<number | undefined> = now.map(() => undefined)
  const shorter = Math.min(then.length, now.length)
  let head = 0
  while (head < shorter && then[head] === now[head]) found[head] = head++
  let tail = 0
  while (tail < shorter - head && then.at(-1 - tail) === now.at(-1 - tail)) {
    tail += 1
    found[now.length - tail] = then.length - tail
  }
  const end = then.length - tail
  const places = new Map<string, Array<number>>()
  for (let at = end - 1; at >= head; at--) {
    const same = places.get(then[at]!)
    if (same === undefined) places.set(then[at]!, [at])
    else same.push(at)
  }
  for (let index = head, from = head; index < now.length - tail; index++) {
    const open = places.get(now[index]!)
    while (open !== undefined && open.at(-1)! < from) open.pop()
    const at = open?.pop()
    if (at === undefined) continue
    found[index] = at
    from = at + 1
  }
  return found
}

/** A piece that was the last of its text may end without a newline, and one that was the first may begin without `---`. */
const joined = (parts: ReadonlyArray<string>, last: string): string =>
  parts
    .map((part, index) => (index < parts.length - 1 && part === last && !part.endsWith("\n") ? `${part}\n` : part))
    .join("")
