/**
 * Holds the answer of a run against its record. Sees the events once, in order; the answer is judged when they have ended. Says
 * that it cannot judge where there is no content or no answer, and `unknown` where the record is not all there was.
 */
import { terminalTypes } from "../../../actors/TraceEvent.ts"
import { emberSchema, fromEmber } from "../EmberTrace.ts"
import type { TraceRecord } from "../TraceReader.ts"
import { acting } from "./ActingClaims.ts"
import { quoteOf, type Sentence, sentencesOf } from "./AnswerText.ts"
import type { Claim, ClaimReport, ClaimVerdict } from "./Claim.ts"
import { Evidence } from "./Evidence.ts"
import type { ActionRules, Finding } from "./Grounds.ts"
import { nameClaims } from "./NameClaims.ts"
import { nameOf } from "./Names.ts"
import { numberClaims } from "./NumberClaims.ts"
import { accordingTo, reading } from "./ReadingClaims.ts"
import { statementsOf } from "./Statements.ts"
import { placed, writing } from "./WritingClaims.ts"

/** Claims that are listed; the rest is counted. */
export const mostListed = 500
/** Events of a trace without call ids, which is read as a whole. */
const mostEmber = 200_000

const rules: ReadonlyArray<ActionRules> = [writing, acting, reading]
const verbs = new Map(rules.flatMap((rule) => [...rule.verbs].map((verb) => [verb, rule] as const)))

/** What the answer itself counts out: the items of its lists, the names it gives that the record has as well. */
const ownCounts = (answer: string, evidence: Evidence): ReadonlySet<number> => {
  const counts = new Set<number>()
  const names = new Set<string>()
  let items = 0
  for (const { first, listed, words } of sentencesOf(answer)) {
    if (listed && first) items += 1
    else if (!listed) items = 0
    counts.add(items)
    for (const word of words) {
      const name = word.mark ? undefined : nameOf(word.text)
      if (name !== undefined && evidence.places(name).length > 0) names.add(name.key)
    }
  }
  return counts.add(names.size)
}

function* findings(answer: string, evidence: Evidence): Iterable<Finding> {
  const own = ownCounts(answer, evidence)
  for (const sentence of sentencesOf(answer)) yield* inSentence(sentence, evidence, own)
}

const inSentence = (sentence: Sentence, evidence: Evidence, own: ReadonlySet<number>): ReadonlyArray<Finding> => {
  const deeds = [
    ...statementsOf(sentence, verbs).flatMap((statement) =>
      verbs.get(statement.verb.lower)!.judge(statement, evidence)
    ),
    ...accordingTo(sentence, evidence),
    ...placed(sentence, evidence)
  ]
  // A name that a claim of having done something has is held against the record with it.
  const done = new Set(deeds.map(({ text }) => text.slice(text.lastIndexOf(" ") + 1)))
  const names = nameClaims(sentence, evidence).filter(({ text }) => !done.has(text))
  const all = [...deeds, ...numberClaims(sentence, evidence, own), ...names]
  return all.sort((a, b) => a.at - b.at)
}

const notMade = (reason: string): ClaimReport => ({
  status: "not made",
  reason,
  claims: [],
  counts: { supported: 0, unsupported: 0, unknown: 0 }
})

export class ClaimCheck {
  readonly #evidence = new Evidence()
  readonly #ember: Array<TraceRecord> = []
  #run: string | undefined
  #several = false
  #content: boolean | undefined
  #answer: unknown
  #ending: string | undefined
  /** What is not in this record. */
  readonly #gaps = new Set<string>()

  readonly see = (record: TraceRecord): void => {
    if (record.schema !== emberSchema) this.#see(record)
    else if (this.#ember.length < mostEmber) this.#ember.push(record)
    else this.#gaps.add("it is too long to be checked as a whole")
  }

  /** A line could not be read. */
  readonly unreadable = (): void => void this.#gaps.add("some of its lines cannot be read")

  #see(record: TraceRecord): void {
    const { data, event_type: type, run_id } = record
    this.#run ??= run_id
    if (this.#run !== run_id) this.#several = true
    if (type === "run_started") {
      this.#content ??= typeof data["content"] === "boolean" ? data["content"] : undefined
      const before = data["committed_len"]
      if (typeof before === "number" && before > 0) this.#gaps.add("earlier tasks of its session are in other records")
    }
    if (type === "run_resumed") this.#gaps.add("it goes on where another run stopped, whose record is another one")
    if (terminalTypes.has(type)) {
      this.#ending = type
      this.#answer = data["final_text"] ?? data["partial_text"]
    }
    if (this.#content !== false) this.#evidence.see(record)
  }

  /** The report. For once, when the events have ended. */
  readonly end = (): ClaimReport => {
    for (const record of fromEmber(this.#ember)) this.#see(record)
    if (this.#several) return notMade("the file holds several runs, and an answer is held against its own")
    if (this.#ending === undefined) return notMade("the run has no end on record, so there is no answer to check")
    if (this.#content === false) return notMade("the run was recorded without content, so its answer cannot be read")
    if (this.#answer === undefined) return notMade("the run ended without an answer")
    if (typeof this.#answer !== "string") return notMade("the answer is not in the record, only its length or digest")
    this.#evidence.end()
    if (this.#evidence.cut || this.#evidence.numbers.cut)
      this.#gaps.add("it holds more names or numbers than are kept for this check")
    return this.#judge(this.#answer)
  }

  #judge(answer: string): ClaimReport {
    const claims: Array<Claim> = []
    const counts = { supported: 0, unsupported: 0, unknown: 0 }
    const whole = this.#gaps.size === 0
    const reason = whole ? "" : `the record is not all there is: ${[...this.#gaps].join("; ")}`
    for (const { sentence, supported, ...found } of findings(answer, this.#evidence)) {
      const verdict: ClaimVerdict = supported ? "supported" : whole ? "unsupported" : "unknown"
      counts[verdict] += 1
      if (claims.length < mostListed) claims.push({ ...found, quote: quoteOf(answer, sentence), verdict })
    }
    return { status: "made", reason, claims, counts }
  }
}

/** The claims of a run's answer, held against its events. */
export const checkClaims = (records: ReadonlyArray<TraceRecord>): ClaimReport => {
  const check = new ClaimCheck()
  for (const record of records) check.see(record)
  return check.end()
}
