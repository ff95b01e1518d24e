/**
 * A log in the language of `codecs/OpenAiChat` as messages and tools, the way requests hold them. Only control segments begin
 * a message, so content cannot. Calls that could not be read are told as text, and what was said to them as a user's words:
 * servers do read the arguments of earlier calls.
 */
import * as Result from "effect/Result"
import type { JsonObject } from "../tools/JsonText.ts"
import { type Frame, frames, mark, readCall } from "./codecs/OpenAiChat.ts"
import { visible } from "./OpenAiGuard.ts"
import type { Segment } from "./Prompt.ts"

export type ChatMessage =
  | { readonly role: "system" | "user"; readonly content: string }
  | { readonly role: "assistant"; readonly content: string | null; readonly tool_calls?: ReadonlyArray<ChatCall> }
  | { readonly role: "tool"; readonly tool_call_id: string; readonly content: string }

export interface ChatCall {
  readonly id: string
  readonly type: "function"
  readonly function: { readonly name: string; readonly arguments: string }
}

export interface ChatTool {
  readonly type: "function"
  readonly function: JsonObject
}

export interface Told {
  readonly messages: ReadonlyArray<ChatMessage>
  readonly tools: ReadonlyArray<ChatTool>
  /** What the last opening asks for, if it asks. */
  readonly thinking: boolean | undefined
}

/** Segments with content taken apart where it spells a token, and where it holds the mark of a frame. */
const joined = (segments: ReadonlyArray<Segment>): string =>
  segments.map(({ kind, text }) => (kind === "control" ? text : visible(text.replaceAll(mark, "\ufffd")))).join("")

const toolsIn = ({ about }: Frame): ReadonlyArray<ChatTool> =>
  (Array.isArray(about["tools"]) ? (about["tools"] as ReadonlyArray<JsonObject>) : []).map((told) => ({
    type: "function",
    function: told
  }))

/**
 * What the model said itself, which somebody may have made it say: a spelled token was text when it was written, and is not to
 * be one when it is read again. Reasoning that a server left in the content stays as it is: templates cut it out by its tags.
 */
const repeated = (body: string): string =>
  body
    .split(/(<\/?think>)/)
    .map((part, at) => (at % 2 === 1 ? part : visible(part)))
    .join("")

/** Arguments of a call as they are told again. A space that takes a token apart is in a string there. */
const argumentsIn = ({ body }: Frame): string => visible(body)

/** The arguments as a text for people, where they cannot be told as a call. */
const asText = ({ about, body }: Frame): string => `[call of ${JSON.stringify(about["name"] ?? "")}: ${visible(body)}]`

/** A turn and the names by which its calls are answered. */
const turnOf = (
  parts: ReadonlyArray<Frame>,
  place: number
): { readonly message: ChatMessage; readonly ids: Array<string> } => {
  const content = parts.flatMap(({ body, kind }) =>
    kind === "" || kind === "text" || kind === "assistant" ? [repeated(body)] : []
  )
  const calls = parts.filter(({ kind }) => kind === "call")
  if (calls.some((call) => Result.isFailure(readCall(call)))) {
    return { ids: [], message: { role: "assistant", content: [...content, ...calls.map(asText)].join("") } }
  }
  const taken = new Set<string>()
  const told = calls.map((call, at): ChatCall => {
    const given = typeof call.about["id"] === "string" ? call.about["id"] : ""
    const id = given === "" || taken.has(given) ? `call_${place}_${at}` : given
    taken.add(id)
    return { id, type: "function", function: { name: String(call.about["name"]), arguments: argumentsIn(call) } }
  })
  const said = content.join("")
  const message: ChatMessage =
    told.length === 0
      ? { role: "assistant", content: said }
      : { role: "assistant", content: said === "" ? null : said, tool_calls: told }
  return { ids: told.map(({ id }) => id), message }
}

/** The messages of a log. An assistant's that only was opened is left out: the server opens it itself. */
export const messagesOf = (segments: ReadonlyArray<Segment>): Told => {
  const messages: Array<ChatMessage> = []
  const all = frames(joined(segments))
  let tools: ReadonlyArray<ChatTool> = []
  let thinking: boolean | undefined
  let open: ReadonlyArray<string> = []
  for (let at = 0; at < all.length; at++) {
    const one = all[at]!
    if (one.kind === "system") {
      if (Array.isArray(one.about["tools"])) tools = toolsIn(one)
      if (one.about["silent"] !== true) messages.push({ role: "system", content: one.body })
    } else if (one.kind === "user") messages.push({ role: "user", content: one.body })
    else if (one.kind === "tool") {
      // In call order, whatever they are called: names can be missing or twice the same.
      const [id, ...rest] = open
      open = rest
      messages.push(
        id === undefined ? { role: "user", content: one.body } : { role: "tool", tool_call_id: id, content: one.body }
      )
    } else if (one.kind === "assistant") {
      let last = at + 1
      while (last < all.length && ["", "text", "reasoning", "call"].includes(all[last]!.kind)) last++
      const { ids, message } = turnOf(all.slice(at, last), messages.length)
      thinking = typeof one.about["thinking"] === "boolean" ? one.about["thinking"] : undefined
      at = last - 1
      open = ids
      if (last < all.length || message.content !== "") messages.push(message)
    }
  }
  return { messages, tools, thinking }
}
