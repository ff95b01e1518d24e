/**
 * Qwen2.5 Instruct: JSON calls in `<tool_call>` tags. Its template is append-only and knows no reasoning; reasoning that a
 * model of this markup writes anyway is split off when parsing and left out when rendering.
 */

import { CallScanner } from "./CallScanner.ts"
import * as ChatMl from "./ChatMl.ts"
import type { AssistantTurn, Codec } from "./Codec.ts"
import { renderAppended, type Turns } from "./Conversation.ts"
import { answersTurn, dialect, grammar, systemTurn, writeCalls } from "./TaggedJson.ts"

const defaultSystem = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."

const written = (turn: AssistantTurn) => {
  const calls = turn.calls ?? []
  const out = ChatMl.markup().say(turn.content)
  if (calls.length > 0 && turn.content !== "") out.mark("\n")
  return writeCalls(out, calls).done()
}

const turns: Turns = {
  system: (system, options) => systemTurn(system ?? defaultSystem, options),
  laterSystem: (content) => ChatMl.turn("system", content),
  user: (content) => ChatMl.turn("user", content),
  answers: answersTurn,
  opening: () => ChatMl.opening,
  closing: ChatMl.closing,
  written
}

export const qwen25: Codec = {
  id: "qwen2.5",
  stops: [],
  ends: ChatMl.ends,
  reasoning: ChatMl.thinkTags,
  system: turns.system,
  user: turns.user,
  answers: turns.answers,
  opening: turns.opening,
  closing: turns.closing,
  written,
  render: (messages, options) => renderAppended(turns, messages, options),
  parser: (options) => new CallScanner(dialect, options),
  grammar: (tools) => grammar(tools)
}
