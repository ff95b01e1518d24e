/**
 * The messages of a request as a conversation that codecs render. Texts only; what a model of text cannot be shown is refused
 * by name, and so is a conversation whose calls and answers do not belong together.
 */
import * as Result from "effect/Result"
import type { AssistantTurn, ToolAnswer } from "../../engine/codecs/Codec.ts"
import type { MessageCall } from "../../engine/Message.ts"
import { isObject, type Json, type JsonObject, parse } from "../../tools/JsonText.ts"
import { assistant, type Turn } from "../ai/AiConversation.ts"
import { invalid, unsupported } from "./ChatError.ts"
import { listAt, objectAt, onlyKnown, type Read, textAt, toolName, toolNameAt } from "./ChatFields.ts"

export interface ChatConversation {
  /** All system and developer messages; absent where there are none. */
  readonly system: string | undefined
  /** At least one. The last one is a user's, or the answers to all calls of the turn before it. */
  readonly turns: ReadonlyArray<Turn>
}

/** Ids that we made for calls of models that write none; a model is not told them. */
export const madeId = (runId: string, ordinal: number): string =>
  `call_w${runId.replaceAll(/[^A-Za-z0-9]/g, "")}x${ordinal}`

/** Ids that a model may be told: its own, and such as other servers make; of any other form they could be read as markup. */
const isTold = (id: string): boolean => toolName.test(id) && !/^call_w[A-Za-z0-9]+x\d+$/.test(id)

const systemKeys = new Set(["role", "content"])

/** What a message of each role may say. */
const keys = new Map<string, ReadonlySet<string>>([
  ["developer", systemKeys],
  ["system", systemKeys],
  ["user", new Set(["role", "content"])],
  [
    "assistant",
    new Set([
      "role",
      "content",
      "tool_calls",
      // Clients send back what they were given; of these, nothing is ever said here.
      "refusal",
      "annotations",
      "audio",
      "function_call",
      "reasoning_content"
    ])
  ],
  ["tool", new Set(["role", "content", "tool_call_id"])]
])

/** A text, or parts that are texts. */
const contentOf = (value: Json | undefined, at: string): Read<string> => {
  if (value === undefined || typeof value === "string") return textAt(value, at)
  return Result.gen(function* () {
    const parts = yield* listAt(value, at)
    if (parts.length === 0) return yield* Result.fail(invalid(at, `'${at}' is an empty array`, "empty_array"))
    const texts: Array<string> = []
    for (const [index, one] of parts.entries()) {
      const place = `${at}[${index}]`
      const part = yield* objectAt(one, place)
      const type = yield* textAt(part["type"], `${place}.type`)
      if (type !== "text") {
        return yield* Result.fail(
          unsupported(`${place}.type`, `A part of type '${type}' cannot be shown to this model: it reads text only`)
        )
      }
      texts.push(yield* textAt(part["text"], `${place}.text`))
    }
    return texts.join("")
  })
}

const callOf = (value: Json, at: string): Read<MessageCall> =>
  Result.gen(function* () {
    const call = yield* objectAt(value, at)
    const id = yield* textAt(call["id"], `${at}.id`)
    if (id === "") return yield* Result.fail(invalid(`${at}.id`, `'${at}.id' is empty`))
    if (call["type"] !== "function") {
      return yield* Result.fail(unsupported(`${at}.type`, `'${at}.type' has to be 'function'`))
    }
    const about = yield* objectAt(call["function"], `${at}.function`)
    const name = yield* toolNameAt(about["name"], `${at}.function.name`)
    const place = `${at}.function.arguments`
    const text = yield* textAt(about["arguments"], place)
    const args = parse(text === "" ? "{}" : text)
    if (Result.isFailure(args) || !isObject(args.success)) {
      const why = Result.isFailure(args) ? args.failure.reason : "it is no object"
      return yield* Result.fail(invalid(place, `'${place}' is not a JSON object: ${why}`, "invalid_json"))
    }
    return { name, arguments: args.success, id }
  })

const callsOf = (message: JsonObject, at: string): Read<ReadonlyArray<MessageCall>> =>
  Result.gen(function* () {
    const value = message["tool_calls"]
    if (value === undefined || value === null) return []
    const list = yield* listAt(value, `${at}.tool_calls`)
    const calls: Array<MessageCall> = []
    for (const [index, one] of list.entries()) calls.push(yield* callOf(one, `${at}.tool_calls[${index}]`))
    const seen = new Set<string | undefined>()
    const repeated = calls.find(({ id }) => seen.size === seen.add(id).size)
    if (repeated === undefined) return calls
    return yield* Result.fail(invalid(`${at}.tool_calls`, `Two calls of '${at}' have the id '${repeated.id}'`))
  })

const assistantOf = (message: JsonObject, at: string): Read<AssistantTurn> =>
  Result.gen(function* () {
    for (const key of ["audio", "function_call", "refusal"]) {
      if (message[key] === undefined || message[key] === null) continue
      return yield* Result.fail(unsupported(`${at}.${key}`, `'${at}.${key}' cannot be shown to this model`))
    }
    const calls = yield* callsOf(message, at)
    const content = message["content"]
    const silent = content === null || content === undefined
    if (silent && calls.length === 0) {
      return yield* Result.fail(invalid(`${at}.content`, `'${at}' has neither content nor tool_calls`))
    }
    return assistant(silent ? "" : yield* contentOf(content, `${at}.content`), "", calls)
  })

interface Draft {
  readonly system: Array<string>
  readonly turns: Array<Turn>
  /** Calls that wait for their answers, with the ids the client knows them by. */
  waiting: ReadonlyArray<MessageCall>
  answers: Array<ToolAnswer & { readonly known: string }>
}

/** A model gets its own ids back, and none of ours. */
const withOwnIds = ({ calls, ...turn }: AssistantTurn): AssistantTurn =>
  calls === undefined
    ? turn
    : {
        ...turn,
        calls: calls.map(({ arguments: args, id = "", name }) => ({
          name,
          arguments: args,
          ...(isTold(id) ? { id } : {})
        }))
      }

const answered = (draft: Draft): void => {
  const place = new Map(draft.waiting.map(({ id }, index) => [id, index]))
  const answers = draft.answers
    .toSorted((a, b) => place.get(a.known)! - place.get(b.known)!)
    .map(({ known, name, text }): ToolAnswer => ({ name, text, ...(isTold(known) ? { id: known } : {}) }))
  draft.turns.push({ kind: "answers", answers })
  draft.waiting = []
  draft.answers = []
}

const takeAnswer = (draft: Draft, message: JsonObject, at: string): Read<void> =>
  Result.gen(function* () {
    const id = yield* textAt(message["tool_call_id"], `${at}.tool_call_id`)
    const call = draft.waiting.find((one) => one.id === id)
    const param = `${at}.tool_call_id`
    if (call === undefined) {
      const text = "A message of role 'tool' has to follow the message with the 'tool_calls' it answers"
      return yield* Result.fail(invalid(param, `${text}; there is no call '${id}'`))
    }
    if (draft.answers.some(({ known }) => known === id)) {
      return yield* Result.fail(invalid(param, `The call '${id}' is answered twice`))
    }
    draft.answers.push({ known: id, name: call.name, text: yield* contentOf(message["content"], `${at}.content`) })
    if (draft.answers.length === draft.waiting.length) answered(draft)
  })

const unanswered = ({ answers, waiting }: Draft, at: string): Read<void> => {
  const open = waiting.find(({ id }) => !answers.some(({ known }) => known === id))
  return open === undefined
    ? Result.succeed(undefined)
    : Result.fail(invalid(at, `The call '${open.id}' of the assistant is not answered by a message of role 'tool'`))
}

const take = (draft: Draft, value: Json, at: string): Read<void> =>
  Result.gen(function* () {
    const message = yield* objectAt(value, at)
    const role = yield* textAt(message["role"], `${at}.role`)
    const known = keys.get(role)
    if (known === undefined) {
      return yield* Result.fail(
        invalid(`${at}.role`, `'${role}' is no role; there are developer, system, user, assistant, tool`)
      )
    }
    yield* onlyKnown(message, known, at)
    if (role === "tool") return yield* takeAnswer(draft, message, at)
    yield* unanswered(draft, at)
    if (role === "user") {
      draft.turns.push({ kind: "user", text: yield* contentOf(message["content"], `${at}.content`) })
    } else if (role === "assistant") {
      const turn = yield* assistantOf(message, at)
      draft.waiting = turn.calls ?? []
      draft.turns.push({ kind: "assistant", turn: withOwnIds(turn) })
    } else if (draft.turns.length > 0) {
      const text = "Models of this kind are told what the system says before all else: put it first"
      return yield* Result.fail(unsupported(`${at}.role`, text))
    } else draft.system.push(yield* contentOf(message["content"], `${at}.content`))
  })

/** Reads `messages`. */
export const read = (value: Json | undefined, most: number): Read<ChatConversation> =>
  Result.gen(function* () {
    const messages = yield* listAt(value, "messages")
    if (messages.length > most) {
      return yield* Result.fail(
        invalid("messages", `'messages' holds ${messages.length}; at most ${most} are read`, "array_above_max_length")
      )
    }
    const draft: Draft = { system: [], turns: [], waiting: [], answers: [] }
    for (const [index, message] of messages.entries()) yield* take(draft, message, `messages[${index}]`)
    yield* unanswered(draft, "messages")
    const last = draft.turns.at(-1)
    if (last === undefined || last.kind === "assistant") {
      const text = "The last message has to be a user's, or the answer to a call: there is nothing to answer"
      return yield* Result.fail(invalid("messages", text))
    }
    if (last.kind === "user" && last.text.trim() === "") {
      const text = "The last message is empty: there is nothing to answer"
      return yield* Result.fail(invalid(`messages[${messages.length - 1}].content`, text, "invalid_value"))
    }
    return { system: draft.system.length === 0 ? undefined : draft.system.join("\n\n"), turns: draft.turns }
  })
