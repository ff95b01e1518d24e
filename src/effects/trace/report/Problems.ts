/** What is wrong with a trace, in the validator's words, and what could not be read at all. Judges nothing itself. */
import { schemaId } from "../../../actors/TraceEvent.ts"
import type { Item, Unreadable } from "../TraceReader.ts"
import { invariants, type Verdict, type Violation } from "../TraceValidator.ts"
import { badge } from "./CallView.ts"
import { count } from "./Fields.ts"
import { html, inText, Markup, number, type Part } from "./Markup.ts"

const namedLines = 20

export class Unread {
  readonly #named: Array<Unreadable> = []
  #count = 0

  readonly see = (item: Item): void => {
    if (item._tag !== "Unreadable") return
    this.#count += 1
    if (this.#named.length < namedLines) this.#named.push(item)
  }

  get count(): number {
    return this.#count
  }

  readonly view = (): Part =>
    this.#count === 0
      ? undefined
      : html`<h3>Lines that cannot be read</h3><ul class="problems">${this.#named.map(
          ({ bytes, line, offset, reason }) =>
            html`<li>Line ${line} (byte ${offset}, ${count(bytes, "byte")}): ${reason}</li>`
        )}${this.#count > this.#named.length ? html`<li>and ${number(this.#count - this.#named.length)} more</li>` : undefined}</ul>`
}

/** The verdict in a word, and how good that is. */
export const verdictBadge = (verdict: Verdict, schema: string | undefined): Markup => {
  if (schema !== undefined && schema !== schemaId) return badge("quiet", "not judged: another schema")
  if (verdict.violationCount > 0) return badge("bad", count(verdict.violationCount, "problem"))
  return verdict.complete ? badge("good", "valid trace") : badge("warn", "valid so far, incomplete")
}

const unjudged = ({ unjudged: left }: Verdict): Part =>
  left.length === 0
    ? undefined
    : html`<p class="quiet">Not judged: ${left.map((id, at) => html`${at > 0 ? "; " : ""}${id} (${invariants[id]})`)}</p>`

/** What an invariant asks for is said once. */
const problem = ({ invariant, line, message, seq }: Violation, isFirst: boolean): Markup => {
  const event = seq === undefined ? undefined : html`<a href="#event-${seq}">event ${seq}</a>`
  const at = line === undefined ? "" : `${seq === undefined ? "" : ", "}line ${line}`
  return html`<li><p><strong>${invariant}</strong> ${message.slice(0, 2_000)} <span class="quiet">${event}${at}</span></p>${
    isFirst ? html`<p class="quiet">${invariants[invariant]}</p>` : undefined
  }</li>`
}

/** `ended`: somebody has seen a terminal event, also if the validator was lost before it. */
export const problems = (verdict: Verdict, schema: string | undefined, ended: boolean, unread: Unread): Markup => {
  if (schema !== undefined && schema !== schemaId) {
    const name = new Markup(inText(schemaId))
    return html`<p>The invariants are those of ${name}; this trace is of another schema and is not judged.</p>${unread.view()}`
  }
  const more = verdict.violationCount - verdict.violations.length
  const explained = new Set<string>()
  const found = html`<ul class="problems">${verdict.violations.map((one) => {
    const isFirst = !explained.has(one.invariant)
    explained.add(one.invariant)
    return problem(one, isFirst)
  })}${more > 0 ? html`<li>and ${number(more)} more</li>` : undefined}</ul>`
  const ending =
    verdict.complete || ended
      ? undefined
      : html`<p>${verdict.cut ? "The file ends inside a line." : "There is no terminal event."} The process died, was killed, or is still at it.</p>`
  return html`${verdict.violationCount === 0 ? html`<p>The validator found none.</p>` : found}${ending}${unjudged(verdict)}${unread.view()}`
}
