/**
 * The exact history of one session: what entered the model's context, in order, with its token span, malformed turns and
 * feedback included; and, without a span, answers that were recorded but not yet put before the model.
 */
import type { Action } from "../engine/codecs/Codec.ts"
import type { Message, MessageCall } from "../engine/Message.ts"
import type { Span } from "../engine/Prompt.ts"

export type Entry =
  /** `implicit`: nobody wrote one, the family's default is in the context. */
  | { readonly kind: "system"; readonly content: string; readonly implicit: boolean; readonly span: Span }
  | { readonly kind: "user"; readonly content: string; readonly span: Span }
  | {
      readonly kind: "assistant"
      readonly turn: "final" | "calls" | "malformed" | "partial"
      /** As generated, markup included. */
      readonly raw: string
      readonly content: string
      /** Prose behind the last call. */
      readonly contentAfter?: string
      readonly reasoning?: string
      readonly calls: ReadonlyArray<MessageCall>
      readonly span: Span
    }
  | {
      readonly kind: "tool"
      readonly callId: string
      readonly name: string
      /** The answer as the model reads it. */
      readonly content: string
      readonly span: Span | undefined
    }
  | { readonly kind: "feedback"; readonly code: string; readonly content: string; readonly span: Span | undefined }

/** What a turn says behind its calls, if that is more than spaces. */
export const proseAfter = (action: Action): { readonly contentAfter?: string } =>
  action._tag === "ToolCalls" && action.textAfter.trim() !== "" ? { contentAfter: action.textAfter } : {}

/** An append-only list. Entries without a span are replaced when their text enters the context. */
export class Transcript {
  readonly #entries: Array<Entry> = []

  get entries(): ReadonlyArray<Entry> {
    return this.#entries
  }

  readonly append = (entry: Entry): void => void this.#entries.push(entry)

  /** Gives the open answers at the end of the transcript the span they were evaluated in. */
  readonly commitOpen = (span: Span): void => {
    for (let at = this.#entries.length - 1; at >= 0; at--) {
      const entry = this.#entries[at]!
      if ((entry.kind !== "tool" && entry.kind !== "feedback") || entry.span !== undefined) return
      this.#entries[at] = { ...entry, span }
    }
  }

  /** The conversation a codec renders: committed entries only. */
  readonly messages = (): ReadonlyArray<Message> => this.#entries.flatMap(messageOf)
}

/** An entry as a message; none for a family's default system text and for answers not yet in the context. */
const messageOf = (entry: Entry): ReadonlyArray<Message> => {
  switch (entry.kind) {
    case "system":
      return entry.implicit ? [] : [{ role: "system", content: entry.content }]
    case "user":
      return [{ role: "user", content: entry.content }]
    case "assistant":
      return [
        {
          role: "assistant",
          content: entry.turn === "calls" ? entry.content : entry.raw,
          ...(entry.reasoning === undefined ? {} : { reasoning: entry.reasoning }),
          ...(entry.calls.length === 0 ? {} : { calls: entry.calls })
        }
      ]
    case "tool":
      return entry.span === undefined ? [] : [{ role: "tool", name: entry.name, content: entry.content }]
    case "feedback":
      return entry.span === undefined ? [] : [{ role: "tool", name: "", content: entry.content }]
  }
}
