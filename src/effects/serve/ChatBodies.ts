/** The bodies of answers in the form of OpenAI's API: one completion, or the chunks of a stream. */
import type { MessageCall } from "../../engine/Message.ts"
import type { Reply, Usage } from "./ChatReply.ts"

/** What all bodies of one answer have in common. */
export interface About {
  readonly id: string
  /** Seconds since 1970. */
  readonly created: number
  readonly model: string
}

const callsOf = (calls: ReadonlyArray<MessageCall>) =>
  calls.map(({ arguments: args, id = "", name }) => ({
    id,
    type: "function",
    function: { name, arguments: JSON.stringify(args) }
  }))

export const completion = ({ created, id, model }: About, { calls, content, finish, stopped, usage }: Reply) => ({
  id,
  object: "chat.completion",
  created,
  model,
  choices: [
    {
      index: 0,
      message: {
        role: "assistant",
        content,
        refusal: null,
        ...(calls.length === 0 ? {} : { tool_calls: callsOf(calls) })
      },
      logprobs: null,
      finish_reason: finish
    }
  ],
  usage,
  ...(stopped === undefined ? {} : { writ: stopped })
})

interface Delta {
  readonly role?: "assistant"
  readonly content?: string | null
  readonly tool_calls?: ReadonlyArray<object>
}

/** Chunks of one answer. `usage`: every chunk has the field, and it is `null` in all but the last. */
export class Chunks {
  readonly #about: About
  readonly #usage: boolean

  constructor(about: About, usage: boolean) {
    this.#about = about
    this.#usage = usage
  }

  #chunk(choices: ReadonlyArray<object>, more: object = {}): object {
    const { created, id, model } = this.#about
    return {
      id,
      object: "chat.completion.chunk",
      created,
      model,
      choices,
      ...(this.#usage ? { usage: null } : {}),
      ...more
    }
  }

  #delta(delta: Delta, finish: Reply["finish"] | null = null, more: object = {}): object {
    return this.#chunk([{ index: 0, delta, logprobs: null, finish_reason: finish }], more)
  }

  /** Comes first, before anything is known of the answer. */
  readonly begun = (): object => this.#delta({ role: "assistant", content: "" })

  readonly text = (content: string): object => this.#delta({ content })

  /** Name and arguments of each call. */
  readonly calls = (calls: ReadonlyArray<MessageCall>): ReadonlyArray<object> =>
    callsOf(calls).flatMap(({ function: { arguments: args, name }, id, type }, index) => [
      this.#delta({ tool_calls: [{ index, id, type, function: { name, arguments: "" } }] }),
      this.#delta({ tool_calls: [{ index, function: { arguments: args } }] })
    ])

  readonly finished = ({ finish, stopped }: Pick<Reply, "finish" | "stopped">): object =>
    this.#delta({}, finish, stopped === undefined ? {} : { writ: stopped })

  readonly used = (usage: Usage): object => this.#chunk([], { usage })
}

/** One event of a stream. */
export const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`

export const end = "data: [DONE]\n\n"

/** Says nothing, and that somebody is still there. */
export const keepAlive = ": still there\n\n"
