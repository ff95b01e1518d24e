/**
 * A small reader of llama.cpp's grammar notation, so that grammars can be tried without a model: does a text fit, and what
 * are texts that do. Written from the notation's description, not from our writer.
 */
import type { CallGrammar } from "../../src/engine/Grammar.ts"

type Node =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "class"; readonly negated: boolean; readonly ranges: ReadonlyArray<readonly [number, number]> }
  | { readonly kind: "rule"; readonly name: string }
  | { readonly kind: "sequence"; readonly parts: ReadonlyArray<Node> }
  | { readonly kind: "choice"; readonly parts: ReadonlyArray<Node> }
  | { readonly kind: "repeat"; readonly part: Node; readonly least: number; readonly most: number }

class Reader {
  readonly #text: string
  #at = 0
  constructor(text: string) {
    this.#text = text
  }

  choice(): Node {
    const parts = [this.#sequence()]
    while (this.#skip() === "|") {
      this.#at += 1
      parts.push(this.#sequence())
    }
    return parts.length === 1 ? parts[0]! : { kind: "choice", parts }
  }

  end(): void {
    if (this.#skip() !== "") throw new Error(`cannot read ${this.#text.slice(this.#at, this.#at + 40)}`)
  }

  #skip(): string {
    while (this.#text[this.#at] === " ") this.#at += 1
    return this.#text[this.#at] ?? ""
  }

  #sequence(): Node {
    const parts: Array<Node> = []
    for (let next = this.#skip(); next !== "" && next !== "|" && next !== ")"; next = this.#skip()) {
      parts.push(this.#repeated(this.#primary(next)))
    }
    return parts.length === 1 ? parts[0]! : { kind: "sequence", parts }
  }

  #repeated(part: Node): Node {
    const mark = /^(?:[?*+]|\{(\d+)(,)?(\d+)?\})/.exec(this.#text.slice(this.#at))
    if (mark === null) return part
    this.#at += mark[0].length
    const [least, most] =
      mark[0] === "?" ? [0, 1] : mark[0] === "*" ? [0, Infinity] : mark[0] === "+" ? [1, Infinity] : bounds(mark)
    return this.#repeated({ kind: "repeat", part, least, most })
  }

  #primary(next: string): Node {
    if (next === "(") {
      this.#at += 1
      const inner = this.choice()
      if (this.#skip() !== ")") throw new Error("a bracket is not closed")
      this.#at += 1
      return inner
    }
    if (next === '"') {
      this.#at += 1
      let text = ""
      while (this.#text[this.#at] !== '"') text += String.fromCodePoint(this.#character())
      this.#at += 1
      return { kind: "text", text }
    }
    if (next === "[") return this.#class()
    const name = /^[A-Za-z0-9-]+/.exec(this.#text.slice(this.#at))
    if (name === null) throw new Error(`cannot read ${this.#text.slice(this.#at, this.#at + 40)}`)
    this.#at += name[0].length
    return { kind: "rule", name: name[0] }
  }

  #class(): Node {
    this.#at += 1
    const negated = this.#text[this.#at] === "^"
    if (negated) this.#at += 1
    const ranges: Array<readonly [number, number]> = []
    while (this.#text[this.#at] !== "]") {
      const from = this.#character()
      if (this.#text[this.#at] === "-" && this.#text[this.#at + 1] !== "]") {
        this.#at += 1
        ranges.push([from, this.#character()])
      } else ranges.push([from, from])
    }
    this.#at += 1
    return { kind: "class", negated, ranges }
  }

  #character(): number {
    const code = this.#text.codePointAt(this.#at)
    if (code === undefined) throw new Error("the grammar ends inside a text")
    this.#at += code > 0xffff ? 2 : 1
    if (code !== 0x5c) return code
    const kind = this.#text[this.#at++]!
    const size = { x: 2, u: 4, U: 8 }[kind]
    if (size === undefined) return ({ n: 10, r: 13, t: 9 } as Record<string, number>)[kind] ?? kind.codePointAt(0)!
    const hex = this.#text.slice(this.#at, this.#at + size)
    if (!new RegExp(`^[0-9a-fA-F]{${size}}$`).test(hex)) throw new Error(`bad escape ${hex}`)
    this.#at += size
    return Number.parseInt(hex, 16)
  }
}

const bounds = (mark: RegExpExecArray): readonly [number, number] => {
  const least = Number(mark[1])
  return [least, mark[2] === undefined ? least : mark[3] === undefined ? Infinity : Number(mark[3])]
}

/** Numbers in [0, 1). */
export type Random = () => number

export const seeded = (seed: number): Random => {
  let state = (seed * 2654435761) >>> 0 || 1
  return () => {
    state ^= state << 13
    state >>>= 0
    state ^= state >>> 17
    state ^= state << 5
    state >>>= 0
    return state / 2 ** 32
  }
}

export class Gbnf {
  readonly #rules = new Map<string, Node>()

  constructor(text: string) {
    for (const line of text.split("\n").filter((one) => one !== "")) {
      const at = line.indexOf(" ::= ")
      const reader = new Reader(line.slice(at + 5))
      this.#rules.set(line.slice(0, at), reader.choice())
      reader.end()
    }
    for (const node of this.#rules.values()) this.#check(node)
  }

  #check(node: Node): void {
    if (node.kind === "rule") this.#rule(node.name)
    else if (node.kind === "repeat") this.#check(node.part)
    else if (node.kind === "sequence" || node.kind === "choice") for (const part of node.parts) this.#check(part)
  }

  #rule(name: string): Node {
    const node = this.#rules.get(name)
    if (node === undefined) throw new Error(`there is no rule ${name}`)
    return node
  }

  /** Is the text exactly one of the rule's? */
  matches(rule: string, text: string): boolean {
    const characters = Array.from(text, (one) => one.codePointAt(0)!)
    const known = new Map<Node, Map<number, ReadonlySet<number>>>()
    const from = (node: Node, at: number): ReadonlySet<number> => {
      const places = known.get(node) ?? new Map<number, ReadonlySet<number>>()
      known.set(node, places)
      const before = places.get(at)
      if (before !== undefined) return before
      places.set(at, new Set())
      const found = step(node, at)
      places.set(at, found)
      return found
    }
    const after = (node: Node, places: Iterable<number>): Set<number> => {
      const out = new Set<number>()
      for (const place of places) for (const end of from(node, place)) out.add(end)
      return out
    }
    const step = (node: Node, at: number): ReadonlySet<number> => {
      switch (node.kind) {
        case "text": {
          const wanted = Array.from(node.text, (one) => one.codePointAt(0)!)
          return new Set(wanted.every((one, index) => characters[at + index] === one) ? [at + wanted.length] : [])
        }
        case "class": {
          const one = characters[at]
          if (one === undefined) return new Set()
          const inside = node.ranges.some(([low, high]) => one >= low && one <= high)
          return new Set(inside === node.negated ? [] : [at + 1])
        }
        case "rule":
          return from(this.#rule(node.name), at)
        case "choice":
          return new Set(node.parts.flatMap((part) => [...from(part, at)]))
        case "sequence":
          return node.parts.reduce<Set<number>>((places, part) => after(part, places), new Set([at]))
        case "repeat": {
          const out = new Set<number>(node.least === 0 ? [at] : [])
          let places = new Set([at])
          for (let count = 1; count <= node.most && places.size > 0 && count <= characters.length + 1; count++) {
            places = after(node.part, places)
            if (count < node.least) continue
            const size = out.size
            for (const place of places) out.add(place)
            if (out.size === size && count > node.least) break
          }
          return out
        }
      }
    }
    return from(this.#rule(rule), 0).has(characters.length)
  }

  /** Some text of the rule; repetitions are kept short, and shorter the longer the text is already. */
  generate(rule: string, random: Random): string {
    let out = ""
    const pick = (count: number): number => Math.floor(random() * count)
    const write = (node: Node): void => {
      if (out.length > 200_000) throw new Error("the generated text does not end")
      switch (node.kind) {
        case "text":
          out += node.text
          return
        case "class":
          out += String.fromCodePoint(characterOf(node, random))
          return
        case "rule":
          write(this.#rule(node.name))
          return
        case "choice":
          write(node.parts[pick(node.parts.length)]!)
          return
        case "sequence":
          for (const part of node.parts) write(part)
          return
        case "repeat": {
          const room = out.length > 600 ? 0 : Math.min(node.most - node.least, random() < 0.1 ? 12 : 3)
          const count = random() < 0.05 && node.most < 60 && out.length < 600 ? node.most : node.least + pick(room + 1)
          for (let index = 0; index < count; index++) write(node.part)
        }
      }
    }
    write(this.#rule(rule))
    return out
  }
}

const interesting = Array.from('aZ09 <>/{}[]":,.-_\\é日😀\u0080\u2028\uffff\t\n', (one) => one.codePointAt(0)!)

const characterOf = (node: Node & { readonly kind: "class" }, random: Random): number => {
  const fits = (one: number) => node.ranges.some(([low, high]) => one >= low && one <= high) !== node.negated
  if (!node.negated) {
    const [low, high] = node.ranges[Math.floor(random() * node.ranges.length)]!
    return low + Math.floor(random() * (high - low + 1))
  }
  const usable = interesting.filter(fits)
  return usable[Math.floor(random() * usable.length)]!
}

/** A grammar with its marks written out as texts. */
export const withMarks = ({ marks, rules }: CallGrammar): string =>
  rules +
  Object.entries(marks)
    .map(([name, text]) => `${name} ::= ${JSON.stringify(text)}\n`)
    .join("")
