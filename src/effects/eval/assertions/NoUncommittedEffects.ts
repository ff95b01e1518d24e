/**
 * `no_uncommitted_effects`: whatever ran has its answer in the conversation, and of no effect it is unknown whether it is
 * there. Needs the record of a run: without one nothing is known.
 */
import { kind } from "../Kind.ts"
import { fail, pass } from "../Verdict.ts"
import { recordMissing, settledCalls } from "./Settled.ts"

/** Of any other word for an effect, `unknown` first, nobody can say that it is there or that it is not. */
const sure: ReadonlySet<string> = new Set(["none", "present"])

export const noUncommittedEffects = kind("no_uncommitted_effects", {}, (_, subject) => {
  const missing = recordMissing(subject)
  if (missing !== undefined) return fail(missing)
  const settled = settledCalls(subject)
  for (const { effect, executed, id, result, tool } of settled) {
    if (executed && result === undefined)
      return fail(`${tool} (${id}) was executed, and its result is not in the conversation`)
    if (effect !== undefined && !sure.has(effect)) return fail(`the effect of ${tool} (${id}) is ${effect}`)
  }
  const keys = new Set(settled.map(({ id, message }) => `${message} ${id}`))
  const open = subject
    .calls()
    .find(({ id, message }) => subject.resultOf(message, id) === undefined && !keys.has(`${message} ${id}`))
  if (open !== undefined) return fail(`${open.name} (${open.id}) was neither settled nor answered`)
  const unfinished = subject.unfinished()
  return unfinished === undefined ? pass : fail(unfinished)
})
