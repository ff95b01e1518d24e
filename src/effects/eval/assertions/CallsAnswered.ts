/** `calls_answered`: every call has exactly one result, in a tool message right after its turn, and no result is without a call. */
import { blocksOf, callsOf, type Message } from "../../conversation/Conversation.ts"
import { kind } from "../Kind.ts"
import type { Subject } from "../Subject.ts"
import { fail, pass } from "../Verdict.ts"

const resultIds = (message: Message): ReadonlyArray<string> =>
  blocksOf(message).flatMap((block) => (block.type === "tool_result" ? [block.tool_use_id] : []))

const problem = (session: ReadonlyArray<Message>): string | undefined => {
  /** Calls of the turn that is being answered. */
  let open = new Map<string, number>()
  const left = () => [...open].find(([, answers]) => answers === 0)?.[0]
  for (const [at, message] of session.entries()) {
    const ids = resultIds(message)
    for (const id of ids) {
      const answers = open.get(id)
      if (answers === undefined) return `message ${at} answers ${id}, which is no call of the turn before it`
      if (answers > 0) return `${id} is answered more than once (again in message ${at})`
      open.set(id, answers + 1)
    }
    if (message.role === "tool" && ids.length > 0) continue
    const unanswered = left()
    if (unanswered !== undefined) return `${unanswered} has no result before message ${at}`
    const calls = message.role === "assistant" ? callsOf(message) : []
    open = new Map(calls.map(({ id }) => [id, 0]))
    if (open.size < calls.length) return `two calls of message ${at} have the same id`
  }
  const unanswered = left()
  return unanswered === undefined ? undefined : `${unanswered} has no result`
}

export const callsAnswered = kind("calls_answered", {}, (_, subject: Subject) => {
  const found = problem(subject.conversation.session) ?? subject.unfinished()
  return found === undefined ? pass : fail(found)
})
