/** Claims of having done something to the world: sent, paid, booked, deleted, deployed. */
import { does, type Family, ground } from "./Deeds.ts"
import type { Evidence } from "./Evidence.ts"
import { type ActionRules, anyOf, type Finding, namesAmong } from "./Grounds.ts"
import { type Statement, wordSet } from "./Statements.ts"

/** The verbs, by what a tool that does this may be called. Without a family any tool that acts will do. */
const verbsOf: Readonly<Record<Exclude<Family, "compute" | "web"> | "any", ReadonlySet<string>>> = {
  send: wordSet(
    "sent emailed e-mailed mailed messaged notified posted published shared forwarded submitted uploaded texted tweeted delivered informed"
  ),
  pay: wordSet("paid transferred refunded charged purchased bought ordered wired"),
  book: wordSet("booked reserved scheduled rescheduled"),
  delete: wordSet("deleted removed renamed moved erased cancelled canceled archived revoked"),
  any: wordSet(
    "deployed issued invoiced installed restarted merged committed pushed registered subscribed invited approved activated deactivated enabled disabled triggered"
  )
}

/** These mean other things as well, and need a thing that is acted on. */
const weak = wordSet(
  "posted published shared submitted delivered charged moved removed renamed committed pushed approved issued enabled disabled informed transferred merged registered triggered activated deactivated archived"
)
const things = wordSet(
  "report reports result results summary document documents minutes link email emails e-mail mail message messages invoice invoices payment order orders request requests notification reminder ticket tickets issue meeting appointment reservation booking flight hotel room table transfer refund money funds amount post comment event invitation subscription account file files folder directory record records branch change changes pull deployment service server release application form user users customer team channel slack calendar backup"
)
const pronouns = wordSet("it this that everything they them both all one ones")

/** What is ordered so is sorted. */
const sorting = wordSet("by list rows items alphabetically numbers results values entries")

const familyOf = (verb: string): Family | undefined =>
  (["send", "pay", "book", "delete"] as const).find((family) => verbsOf[family].has(verb))

const isClaim = ({ after, before, form, verb }: Statement): boolean => {
  if (verb.lower === "ordered" && anyOf(after, sorting)) return false
  const mails = namesAmong([...before, ...after]).length > 0
  if (form === "passive") return anyOf(before, things) || anyOf(before, pronouns) || namesAmong(before).length > 0
  return !weak.has(verb.lower) || mails || anyOf(after, things) || (form === "fragment" && anyOf(before, things))
}

const judge = (statement: Statement, evidence: Evidence): ReadonlyArray<Finding> => {
  if (!isClaim(statement)) return []
  const { after, before, form, sentence, verb } = statement
  // "It was paid", of what a call has just read as paid.
  if (form === "passive" && evidence.reported.has(verb.lower)) return []
  const family = familyOf(verb.lower)
  const fits = does(family)
  const stretch = form === "active" ? after : [...before, ...after]
  // To whom it went can be held against the arguments; which file went with it cannot: tools take its text.
  const names = namesAmong(stretch).filter(({ kind }) => kind === "mail" || (kind === "file" && family === "delete"))
  const what = `that could have ${verb.lower} anything`
  const found = (text: string, name?: (typeof names)[number]): Finding => {
    const at = ground(evidence, what, fits, name === undefined ? undefined : { name, places: ["arguments", "result"] })
    return { kind: "acting", text, at: verb.at, sentence, ...at }
  }
  return names.length === 0 ? [found(verb.text)] : names.map((name) => found(`${verb.text} ${name.text}`, name))
}

export const acting: ActionRules = { verbs: new Set(Object.values(verbsOf).flatMap((one) => [...one])), judge }
