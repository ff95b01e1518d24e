/** Numbers of an answer that come from nowhere on record. */
import type { Sentence } from "./AnswerText.ts"
import type { Evidence } from "./Evidence.ts"
import type { Finding } from "./Grounds.ts"
import { type Mention, numbersIn } from "./NumberForms.ts"
import type { Source } from "./NumberSources.ts"

const words: Readonly<Record<Source, string>> = {
  task: "the task has it",
  result: "a call's answer has it",
  arguments: "only the arguments of a call have it: the model wrote them",
  count: "it counts what is on record",
  derived: "it follows from two numbers on record, or is their total or mean"
}

/** @param own what the answer itself lists: its items, its names */
export const numberClaims = (
  sentence: Sentence,
  evidence: Evidence,
  own: ReadonlySet<number>
): ReadonlyArray<Finding> =>
  numbersIn(sentence).map((mention: Mention): Finding => {
    const source = evidence.numbers.find(mention)
    const counted = source === undefined && mention.counts && own.has(mention.parts[0]![0]!.value)
    const found = source ?? (counted ? "count" : undefined)
    return {
      kind: "number",
      text: mention.text,
      at: mention.at,
      sentence,
      supported: found !== undefined,
      reason:
        found === undefined ? "nothing in the task, the answers of calls or their arguments gives it" : words[found],
      calls: []
    }
  })
