/** Claims of having read, searched or looked something up; also "according to a.csv". */
import type { Sentence } from "./AnswerText.ts"
import { ground, reads } from "./Deeds.ts"
import type { Evidence } from "./Evidence.ts"
import { type ActionRules, anyOf, type Finding, namesAmong } from "./Grounds.ts"
import { nameOf } from "./Names.ts"
import { type Statement, wordSet } from "./Statements.ts"

/** These go through many things: where a name stands in their results, it was looked at. */
const searching = wordSet(
  "searched scanned browsed queried googled looked checked found listed reviewed examined inspected analyzed analysed verified"
)
const opening = wordSet("read opened fetched downloaded loaded retrieved consulted visited accessed parsed crawled")
/** These mean thinking as well, and need a thing that can be read. */
const weak = wordSet(
  "checked found listed reviewed examined inspected analyzed analysed verified looked loaded retrieved accessed parsed consulted visited"
)
const things = wordSet(
  "file files document documents folder directory web website site page pages internet online database log logs record records calendar inbox email emails repository codebase code source sources dataset documentation docs manual article articles wiki api workspace report reports spreadsheet csv archive ledger books contents content catalog catalogue"
)
const pronouns = wordSet("it this that them both all everything")
const web = wordSet("web internet online website websites google wikipedia site sites")
/** What stands in the task is read without a call. */
const given = wordSet("question message request instructions instruction prompt task input text description")
const idle = wordSet("forward")

const isClaim = ({ after, before, form, sentence, verb }: Statement): boolean => {
  const { lower } = verb
  const next = after[0]?.lower ?? ""
  if (anyOf(after, given) || idle.has(next) || (lower === "found" && next === "that")) return false
  const up = lower === "looked" && (next === "up" || after[1]?.lower === "up" || after[2]?.lower === "up")
  if (lower === "looked" && !up && !/^(?:through|into|at|for|in|on)$/.test(next)) return false
  const named = namesAmong([...before, ...after]).length > 0
  const readable = anyOf(after, things) || (form !== "active" && anyOf(before, things))
  if (form === "passive") return named || anyOf(before, things)
  if (up) return true
  if (!weak.has(lower)) return lower !== "read" || named || readable || anyOf(after, pronouns)
  return (named || readable) && !(lower === "found" && anyOf(sentence.words, wordSet("below above")))
}

const judge = (statement: Statement, evidence: Evidence): ReadonlyArray<Finding> => {
  if (!isClaim(statement)) return []
  const { after, before, form, sentence, verb } = statement
  const fits = reads(anyOf(after, web))
  const stretch = form === "active" ? after : [...before, ...after]
  const names = namesAmong(stretch).filter(({ kind }) => kind !== "mail")
  const found = (text: string, name?: (typeof names)[number]): Finding => {
    const places = searching.has(verb.lower) || name?.kind === "url" ? ["arguments", "result"] : ["arguments"]
    const at = ground(
      evidence,
      anyOf(after, web) ? "that reaches the web" : "that reads",
      fits,
      name === undefined ? undefined : { name, places }
    )
    return { kind: "reading", text, at: verb.at, sentence, ...at }
  }
  return names.length === 0 ? [found(verb.text)] : names.map((name) => found(`${verb.text} ${name.text}`, name))
}

export const reading: ActionRules = { verbs: new Set([...searching, ...opening]), judge }

/** "According to a.csv", "based on https://…": whoever says so has looked. */
export const accordingTo = (sentence: Sentence, evidence: Evidence): ReadonlyArray<Finding> => {
  if (sentence.question) return []
  const { words } = sentence
  return words.flatMap(({ at, lower, quoted }, place) => {
    const next = words[place + 1]?.lower
    if (quoted || !((lower === "according" && next === "to") || (lower === "based" && next === "on"))) return []
    const named = words.slice(place + 2, place + 7).find((word) => !word.mark && nameOf(word.text) !== undefined)
    const name = named === undefined ? undefined : nameOf(named.text)
    if (name === undefined || name.kind === "mail") return []
    const found = ground(evidence, "that reads", reads(false), { name, places: ["arguments", "result"] })
    return [{ kind: "reading" as const, text: `${lower} ${next} ${name.text}`, at, sentence, ...found }]
  })
}
