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
  prefixes: boolean
): string => {
  const node = (path: string): string => {
    const rest = words.filter((word) => word.startsWith(path)).map((word) => Array.from(word.slice(path.length)))
    const next = [...new Set(rest.flatMap(([first]) => (first === undefined ? [] : [first])))]
    const ended = rest.some((word) => word.length === 0)
    const parts = next
      .filter((first) => !prefixes || !words.includes(path + first))
      .map((first) => `${literal(first)} ${node(path + first)}`)
    parts.push(`[^${outside}${inClass(next)}] ${tail}`)
    return rules.add(ended ? parts.join(" | ") : `${parts.join(" | ")} | ""`)
  }
  return node("")
}
