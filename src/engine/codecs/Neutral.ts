/**
 * Content that spells a mark of the family. Where the mark is a token of the vocabulary, the tokeniser keeps content from
 * becoming it. Where it is plain text there, content would be the same tokens as our own mark; so it gets a space behind
 * its first character, which model and reader can see.
 */
import type { Message } from "../Message.ts"
import type { Segment } from "../Prompt.ts"
import type { Codec, RenderOptions } from "./Codec.ts"

const sample: ReadonlyArray<Message> = [
  { role: "system", content: "s" },
  { role: "user", content: "u" },
  { role: "assistant", content: "", reasoning: "r", calls: [{ name: "t", arguments: { a: "b" }, id: "callid000" }] },
  { role: "tool", name: "t", content: "a", id: "callid000" },
  { role: "assistant", content: "f" }
]

const options: RenderOptions = {
  tools: [{ name: "t", description: "d", parameters: { type: "object", properties: { a: { type: "string" } } } }],
  generationPrompt: true
}

/** Tags that stand only inside calls or instructions: content cannot open or close a turn or an answer with them. */
const inCalls = /=|IMPORTANT|^<\/?(?:function|parameter|args)\b/

/** The marks of a family: what looks like a tag in the scaffolding of a conversation with everything in it. */
export const marksOf = (codec: Codec): ReadonlyArray<string> => {
  const found = new Set<string>()
  const [system, user, call, answer] = sample as [Message, Message, Extract<Message, { role: "assistant" }>, Message]
  const segments = [
    ...codec.render(sample, options),
    ...codec.system(system.content, options),
    ...codec.user(user.content),
    ...codec.written(call, options),
    ...codec.answers([{ name: "t", text: answer.content, id: "callid000" }]),
    ...codec.opening(options),
    ...codec.closing
  ]
  for (const { kind, text } of segments) {
    if (kind === "control") for (const [mark] of text.matchAll(/<[^<>\s"]{2,}>|\[\/?[A-Z_]{3,}\]/g)) found.add(mark)
  }
  return [...found].filter((mark) => !inCalls.test(mark))
}

const neutral = (text: string, plain: ReadonlyArray<string>): string =>
  plain.reduce((out, mark) => (out.includes(mark) ? out.replaceAll(mark, `${mark[0]} ${mark.slice(1)}`) : out), text)

/** The same codec for a vocabulary in which the marks `plain` are text. Reading is unchanged. */
export const neutralising = (codec: Codec, plain: ReadonlyArray<string>): Codec => {
  if (plain.length === 0) return codec
  const guard = (segments: ReadonlyArray<Segment>): ReadonlyArray<Segment> =>
    segments.map((segment) =>
      segment.kind === "text" ? { kind: "text", text: neutral(segment.text, plain) } : segment
    )
  return {
    ...codec,
    system: (system, given) => guard(codec.system(system, given)),
    user: (content) => guard(codec.user(content)),
    answers: (answers) => guard(codec.answers(answers)),
    written: (turn, given) => guard(codec.written(turn, given)),
    render: (messages, given) => guard(codec.render(messages, given))
  }
}
