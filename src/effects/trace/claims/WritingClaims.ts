/** Claims of having written, saved or made something: "I saved report.md", "the file has been created". */

import type { Sentence } from "./AnswerText.ts"
import { ground, writes } from "./Deeds.ts"
import type { Evidence } from "./Evidence.ts"
import { type ActionRules, anyOf, type Finding, namesAmong } from "./Grounds.ts"
import { nameOf } from "./Names.ts"
import { type Statement, wordSet } from "./Statements.ts"

/** These mean a file or a store, whatever they govern. */
const storing = wordSet("saved stored exported overwritten overwrote persisted")
/** These may as well mean the answer itself: they need a thing that is kept somewhere. */
const composing = wordSet(
  "wrote written created generated prepared drafted made produced compiled recorded logged updated edited modified appended added replaced put placed"
)
/** Things that are kept somewhere. */
const things = wordSet(
  "file files backup backups copy report reports document documents artifact artifacts folder directory spreadsheet csv json markdown script page note notes record records log database table dataset config configuration readme changelog ticket issue event entry account repository branch invoice order disk workspace"
)
const pronouns = wordSet("it this that everything they them both all results result summary findings output data")
const here = wordSet("below above here following follows")
/** What is stored *now*, or *has been*, was stored by somebody here. */
const lately = wordSet("now been successfully")
const idle = wordSet("time you us space effort money trouble")
/** Made elsewhere as well: any tool that acts may have. */
const loose = wordSet("created made added updated recorded prepared generated")

const isClaim = ({ after, before, form, sentence, verb }: Statement): boolean => {
  const next = after[0]
  if (verb.lower === "saved" && next !== undefined && idle.has(next.lower)) return false
  const named = namesAmong([...before, ...after]).length > 0
  const kept = anyOf(after, things) || (form !== "active" && anyOf(before, things))
  const stored = storing.has(verb.lower) && anyOf(sentence.words, lately)
  if (form === "passive" && !named && !kept && !stored && !anyOf(before, pronouns)) return false
  if (form === "passive" && verb.lower === "written" && next?.lower === "in" && namesAmong(after).length === 0)
    return false
  if (storing.has(verb.lower) || named) return true
  // What stands in the answer is no file.
  if (anyOf(sentence.words, here) || sentence.words.at(-1)?.text === ":") return false
  return kept
}

const placesOf = ["arguments", "artifact", "result"]

const judge = (statement: Statement, evidence: Evidence): ReadonlyArray<Finding> => {
  if (!isClaim(statement)) return []
  const { after, before, form, sentence, verb } = statement
  const fits = writes(loose.has(verb.lower))
  const stretch = form === "active" ? after : [...before, ...after]
  const names = namesAmong(stretch, true).filter(({ kind }) => kind === "file")
  if (form === "passive" && names.length === 0 && evidence.reported.has(verb.lower)) return []
  const found = (text: string, name?: (typeof names)[number]): Finding => {
    const at = ground(evidence, "that writes", fits, name === undefined ? undefined : { name, places: placesOf })
    return { kind: "writing", text, at: verb.at, sentence, ...at }
  }
  return names.length === 0 ? [found(verb.text)] : names.map((name) => found(`${verb.text} ${name.text}`, name))
}

export const writing: ActionRules = { verbs: new Set([...storing, ...composing]), judge }

const holding = wordSet("contains holds includes")
const finding = wordSet("find see available located waiting")
const places = wordSet("in at under")

/** "You can find it in a.md", "a.md now contains it": true only of a file that was written, or that was looked into. */
export const placed = (sentence: Sentence, evidence: Evidence): ReadonlyArray<Finding> => {
  const { question, words } = sentence
  if (
    question ||
    words.some(({ lower }) => lower === "not" || lower === "no" || lower === "if" || lower.endsWith("n't"))
  )
    return []
  return words.flatMap((word, at): ReadonlyArray<Finding> => {
    const name = word.mark || word.quoted ? undefined : nameOf(word.text)
    if (name?.kind !== "file") return []
    const next = words[at + 1]
    const after = next?.lower === "now" || next?.lower === "also" ? words[at + 2] : next
    const before = words.slice(Math.max(0, at - 9), at)
    const verb = holding.has(after?.lower ?? "")
      ? after!
      : before.findLast(({ lower, quoted }) => !quoted && finding.has(lower))
    if (verb === undefined || (verb !== after && !places.has(words[at - 1]!.lower))) return []
    const found = ground(evidence, "that writes or reads", () => true, { name, places: placesOf })
    return [{ kind: "writing", text: `${verb.text} ${name.text}`, at: Math.min(verb.at, word.at), sentence, ...found }]
  })
}
