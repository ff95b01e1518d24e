/**
 * One conversation as assertions look at it: its calls, the final answer, the question, the events of its turns. Everything
 * is computed once and from the file alone; nothing here decides.
 */

import type { Json, JsonObject } from "../../tools/JsonText.ts"
import {
  type Conversation,
  callsOf,
  isBlank,
  type Message,
  type ToolResultBlock,
  type ToolUseBlock,
  type TurnTrace,
  textOf
} from "../conversation/Conversation.ts"
import { resultsOf } from "../conversation/Slots.ts"

/** A call the model proposed. Whether anything came of it is another question. */
export interface ProposedUse extends ToolUseBlock {
  /** Its place among all calls of the conversation, from 0. */
  readonly ordinal: number
  /** The message it is in, from 0. */
  readonly message: number
}

/** What a script said about the conversation: a judge that comes later is told. */
export interface ScriptOutput {
  readonly class: string
  readonly text: string
}

/** A list computed when it is first asked for. */
const once = <A>(make: () => A): (() => A) => {
  let made: { readonly value: A } | undefined
  return () => (made ??= { value: make() }).value
}

const isFilled = (message: Message): boolean => message.role === "assistant" && !isBlank(message)

export class Subject {
  /** The file's name without its ending. */
  readonly name: string
  readonly conversation: Conversation
  /** In suite order, as it comes. */
  readonly outputs: Array<ScriptOutput> = []

  constructor(name: string, conversation: Conversation) {
    this.name = name
    this.conversation = conversation
  }

  /** Every call of every assistant message, in order. */
  readonly calls = once((): ReadonlyArray<ProposedUse> => {
    const found: Array<ProposedUse> = []
    for (const [at, message] of this.conversation.session.entries()) {
      if (message.role !== "assistant") continue
      for (const block of callsOf(message)) found.push({ ...block, ordinal: found.length, message: at })
    }
    return found
  })

  /**
   * The result of a call of the message at `at`: an id names a call of one turn, and models begin anew with each turn.
   * `undefined` where no message right behind the turn answers it.
   */
  readonly resultOf = (at: number, id: string): ToolResultBlock | undefined => {
    const { session } = this.conversation
    for (let next = at + 1; session[next]?.role === "tool"; next++) {
      const found = resultsOf(session[next]).find(({ tool_use_id }) => tool_use_id === id)
      if (found !== undefined) return found
    }
    return undefined
  }

  readonly #lastFilled = once(() => this.conversation.session.findLastIndex(isFilled))

  /** The text of the last filled assistant message; `undefined` where no assistant message is filled. */
  readonly final = once((): string | undefined => {
    const at = this.#lastFilled()
    return at < 0 ? undefined : textOf(this.conversation.session[at]!)
  })

  /** The last user message before the final answer; empty where there is none. */
  readonly question = once((): string => {
    const at = this.#lastFilled()
    const before = at < 0 ? this.conversation.session : this.conversation.session.slice(0, at)
    const user = before.findLast(({ role }) => role === "user")
    return user === undefined ? "" : textOf(user)
  })

  /** Why something that did not happen here may still happen; `undefined` where the conversation is finished. */
  readonly unfinished = once((): string | undefined => {
    const { session } = this.conversation
    const blank = session.findIndex(isBlank)
    if (blank >= 0) return `the conversation is not finished: message ${blank} is blank`
    // What a stopped run leaves: a run of the file would go on here.
    const open = this.calls().find(({ id, message }) => this.resultOf(message, id) === undefined)
    if (open !== undefined)
      return `the conversation is not finished: ${open.name} (${open.id}) of message ${open.message} has no result`
    if (session.at(-1)?.role === "tool") return "the conversation is not finished: nothing follows its last results"
    return session.some(isFilled) ? undefined : "the conversation has no assistant message"
  })

  readonly traces = once(
    (): ReadonlyArray<TurnTrace> =>
      this.conversation.session.flatMap(({ trace }) => (trace === undefined ? [] : [trace]))
  )

  /** As `events`, each with the message it is in. */
  readonly eventsAt = (name: string): ReadonlyArray<{ readonly at: number; readonly attributes: JsonObject }> =>
    this.conversation.session.flatMap(({ trace }, at) =>
      (trace?.events ?? []).filter((event) => event.name === name).map(({ attributes }) => ({ at, attributes }))
    )

  /** The attributes of all events of a name, in order. */
  readonly events = (name: string): ReadonlyArray<JsonObject> =>
    this.traces().flatMap(({ events }) => events.filter((event) => event.name === name).map((one) => one.attributes))

  /** What JSON assertions see: exactly `{meta, session}`. */
  readonly view = once((): Json => {
    const { meta, session } = this.conversation
    return { meta, session } as unknown as Json
  })
}
