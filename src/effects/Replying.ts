/**
 * Answers to what a run has asked: what is remembered of the run, and where the answer goes. To a call that asked it is the
 * call's result; to a question that was said it is the user's next message.
 */
import { type Answer, answerText } from "../tools/ToolCall.ts"
import { type Asked, nowMillis, type RunContext, type Session } from "./RunContext.ts"

/** The run as somebody who answers goes on from it. */
export const askedBy = (run: RunContext): Asked => ({
  runId: run.runId,
  rootRunId: run.effectRunId,
  events: run.trace.length(),
  task: run.task,
  nextTurn: run.budget.turns,
  spent: {
    toolCalls: run.budget.toolCalls,
    repairs: run.budget.repairs,
    wallMillis: run.spent.wallMillis + nowMillis(run.clock) - run.startedAt
  }
})

/**
 * Gives the answer to the call that asked, if one did: its result, which is owed to the model, says so then. False: the
 * question was said, and the answer is a message.
 */
export const answerCall = (session: Session, said: string): boolean => {
  const { owed } = session
  // Whatever was decided about and not executed asked; calls that a question has dropped were never decided about.
  const at = owed?.turn.records.findIndex(
    ({ arguments: args, skipped, tool }) => skipped === true && args !== undefined && tool?.contract.asksUser === true
  )
  if (owed === undefined || at === undefined || at < 0) return false
  const answer: Answer = { ok: true, result: said }
  const record = owed.turn.records[at]!
  const text = answerText(answer)
  // What was owed before is left as it was: the session may be taken back to it.
  session.owed = {
    turn: { ...owed.turn, records: owed.turn.records.with(at, { ...record, answer }) },
    answers: owed.answers.map((one, index) => (index === at ? { ...one, text, truncated: false } : one))
  }
  session.transcript.amend(record.callId, text)
  return true
}
