/**
 * The exact history of one session: what entered the model's context, in order, with its token span, malformed turns and
 * feedback included; and, without a span, answers that were recorded but not yet put before the model. What a compaction
 * removed from the context stays on record beside it.
 */
import type { Action, RenderOptions } from "../engine/codecs/Codec.ts"
import type { Message, MessageCall } from "../engine/Message.ts"
import type { Span } from "../engine/Prompt.ts"

export type Entry =
  /** `implicit`: nobody wrote one, the family's default is in the context. */
  | { readonly kind: "system"; readonly content: string; readonly implicit: boolean; readonly span: Span }
  /** `reply`: to a question that was said, so part of the exchange before. */
  | { readonly kind: "user"; readonly content: string; readonly reply?: true; readonly span: Span }
  | {
      readonly kind: "assistant"
      readonly turn: "final" | "calls" | "malformed" | "partial" | "question"
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
  /** Stands for exchanges that a compaction removed: so many so far. */
  | { readonly kind: "marker"; readonly removed: number; readonly content: string; readonly span: Span | undefined }

/** An entry, and whether its text is in the context no longer. */
export type Recorded = Entry & { readonly dropped?: true }

/** A place in a transcript, to come back to. */
export interface Mark {
  readonly entries: ReadonlyArray<Entry>
  readonly dropped: ReadonlyArray<Entry>
  readonly aside: ReadonlyArray<Entry>
}

/** What a turn says behind its calls, if that is more than spaces. */
export const proseAfter = (action: Action): { readonly contentAfter?: string } =>
  action._tag === "ToolCalls" && action.textAfter.trim() !== "" ? { contentAfter: action.textAfter } : {}

const isOpen = (entry: Entry): boolean => entry.span === undefined

/** The same message, whether or not its text has entered the context since, and an answer whatever it was amended to. */
const sameEntry = (now: Entry, then: Entry): boolean => {
  if (now === then) return true
  if (!isOpen(then)) return false
  if (now.kind === "tool" && then.kind === "tool") return now.callId === then.callId
  return now.kind === "feedback" && then.kind === "feedback" && now.content === then.content
}

/**
 * A list that grows at its end. Entries without a span are replaced when their text enters the context; only `goBack` and
 * `compact` take entries away.
 */
export class Transcript {
  #entries: Array<Entry> = []
  #dropped: ReadonlyArray<Entry> = []
  #aside: ReadonlyArray<Entry> = []
  /** How the opening of a turn was rendered, by the turn. */
  readonly #options = new WeakMap<Entry, RenderOptions>()

  /** What is in the context, and answers that wait for their place in it. */
  get entries(): ReadonlyArray<Entry> {
    return this.#entries
  }

  /** What a compaction keeps and has not put back yet: it comes behind `entries`. */
  get aside(): ReadonlyArray<Entry> {
    return this.#aside
  }

  /** Everything that was ever said, what a compaction dropped included. */
  get all(): ReadonlyArray<Recorded> {
    if (this.#dropped.length === 0 && this.#aside.length === 0) return this.#entries
    const dropped = this.#dropped.map((entry): Recorded => ({ ...entry, dropped: true }))
    const prefix = this.#entries[0]?.kind === "system" ? 1 : 0
    return [...this.#entries.slice(0, prefix), ...dropped, ...this.#entries.slice(prefix), ...this.#aside]
  }

  /** The present place. */
  readonly mark = (): Mark => ({ entries: [...this.#entries], dropped: this.#dropped, aside: this.#aside })

  /** Does what was said up to this place still stand at the beginning, in the same tokens? */
  readonly reaches = (mark: Mark): boolean =>
    mark.entries.length <= this.#entries.length &&
    mark.entries.every((entry, at) => sameEntry(this.#entries[at]!, entry))

  readonly goBack = (mark: Mark): void => {
    this.#entries = [...mark.entries]
    this.#dropped = mark.dropped
    this.#aside = mark.aside
  }

  /** Takes out `dropped` entries at `from` and sets aside those behind, after a marker; all of them leave the context. */
  readonly compact = (from: number, dropped: number, marker: Entry): void => {
    const gone = this.#entries.slice(from, from + dropped)
    this.#dropped = [...this.#dropped, ...gone.filter(({ kind }) => kind !== "marker")]
    this.#aside = [marker, ...this.#entries.slice(from + dropped)]
    this.#entries = this.#entries.slice(0, from)
  }

  /** Takes the first `count` of those set aside; whoever evaluates them appends them again. */
  readonly takeAside = (count: number): void => {
    this.#aside = this.#aside.slice(count)
  }

  /** @param options those of the opening, for a turn of the assistant: it is rendered with the same if it is put back */
  readonly append = (entry: Entry, options?: RenderOptions): void => {
    this.#entries.push(entry)
    if (options !== undefined) this.#options.set(entry, options)
  }

  readonly optionsOf = (entry: Entry): RenderOptions | undefined => this.#options.get(entry)

  /** Gives the open answers at the end of the transcript the span they were evaluated in. */
  readonly commitOpen = (span: Span): void => {
    for (let at = this.#entries.length - 1; at >= 0; at--) {
      const entry = this.#entries[at]!
      if ((entry.kind !== "tool" && entry.kind !== "feedback") || entry.span !== undefined) return
      this.#entries[at] = { ...entry, span }
    }
  }

  /** Another text for an answer that is not in the context yet. */
  readonly amend = (callId: string, content: string): void => {
    this.#entries = this.#entries.map((entry) =>
      entry.kind === "tool" && entry.callId === callId && isOpen(entry) ? { ...entry, content } : entry
    )
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
    case "marker":
      return entry.span === undefined ? [] : [{ role: "user", content: entry.content }]
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
