/**
 * Which verbs of a sentence state that something was done by whoever answers: "I saved it", "the file was saved", "Saved to
 * a.md". Not plans, questions, conditions, negations, quotations, reports of others or earlier days. English, and a grammar of
 * neighbours, not of meaning: docs/claims.md has its rules.
 */
import type { Sentence, Word } from "./AnswerText.ts"
import { isName } from "./Names.ts"

export interface Statement {
  readonly verb: Word
  readonly sentence: Sentence
  /** Its place among the words. */
  readonly index: number
  readonly form: "active" | "passive" | "fragment"
  /** What stands for its subject, from the clause's beginning to the verb. */
  readonly before: ReadonlyArray<Word>
  /** What follows, up to the next statement or break. */
  readonly after: ReadonlyArray<Word>
}

/** Splits a list of words. */
export const wordSet = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/))

const selves = wordSet("i we i've we've i'd we'd assistant")
const others = wordSet("you he she they who user somebody someone anyone nobody you've they've")
const perfect = wordSet("have has had i've we've 've i'd we'd having")
const beings = wordSet("was were been is are got gets being it's that's")
const adverbs = wordSet(
  "also then now just already first next finally subsequently thus therefore afterwards even simply only all both again both indeed hereby too still since so far once"
)
const starters = wordSet(
  "i we i've we've i'd it the a an this that these those they you he she all both everything each every no nothing neither there which who my your its their nobody"
)
const breaks = wordSet("but however although though because while whereas yet except so")
const negations = wordSet("not never no nothing none neither nor without nobody hardly cannot cant")
const harmless = wordSet("only just merely problem problems doubt issue issues error errors worries later")
const modals = wordSet(
  "will would can could shall should may might must i'll we'll it'll won't gonna going need needs want wants plan intend about"
)
const doing = wordSet(
  "do does did can could will would shall should may might don't doesn't didn't can't couldn't won't wouldn't cannot shouldn't"
)
const conditions = wordSet("if unless until assuming provided whether before suppose supposing when whenever")
/** "Check that it was saved": asked of the reader. */
const checking = wordSet("check ensure verify confirm")
const sayings = wordSet(
  "says said states stated claims claimed mentions mentioned according reads indicates indicated writes"
)
/** Also what whoever answers may do: only where it is plain that somebody else did. */
const reporting = wordSet("wrote confirmed confirms reported reports replied noted announced explained")
const failing = wordSet("failed fails unable refused declined forgot neglected tried attempted supposed asked told")
const earlier = wordSet("yesterday previously earlier formerly originally ago historically")
const former = wordSet("last previous prior earlier another different")
const episodes = wordSet("task run session conversation chat time week month year night quarter project")
const habits = wordSet(
  "every always usually often typically daily weekly monthly annually automatically generally normally each"
)
const openings = wordSet(
  "do did does have has would should can could shall will is are was were what which who how why where may"
)
const ready = wordSet("done ok okay yes sure great task complete completed finished all success result summary")
const fragmentNext = wordSet(
  "the a an it them this that these those all both everything my your our their its to as in into at on under and successfully two three four five six seven"
)

const isAdverb = ({ lower }: Word): boolean => adverbs.has(lower) || (lower.endsWith("ly") && lower.length > 4)
const isNegation = ({ lower }: Word): boolean => negations.has(lower) || lower.endsWith("n't")

interface Clause {
  start: number
  negated: boolean
  /** By a word that a bare verb follows: what comes after "and" is free again. */
  loosely: boolean
  modal: boolean
  conditional: boolean
  being: number
  /** Nothing but signs and adverbs yet. */
  fresh: boolean
}

/** What in a sentence makes none of its verbs a statement about this run. */
const elsewhere = ({ words }: Sentence): boolean =>
  words.some(
    ({ lower }, at) =>
      earlier.has(lower) ||
      (former.has(lower) && episodes.has(words[at + 1]?.lower ?? "") && words[at - 1]?.lower !== "at")
  )

class Walk {
  readonly #words: ReadonlyArray<Word>
  readonly #sentence: Sentence
  readonly #kinds: ReadonlyMap<string, unknown>
  readonly #found: Array<{ index: number; form: Statement["form"]; start: number; passive: number }> = []
  /** Where a statement's reach ends. */
  readonly #stops: Array<number> = []
  #clause: Clause
  /** Whose doing the sentence tells: "and" takes it on. */
  #chain: "self" | "other" | undefined
  #reported = false
  /** The sentence has a condition: what *is* done under it, is done whenever it holds. */
  #general = false
  /** From here on it is asked. */
  #asked: number

  constructor(sentence: Sentence, kinds: ReadonlyMap<string, unknown>) {
    this.#sentence = sentence
    this.#words = sentence.words
    this.#kinds = kinds
    this.#clause = this.#begin(0, true)
    this.#asked = this.#question()
  }

  #begin(start: number, fresh: boolean): Clause {
    return { start, negated: false, loosely: false, modal: false, conditional: false, being: -1, fresh }
  }

  /** A question is all of the sentence, or what follows its last comma. */
  #question(): number {
    if (!this.#sentence.question) return this.#words.length
    for (let at = this.#words.length - 1; at > 0; at--) {
      const { mark, text } = this.#words[at]!
      if (mark && /^[,;:—–]$/.test(text)) return at
    }
    return 0
  }

  #previous(from: number): number {
    let at = from - 1
    while (at >= 0 && !this.#words[at]!.mark && isAdverb(this.#words[at]!)) at -= 1
    return at
  }

  readonly run = (): ReadonlyArray<Statement> => {
    const first = this.#words.find(({ mark }) => !mark)
    if (this.#asked === 0 || (this.#sentence.question && openings.has(first?.lower ?? "")) || elsewhere(this.#sentence))
      return []
    for (let at = 0; at < this.#asked; at++) this.#word(this.#words[at]!, at)
    return this.#found.map(({ form, index, passive, start }, at) => {
      const next = this.#found[at + 1]
      const last = this.#words.length
      // Its reach ends where the next statement begins: with its subject, if that is its own.
      const taken = next === undefined ? last : next.start > index ? next.start : next.index
      const to = Math.min(taken, this.#stops.find((one) => one > index) ?? last)
      return {
        verb: this.#words[index]!,
        sentence: this.#sentence,
        index,
        form,
        before: this.#words.slice(start, passive < 0 ? index : passive),
        after: this.#words.slice(index + 1, to)
      }
    })
  }

  #mark(text: string, at: number): void {
    if (/^[;:—–()]$/.test(text) || !/^[,.'’"“”«»/&]/.test(text)) this.#clause = this.#begin(at + 1, true)
    if (/^[;—–]$/.test(text)) {
      this.#stops.push(at)
      this.#chain = undefined
    }
  }

  #breaks({ lower }: Word, at: number): void {
    const before = this.#words[at - 1]
    const next = this.#words[at + 1]
    if (breaks.has(lower)) {
      this.#stops.push(at)
      this.#clause = this.#begin(at + 1, true)
    } else if (
      (lower === "and" || lower === "then" || lower === "or") &&
      next !== undefined &&
      starters.has(next.lower)
    ) {
      // "neither this nor that", "no A or B": what is denied stays denied.
      if (lower !== "or") this.#clause = this.#begin(at + 1, false)
    } else if (before?.mark === true && before.text === "," && starters.has(lower))
      this.#clause = this.#begin(at, false)
    if (lower === "and" && this.#clause.negated && this.#clause.loosely) {
      this.#clause.negated = false
      this.#clause.modal = false
    }
  }

  #word(word: Word, at: number): void {
    if (word.mark) this.#mark(word.text, at)
    if (word.mark) return
    if (word.quoted || word.code) {
      this.#clause.fresh = false
      return
    }
    this.#breaks(word, at)
    if (breaks.has(word.lower)) return
    const clause = this.#clause
    const { lower } = word
    const kind = this.#kinds.has(lower) ? this.#form(at) : undefined
    if (kind !== undefined) this.#state(at, kind)
    this.#qualify(word, at)
    if (beings.has(lower)) clause.being = at
    if (!isAdverb(word) && !(clause.fresh && ready.has(lower) && kind === undefined)) clause.fresh = false
  }

  #qualify(word: Word, at: number): void {
    const { lower } = word
    const clause = this.#clause
    const next = this.#words[at + 1]
    if (isNegation(word) && !harmless.has(next?.lower ?? "") && !(lower === "no" && next?.text === ",")) {
      clause.negated = true
      clause.loosely = doing.has(lower) || doing.has(this.#words[at - 1]?.lower ?? "")
    }
    if (failing.has(lower) && next?.lower === "to") clause.negated = true
    if (modals.has(lower)) clause.modal = true
    if (conditions.has(lower)) clause.conditional = !(lower.startsWith("when") && selves.has(next?.lower ?? ""))
    if (lower === "once" && clause.fresh) clause.conditional = true
    if (checking.has(lower) && /^(?:that|if|whether)$/.test(next?.lower ?? "") && this.#chain !== "self")
      clause.conditional = true
    if (clause.conditional) this.#general = true
    if (lower === "sure" && this.#words[at - 1]?.lower === "make" && this.#chain !== "self") clause.conditional = true
    if (sayings.has(lower) && this.#chain !== "self") this.#reported = true
    const plainly = this.#chain === "other" || (this.#chain === undefined && !clause.fresh && next?.lower === "that")
    if (reporting.has(lower) && plainly) this.#reported = true
    if (selves.has(lower)) {
      this.#chain = "self"
      this.#reported = false
      clause.modal = false
    } else if (others.has(lower)) this.#chain = "other"
    else if (starters.has(lower) && at === clause.start && this.#chain === "self") this.#chain = undefined
    if (lower === "that") clause.modal = false
  }

  /** How a verb's neighbours make a statement of it. */
  #form(at: number): Statement["form"] | undefined {
    const words = this.#words
    const before = this.#previous(at)
    const word = words[before]
    const clause = this.#clause
    const opens = clause.fresh && before < clause.start
    if (opens || clause.fresh) return this.#opens(at) ? "fragment" : undefined
    if (word === undefined) return undefined
    if (selves.has(word.lower)) return "active"
    if (perfect.has(word.lower)) {
      const subject = words[this.#previous(before)]
      if (selves.has(subject?.lower ?? "")) return "active"
      return this.#chain === "self" && /^(?:and|,)$/.test(subject?.lower ?? "") ? "active" : undefined
    }
    if (beings.has(word.lower)) return "passive"
    if (/^(?:and|,|then|&|or|not)$/.test(word.lower)) {
      if (clause.being >= 0) return "passive"
      return this.#chain === "self" ? "active" : undefined
    }
    return this.#labelled(at, before) ? "fragment" : undefined
  }

  /** "Saved the report", "Saved: a.md", but not "Saved searches" and not "Created: 2019". */
  #opens(at: number): boolean {
    const { deeds } = this.#sentence
    const [next, second] = [this.#words[at + 1], this.#words[at + 2]]
    if (this.#words[at]!.lower === "read" && !deeds) return false
    if (next === undefined || deeds) return true
    if (next.mark) return next.text === ":" ? second !== undefined && isName(second.text) : !/^[,]$/.test(next.text)
    return fragmentNext.has(next.lower) || isName(next.text) || isAdverb(next) || /^\d/.test(next.text)
  }

  /** "Report saved to a.md", "Email sent." */
  #labelled(at: number, before: number): boolean {
    const { start } = this.#clause
    const length = before - start + 1
    if (length < 1 || length > 4) return false
    const label = this.#words.slice(start, before + 1)
    if (label.some(({ lower, mark }) => mark || starters.has(lower) || others.has(lower) || lower === "to"))
      return false
    const next = this.#words[at + 1]
    return (
      next === undefined ||
      next.mark ||
      /^(?:to|as|in|at|successfully|with|and|into|under)$/.test(next.lower) ||
      isName(next.text)
    )
  }

  /** Done by somebody else. */
  #byOther(at: number): boolean {
    for (let next = at + 1; next < Math.min(at + 7, this.#words.length); next++) {
      const { lower, mark } = this.#words[next]!
      if (mark) return false
      if (lower !== "by") continue
      const who = this.#words[next + 1]
      return (
        who !== undefined &&
        !who.mark &&
        !/^(?:me|us|this|e?mail|e-mail|phone|post|sms|message|hand|default|name|\d.*|.*ing)$/.test(who.lower)
      )
    }
    return false
  }

  /** Passive, and yet nothing that was done in this run: how things go, what is usual, what is dated. */
  #isGeneral(being: number): boolean {
    const { deeds, listed } = this.#sentence
    const present = /^(?:is|are)$/.test(this.#words[being]!.lower)
    // "I was made for this"; "3. The file is saved"; "when you push, it is sent".
    if (selves.has(this.#words[being - 1]?.lower ?? "") || (present && ((listed && !deeds) || this.#general)))
      return true
    return this.#words.some(({ lower }) => habits.has(lower) || /^(?:19|20)\d\d$/.test(lower))
  }

  #state(at: number, form: Statement["form"]): void {
    const { being, conditional, modal, negated, start } = this.#clause
    const next = this.#words[at + 1]
    if (form !== "passive") this.#chain = "self"
    if (negated || modal || conditional || this.#reported) return
    if (next !== undefined && /^(?:nothing|no|none|neither|nobody)$/.test(next.lower)) return
    if (form !== "active" && this.#byOther(at)) return
    if (form === "passive" && this.#isGeneral(being)) return
    this.#found.push({ index: at, form, start, passive: form === "passive" ? being : -1 })
  }
}

/** What a sentence states with the verbs of a lexicon. */
export const statementsOf = (sentence: Sentence, verbs: ReadonlyMap<string, unknown>): ReadonlyArray<Statement> =>
  sentence.words.some(({ lower }) => verbs.has(lower)) ? new Walk(sentence, verbs).run() : []
