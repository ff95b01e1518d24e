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
  const unfinished = subject.unfinished()
  if (unfinished !== undefined) return fail(unfinished)
  const answered = new Set(subject.results().map(({ tool_use_id }) => tool_use_id))
  for (const { effect, executed, id, tool } of settledCalls(subject)) {
    if (executed && !answered.has(id))
      return fail(`${tool} (${id}) was executed, and its result is not in the conversation`)
    if (effect !== undefined && !sure.has(effect)) return fail(`the effect of ${tool} (${id}) is ${effect}`)
  }
  const settled = new Set(settledCalls(subject).map(({ id }) => id))
  const open = subject.calls().find(({ id }) => !answered.has(id) && !settled.has(id))
  return open === undefined ? pass : fail(`${open.name} (${open.id}) was neither settled nor answered`)
})
