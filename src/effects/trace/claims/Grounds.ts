/** What the rules of all kinds of claims share: the shape of a finding, and the names in a stretch of words. */
import type { Sentence, Word } from "./AnswerText.ts"
import type { ClaimKind } from "./Claim.ts"
import type { Evidence } from "./Evidence.ts"
import { type Name, nameOf } from "./Names.ts"
import { type Statement, wordSet } from "./Statements.ts"

/** A claim before it is known whether the record is whole. */
export interface Finding {
  readonly kind: ClaimKind
  readonly text: string
  readonly at: number
  readonly sentence: Sentence
  readonly supported: boolean
  readonly reason: string
  readonly calls: ReadonlyArray<string>
}

/** Judges the statements whose verbs are its own. Nothing, where a verb is no claim of its kind after all. */
export interface ActionRules {
  readonly verbs: ReadonlySet<string>
  readonly judge: (statement: Statement, evidence: Evidence) => ReadonlyArray<Finding>
}

const sources = wordSet(
  "from of using on about between with for against comparing comparison versus vs based like than"
)
const linking = wordSet("and or , the a an both file files & vs")

/** Names among words; `targets` leaves out those that something is made *from*. */
export const namesAmong = (words: ReadonlyArray<Word>, targets = false): ReadonlyArray<Name> => {
  const found: Array<Name> = []
  let source = false
  for (const word of words) {
    const name = word.mark ? undefined : nameOf(word.text)
    if (name !== undefined) {
      if (!targets || !source) found.push(name)
    } else if (sources.has(word.lower)) source = true
    else if (!linking.has(word.lower) && !/^["'“”’()]$/.test(word.text)) source = false
  }
  return found
}

/** Does one of these words stand among the words? */
export const anyOf = (words: ReadonlyArray<Word>, set: ReadonlySet<string>): boolean =>
  words.some(({ lower, mark }) => !mark && set.has(lower))
