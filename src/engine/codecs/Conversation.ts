/** Walks a conversation for codecs whose template is append-only: then the whole is the sum of what each turn adds. */
import type { Message } from "../Message.ts"
import type { Segment } from "../Prompt.ts"
import type { Codec, RenderOptions, ToolAnswer } from "./Codec.ts"

export type Turns = Pick<Codec, "answers" | "closing" | "opening" | "system" | "user" | "written"> & {
  /** A system message after the first place. */
  readonly laterSystem: (content: string) => ReadonlyArray<Segment>
}

/** A run of tool messages is one group of answers. */
export type Group =
  | { readonly kind: "message"; readonly message: Exclude<Message, { readonly role: "tool" }> }
  | { readonly kind: "answers"; readonly answers: ReadonlyArray<ToolAnswer> }

export const grouped = (messages: ReadonlyArray<Message>): ReadonlyArray<Group> => {
  const out: Array<Group> = []
  let answers: Array<ToolAnswer> | undefined
  for (const message of messages) {
    if (message.role !== "tool") {
      answers = undefined
      out.push({ kind: "message", message })
      continue
    }
    const answer = {
      name: message.name,
      text: message.content,
      ...(message.id === undefined ? {} : { id: message.id })
    }
    if (answers === undefined) out.push({ kind: "answers", answers: (answers = [answer]) })
    else answers.push(answer)
  }
  return out
}

/** The prompt of an append-only template. */
export const renderAppended = (
  turns: Turns,
  messages: ReadonlyArray<Message>,
  options: RenderOptions
): ReadonlyArray<Segment> => {
  const lead = messages[0]?.role === "system" ? messages[0].content : undefined
  const out: Array<Segment> = [...turns.system(lead, options)]
  for (const group of grouped(lead === undefined ? messages : messages.slice(1))) {
    if (group.kind === "answers") out.push(...turns.answers(group.answers))
    else if (group.message.role === "user") out.push(...turns.user(group.message.content))
    else if (group.message.role === "system") out.push(...turns.laterSystem(group.message.content))
    else out.push(...turns.opening(options), ...turns.written(group.message, options), ...turns.closing)
  }
  if (options.generationPrompt === true) out.push(...turns.opening(options))
  return out
}
