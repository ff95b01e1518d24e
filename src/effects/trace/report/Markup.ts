/**
 * HTML that cannot be injected into: what is put into a template is escaped for the place it is put in, unless it is
 * markup already. Control characters and marks that reorder or hide text are shown by their code, never sent. Knows
 * nothing about traces.
 */
import { codeOf, unseen } from "../Unseen.ts"

/** Markup that was made by `html`. */
export class Markup {
  readonly value: string
  constructor(value: string) {
    this.value = value
  }
}

export type Part = Markup | string | number | undefined | ReadonlyArray<Part>

const special = /[&<>"'`]/g

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
  "`": "&#96;"
}

const any = new RegExp(`${unseen.source}|${special.source}`)

const escape = (text: string, mark: (code: string) => string): string => {
  if (!any.test(text)) return text
  const entity = (character: string): string => entities[character] ?? character
  return text.replace(special, entity).replace(unseen, (character) => mark(codeOf(character)))
}

/** Text between tags. A character nobody would see is marked as such. */
export const inText = (text: string): string => escape(text, (shown) => `<span class="ctl">${shown}</span>`)

/** Text inside double quotes of an attribute. */
export const inAttribute = (text: string): string => escape(text, (shown) => shown)

/** Text on one line of a list whose fields end at tabs. */
export const inLine = (text: string): string =>
  /[^ -~·]/.test(text)
    ? text.replace(/[\t\n]/g, (character) => (character === "\t" ? "\\t" : "\\n")).replace(unseen, codeOf)
    : text

/** For each hole of a template: is it inside a tag? Then it has to be inside double quotes. */
const holes = new WeakMap<TemplateStringsArray, ReadonlyArray<boolean>>()

const holesOf = (strings: TemplateStringsArray): ReadonlyArray<boolean> => {
  const known = holes.get(strings)
  if (known !== undefined) return known
  let before = ""
  const found = strings.slice(0, -1).map((literal) => {
    before += literal
    return before.lastIndexOf("<") > before.lastIndexOf(">")
  })
  holes.set(strings, found)
  return found
}

const flat = (part: Part, tag: boolean): string => {
  if (part === undefined) return ""
  if (part instanceof Markup) return part.value
  if (typeof part === "string") return tag ? inAttribute(part) : inText(part)
  return typeof part === "number" ? String(part) : part.map((one) => flat(one, tag)).join("")
}

/** A template of markup. Holes inside a tag stand between double quotes. */
export const html = (strings: TemplateStringsArray, ...parts: ReadonlyArray<Part>): Markup => {
  const inTag = holesOf(strings)
  let text = strings[0]!
  for (let at = 0; at < parts.length; at++) text += flat(parts[at], inTag[at]!) + strings[at + 1]!
  return new Markup(text)
}

/** How much text a page may still show. Every text counts against it, so that no trace makes a page nobody can open. */
export class Room {
  #left: number
  constructor(characters: number) {
    this.#left = characters
  }

  /** Up to `most` characters of a text, as much as there is room for, and a note if that is not all. */
  readonly clip = (text: string, most: number): { readonly text: string; readonly note: string | undefined } => {
    const allowed = Math.max(Math.min(most, this.#left), Math.min(most, 120))
    if (text.length <= allowed) {
      this.#left -= text.length
      return { text, note: undefined }
    }
    const half = /[\ud800-\udbff]/.test(text.charAt(allowed - 1)) ? 1 : 0
    const shown = text.slice(0, allowed - half)
    this.#left -= shown.length
    return { text: shown, note: `… cut: ${number(shown.length)} of ${number(text.length)} characters are shown` }
  }

  /** A text in a box of its own. */
  readonly box = (text: string, most: number): Markup => {
    const { note, text: shown } = this.clip(text, most)
    return html`<pre>${shown}${
      note === undefined
        ? undefined
        : html`<span class="cut">
${note}</span>`
    }</pre>`
  }

  /** A text in a line. */
  readonly line = (text: string, most: number): Markup => {
    const { note, text: shown } = this.clip(text, most)
    return html`${shown}${note === undefined ? undefined : html` <span class="cut">${note}</span>`}`
  }
}

/** `12 345`, with narrow spaces that do not break. */
export const number = (value: number): string =>
  String(value).replace(/\B(?=(?:\d{3})+(?!\d))/g, value >= 10_000 ? "\u202f" : "")

/** A value as JSON; what cannot be written, because it is nested beyond reason, is said so. */
export const json = (value: unknown, indent = 0): string => {
  try {
    return JSON.stringify(value, undefined, indent) ?? ""
  } catch (cause) {
    return `(cannot be shown: ${cause instanceof Error ? cause.message : "not JSON"})`
  }
}
