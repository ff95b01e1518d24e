/**
 * A prompt of `effect/ai` as a conversation that codecs render. What cannot be shown to a text model is refused; what other
 * providers executed on their side is left out. Content stays text, whatever it contains.
 */
import * as AiError from "effect/ai/AiError"
import type * as Prompt from "effect/ai/Prompt"
import { toolModelOutputToText } from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type { AssistantTurn, ToolAnswer } from "../../engine/codecs/Codec.ts"
import type { MessageCall } from "../../engine/Message.ts"
import { canonical, isObject, type Json } from "../../tools/JsonText.ts"

export type Turn =
  | { readonly kind: "user"; readonly text: string }
  | { readonly kind: "assistant"; readonly turn: AssistantTurn }
  | { readonly kind: "answers"; readonly answers: ReadonlyArray<ToolAnswer> }

export interface AiConversation {
  /** All system messages in order; absent where there are none. */
  readonly system: string | undefined
  readonly turns: ReadonlyArray<Turn>
}

/** Two turns with the same key are the same turn. */
export const keyOf = (turn: Turn): string => canonical(turn as unknown as Json)

type Read<A> = Result.Result<A, AiError.AiErrorReason>

const refuse = (description: string): Read<never> => Result.fail(new AiError.InvalidUserInputError({ description }))

export const read = (prompt: Prompt.Prompt): Read<AiConversation> => {
  const system: Array<string> = []
  const turns: Array<Turn> = []
  for (const message of prompt.content) {
    if (message.role === "system") {
      system.push(message.content)
      continue
    }
    const turn = turnOf(message, turns)
    if (Result.isFailure(turn)) return Result.fail(turn.failure)
    if (turn.success === undefined) continue
    // Answers to one turn are one group, however many messages brought them.
    const before = turns.at(-1)
    if (turn.success.kind === "answers" && before?.kind === "answers") {
      turns[turns.length - 1] = { kind: "answers", answers: [...before.answers, ...turn.success.answers] }
    } else turns.push(turn.success)
  }
  const ordered = turns.map((turn, index) => (turn.kind === "answers" ? inCallOrder(turn, turns[index - 1]) : turn))
  return Result.succeed({ system: system.length === 0 ? undefined : system.join("\n\n"), turns: ordered })
}

const turnOf = (
  message: Exclude<Prompt.Message, { readonly role: "system" }>,
  before: ReadonlyArray<Turn>
): Read<Turn | undefined> => {
  switch (message.role) {
    case "user":
      return userTurn(message)
    case "assistant":
      return assistantTurn(message)
    case "tool": {
      const answers = message.content.flatMap((part) => (part.type === "tool-result" ? [answerOf(part)] : []))
      if (answers.length === 0) return Result.succeed(undefined)
      if (before.length === 0) return refuse("the conversation begins with the answer of a tool")
      return Result.succeed({ kind: "answers", answers })
    }
  }
}

const userTurn = ({ content }: Prompt.UserMessage): Read<Turn> => {
  const texts: Array<string> = []
  for (const part of content) {
    if (part.type !== "text") return refuse(`a file of type ${part.mediaType} cannot be shown to a text model`)
    texts.push(part.text)
  }
  return Result.succeed({ kind: "user", text: texts.join("\n") })
}

const assistantTurn = ({ content }: Prompt.AssistantMessage): Read<Turn | undefined> => {
  const calls: Array<MessageCall> = []
  let [text, reasoning] = ["", ""]
  for (const part of content) {
    if (part.type === "text") text += part.text
    else if (part.type === "reasoning") reasoning += part.text
    else if (part.type === "file") return refuse(`a file of type ${part.mediaType} cannot be shown to a text model`)
    else if (part.type === "tool-call" && part.providerExecuted !== true) {
      const params = part.params ?? {}
      if (!isObject(params as Json)) return refuse(`the call ${part.id} of ${part.name} has no object of parameters`)
      calls.push({ name: part.name, arguments: params as MessageCall["arguments"], id: part.id })
    }
  }
  if (text === "" && reasoning === "" && calls.length === 0) return Result.succeed(undefined)
  return Result.succeed({ kind: "assistant", turn: assistant(text, reasoning, calls) })
}

export const assistant = (content: string, reasoning: string, calls: ReadonlyArray<MessageCall>): AssistantTurn => ({
  role: "assistant",
  content,
  ...(reasoning === "" ? {} : { reasoning }),
  ...(calls.length === 0 ? {} : { calls })
})

const answerOf = (part: Prompt.ToolResultPart): ToolAnswer => {
  const { id, modelOutput, name, result } = part
  if (modelOutput !== undefined) return { id, name, text: toolModelOutputToText(modelOutput) }
  return { id, name, text: typeof result === "string" ? result : (JSON.stringify(result) ?? "null") }
}

/** Handlers finish in any order; codecs want answers as the calls stood. */
const inCallOrder = (turn: Extract<Turn, { kind: "answers" }>, before: Turn | undefined): Turn => {
  if (before?.kind !== "assistant" || before.turn.calls === undefined) return turn
  const place = new Map(before.turn.calls.map(({ id }, index) => [id, index]))
  const at = ({ id }: ToolAnswer): number => place.get(id) ?? Infinity
  const answers = turn.answers.toSorted((a, b) => (at(a) === at(b) ? 0 : at(a) - at(b)))
  return { kind: "answers", answers }
}
