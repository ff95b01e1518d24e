/**
 * What was said in a turn as parts of a response: text and reasoning as blocks that begin, go on and end, then the calls.
 * White space at the end of a block is left out. Text never holds a mark or a call, since the codec's reader has taken those out.
 */
import type * as Response from "effect/ai/Response"
import type { Visible } from "../../engine/codecs/Codec.ts"
import type { MessageCall } from "../../engine/Message.ts"
import { assistant, keyOf } from "./AiConversation.ts"

interface Block {
  readonly type: "text" | "reasoning"
  readonly id: string
  text: string
}

export class Parts {
  readonly #blocks: Array<Block> = []
  #open: Block | undefined
  /** White space that stands before text of the same kind, or belongs to nobody. */
  #space = ""
  #kind: Block["type"] = "text"

  /** The parts that are new. */
  readonly take = ({ _tag, text }: Visible): ReadonlyArray<Response.StreamPartEncoded> => {
    if (text === "") return []
    const kind = _tag === "Text" ? "text" : "reasoning"
    const out: Array<Response.StreamPartEncoded> = []
    if (this.#kind !== kind) out.push(...this.close())
    this.#kind = kind
    const held = this.#space + text
    const said = held.trimEnd()
    this.#space = held.slice(said.length)
    if (said === "") return out
    if (this.#open === undefined) {
      this.#open = { type: kind, id: `${kind}-${this.#blocks.length}`, text: "" }
      this.#blocks.push(this.#open)
      out.push({ type: `${kind}-start`, id: this.#open.id })
    }
    this.#open.text += said
    return [...out, { type: `${kind}-delta`, id: this.#open.id, delta: said }]
  }

  readonly close = (): ReadonlyArray<Response.StreamPartEncoded> => {
    const open = this.#open
    this.#open = undefined
    this.#space = ""
    return open === undefined ? [] : [{ type: `${open.type}-end`, id: open.id }]
  }

  /** Everything that was said, block by block. */
  get whole(): ReadonlyArray<Response.TextPartEncoded | Response.ReasoningPartEncoded> {
    return this.#blocks.map(({ text, type }) => ({ type, text }))
  }

  get text(): string {
    return this.#of("text")
  }

  /** What a conversation that goes on from here has as this turn. */
  readonly key = (calls: ReadonlyArray<MessageCall>): string =>
    keyOf({ kind: "assistant", turn: assistant(this.text, this.#of("reasoning"), calls) })

  #of(wanted: Block["type"]): string {
    return this.#blocks.map(({ text, type }) => (type === wanted ? text : "")).join("")
  }
}
