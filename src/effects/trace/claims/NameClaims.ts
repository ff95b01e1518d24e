/** Files and addresses that an answer names and the record does not. */
import type { Sentence } from "./AnswerText.ts"
import type { Evidence } from "./Evidence.ts"
import type { Finding } from "./Grounds.ts"
import { nameOf } from "./Names.ts"

export const nameClaims = (sentence: Sentence, evidence: Evidence): ReadonlyArray<Finding> =>
  sentence.words.flatMap((word): ReadonlyArray<Finding> => {
    const name = word.mark ? undefined : nameOf(word.text)
    if (name === undefined) return []
    const [place] = evidence.places(name)
    const reason =
      place === undefined
        ? "neither the task nor a call names it"
        : `${place.place === "task" ? "the task" : `${place.deed?.tool.slice(0, 60)} (${place.deed?.id})`} names it`
    const calls = place?.deed === undefined ? [] : [place.deed.id]
    return [{ kind: "name", text: name.text, at: word.at, sentence, supported: place !== undefined, reason, calls }]
  })
