/**
 * Writing llama.cpp's grammar notation: escaped literals, named rules, and texts that must not begin in certain ways.
 * Knows nothing of JSON, schemas or tools.
 */

/** Rules by name, made as they are needed. */
export class Rules {
  readonly #rules = new Map<string, string>()
  #next = 0

  get size(): number {
    return this.#rules.size
  }

  /** A rule under a fixed name; the first definition stays. */
  define(name: string, body: () => string): string {
    if (!this.#rules.has(name)) {
      // Reserved first, so that a rule may refer to itself.
      this.#rules.set(name, "")
      this.#rules.set(name, body())
    }
    return name
  }

  /** A rule under a name of its own. */
  add(body: string): string {
    const name = `r${this.#next++}`
    this.#rules.set(name, body)
    return name
  }

  /** One rule a line, in the order they were made. */
  get text(): string {
    let out = ""
    for (const [name, body] of this.#rules) out += `${name} ::= ${body}\n`
    return out
  }
}

const escaped = (character: string, special: string): string => {
  const code = character.codePointAt(0)!
  if (special.includes(character)) return `\\${character}`
  if (character === "\n") return "\\n"
  if (code >= 0x20 && code < 0x7f) return character
  if (code <= 0xff) return `\\x${code.toString(16).padStart(2, "0")}`
  return code <= 0xffff ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`
}

/** Exactly this text. */
export const literal = (text: string): string => `"${Array.from(text, (one) => escaped(one, '"\\')).join("")}"`

/** Characters for the inside of a class. */
export const inClass = (characters: Iterable<string>): string =>
  Array.from(characters, (one) =>
    /[\]\\^-]/.test(one) ? `\\x${one.charCodeAt(0).toString(16)}` : escaped(one, "")
  ).join("")

export const choice = (parts: ReadonlyArray<string>): string =>
  parts.length === 1 ? parts[0]! : `(${parts.join(" | ")})`

/**
 * Texts of other characters than `outside` (the inside of a class) that are none of `words`, or with `prefixes` do not
 * even begin with one. `tail`: the rule for what may follow once that is decided.
 */
export const otherThan = (
  rules: Rules,
  words: ReadonlyArray<string>,
  outside: string,
  tail: string,
  prefixes: boolean,
  empty = true
): string => {
  const node = (path: string): string => {
    const rest = words.filter((word) => word.startsWith(path)).map((word) => Array.from(word.slice(path.length)))
    const next = [...new Set(rest.flatMap(([first]) => (first === undefined ? [] : [first])))]
    const ended = rest.some((word) => word.length === 0)
    const parts = next
      .filter((first) => !prefixes || !words.includes(path + first))
      .map((first) => `${literal(first)} ${node(path + first)}`)
    parts.push(`[^${outside}${inClass(next)}] ${tail}`)
    return rules.add(ended || (path === "" && !empty) ? parts.join(" | ") : `${parts.join(" | ")} | ""`)
  }
  return node("")
}

export interface Without {
  /** Begins the names of the rules: one for each choice of the rest. */
  readonly name: string
  /** Characters that do not occur, as the inside of a class. */
  readonly outside: string
  /** An expression for what may stand in place of a character and is part of no word. */
  readonly instead?: string
  /** Characters, counted with what stands in their place. */
  readonly least?: number
  readonly most?: number
}

/** Texts in which none of `words` occurs anywhere: a rule for each beginning of a word and each number of characters. */
export const without = (
  rules: Rules,
  words: ReadonlyArray<string>,
  { instead, least = 0, most, name, outside }: Without
): string => {
  const letters = [...new Set(words.flatMap((word) => Array.from(word)))]
  /** The longest end of the text that begins a word; `undefined`: a word is complete. */
  const after = (begun: string, letter: string): string | undefined => {
    const seen = begun + letter
    if (words.some((word) => seen.endsWith(word))) return undefined
    for (let at = 0; at < seen.length; at++) {
      if (words.some((word) => word.startsWith(seen.slice(at)))) return seen.slice(at)
    }
    return ""
  }
  const numbers = new Map<string, number>([["", 0]])
  const numberOf = (begun: string): number => {
    if (!numbers.has(begun)) numbers.set(begun, numbers.size)
    return numbers.get(begun)!
  }
  const node = (begun: string, count: number): string => {
    const at = most === undefined ? Math.min(count, least) : count
    return rules.define(`${name}-${numberOf(begun)}-${at}`, () => {
      if (at === most) return '""'
      const special = letters.filter((letter) => after(begun, letter) !== "")
      const parts = special.flatMap((letter) => {
        const next = after(begun, letter)
        return next === undefined ? [] : [`${literal(letter)} ${node(next, at + 1)}`]
      })
      const plain = node("", at + 1)
      parts.push(`[^${outside}${inClass(special)}] ${plain}`)
      if (instead !== undefined) parts.push(`${instead} ${plain}`)
      if (at >= least) parts.push('""')
      return parts.join(" | ")
    })
  }
  return node("", 0)
}
