/**
 * The numbers of a record, and whether a number of an answer can come from them: the same, rounded, in percent, or by one simple
 * step (sum, difference, product, share, change; count, total, mean). Bounded: a record of very many numbers is said to be cut.
 */
import type { Mention, Reading } from "./NumberForms.ts"
import { readings, spelled } from "./NumberForms.ts"

/** From the strongest to the weakest. */
export type Source = "task" | "result" | "arguments" | "count" | "derived"

const most = 1_000_000
/** Pairs are tried among so many numbers; among more, anything could be made of them. */
const fewNumbers = 12
/** Different lengths of lists and texts. */
const mostCounts = 100_000
const parsedBytes = 1_000_000

const digits = /\d(?:[\d.,]{0,38}\d)?/g

/** Numbers in the order they come, and sorted once the first of them is looked for. */
class Numbers {
  #values = new Float64Array(64)
  #length = 0
  #sorted = false
  /** Some were left out. */
  cut = false

  readonly add = (value: number): void => {
    if (!Number.isFinite(value)) return
    if (this.#length === most) this.cut = true
    if (this.#length === most) return
    if (this.#length === this.#values.length) {
      const larger = new Float64Array(2 * this.#length)
      larger.set(this.#values)
      this.#values = larger
    }
    this.#values[this.#length++] = Math.abs(value)
    this.#sorted = false
  }

  /** Each once, if there are few. */
  get few(): ReadonlyArray<number> | undefined {
    const all = this.#length <= 10_000 ? new Set(this.#values.subarray(0, this.#length)) : undefined
    return all === undefined || all.size > fewNumbers ? undefined : [...all]
  }

  readonly has = ({ value, within }: Reading): boolean => {
    const slack = within + Math.abs(value) * 1e-9
    if (!this.#sorted) this.#values.subarray(0, this.#length).sort()
    this.#sorted = true
    let [low, high] = [0, this.#length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#values[middle]! < value - slack) low = middle + 1
      else high = middle
    }
    return low < this.#length && this.#values[low]! <= value + slack
  }
}

export class NumberSources {
  readonly #told = { task: new Numbers(), result: new Numbers(), arguments: new Numbers() }
  readonly #counted = new Set<number>()
  readonly #derived = new Numbers()
  #paired = false

  /** Numbers were left out. */
  get cut(): boolean {
    const { arguments: given, result, task } = this.#told
    return [task, result, given, this.#derived].some((one) => one.cut) || this.#counted.size >= mostCounts
  }

  /** A number of things. */
  readonly count = (value: number): void => {
    if (this.#counted.size < mostCounts) this.#counted.add(value)
  }

  /** What a person wrote: also its numbers in words. */
  readonly task = (text: string): void => {
    this.value("task", text)
    const written = [...text.slice(0, 10_000).matchAll(digits)].flatMap(([found]) => readings(found).slice(0, 1))
    const values = written.map(({ value }) => value)
    if (values.length <= fewNumbers) this.#summed(new Map([["", values]]))
    for (const [word] of text.slice(0, 100_000).matchAll(/[a-z]{3,9}(?:-[a-z]{3,5})?/gi)) {
      const value = spelled(word.toLowerCase())
      if (value !== undefined) this.#told.task.add(value)
    }
  }

  /** Everything in a value, however deep. */
  readonly value = (from: "task" | "result" | "arguments", given: unknown): void => {
    const columns = new Map<string, Array<number>>()
    const left: Array<readonly [name: string, value: unknown]> = [["", given]]
    const into = this.#told[from]
    for (let item = left.pop(); item !== undefined; item = left.pop()) {
      const [name, value] = item
      if (typeof value === "number") {
        into.add(value)
        this.#column(columns, name, value)
      } else if (typeof value === "string") {
        const parsed = from === "result" ? jsonIn(value) : undefined
        if (parsed !== undefined) left.push([name, parsed])
        else this.#text(into, value, from === "result")
      } else if (typeof value === "object" && value !== null) {
        const list = Array.isArray(value)
        if (list) this.count(value.length)
        for (const [key, one] of Object.entries(value)) left.push([list ? name : key, one])
      }
    }
    if (from === "result") this.#summed(columns)
  }

  #column(columns: Map<string, Array<number>>, name: string, value: number): void {
    const known = columns.get(name)
    if (known === undefined) columns.set(name, [value])
    else if (known.length < most) known.push(value)
  }

  #text(into: Numbers, text: string, lines: boolean): void {
    for (const [, behind, before] of text.matchAll(monthBeside)) {
      const month = monthOf(behind ?? before!)
      if (month > 0) into.add(month)
    }
    for (const [, found, scale] of text.matchAll(scaled)) {
      for (const { value } of readings(found!)) into.add(value * scales[scale!.toLowerCase()]!)
    }
    if (!lines || !text.includes("\n")) {
      for (const [found] of text.matchAll(digits)) this.#digits(into, found)
      return
    }
    const columns = new Map<string, Array<number>>()
    const all = text.split("\n").filter((line) => line.trim() !== "")
    const count = all.length
    if (isTable(all)) this.#cells(into, columns, all)
    for (const line of all) {
      let column = 0
      for (const [found] of line.matchAll(digits)) {
        const value = this.#digits(into, found)
        if (value !== undefined && column < 16) this.#column(columns, String(column), value)
        column += 1
      }
    }
    // With a heading, and without.
    this.count(count)
    this.count(count - 1)
    this.#summed(columns)
  }

  /** The numbers between the commas of a table: "1,10" are two. */
  #cells(into: Numbers, columns: Map<string, Array<number>>, lines: ReadonlyArray<string>): void {
    for (const line of lines) {
      for (const [column, cell] of cellsOf(line).entries()) {
        for (const [found] of cell.matchAll(digits)) {
          const value = this.#digits(into, found)
          if (value !== undefined && column < 16) this.#column(columns, `cell ${column}`, value)
        }
      }
    }
  }

  #digits(into: Numbers, found: string): number | undefined {
    if (found.length < 16 && !/[.,]/.test(found)) {
      const value = Number(found)
      into.add(value)
      return value
    }
    const values = readings(found)
    for (const { value } of values) into.add(value)
    if (values.length === 0) for (const part of found.split(/[.,]/)) into.add(Number(part))
    return values[0]?.value
  }

  #summed(columns: ReadonlyMap<string, ReadonlyArray<number>>): void {
    for (const values of columns.values()) {
      if (values.length < 2) continue
      const sum = values.reduce((a, b) => a + b, 0)
      this.#derived.add(sum)
      this.#derived.add(sum / values.length)
      this.count(values.length)
      // What part of the total each is, in percent.
      if (values.length <= fewNumbers && sum !== 0) for (const value of values) this.#derived.add((value / sum) * 100)
    }
  }

  #pairs(): void {
    const [task, result] = [this.#told.task.few, this.#told.result.few]
    if (task === undefined || result === undefined) return
    const values = [...new Set([...task, ...result])]
    if (values.length > fewNumbers) return
    for (const a of values) {
      for (const b of values) {
        if (a === b) continue
        const made = [a + b, a - b, a * b, (a * b) / 100]
        if (b !== 0) made.push(a / b, (a / b) * 100, ((a - b) / b) * 100, (a / (a + b)) * 100)
        for (const one of made) this.#derived.add(one)
      }
    }
  }

  /** Where a number can come from. Nothing may be added after the first question. */
  readonly find = ({ counts, money, parts, percent }: Mention): Source | undefined => {
    if (!this.#paired) this.#pairs()
    this.#paired = true
    const { arguments: given, result, task } = this.#told
    const sources = { task, result, arguments: given, derived: this.#derived }
    // Of a date no part is computed.
    const all = (Object.entries(sources) as ReadonlyArray<[Source, Numbers]>).filter(
      ([source]) => parts.length === 1 || source !== "derived"
    )
    // A share may be on record as a part of one, money in the hundredth part of its unit.
    const factors = percent ? [1, 0.01] : money ? [1, 100, 0.01] : [1]
    const hit = (sorted: Numbers, part: ReadonlyArray<Reading>, exact = false) =>
      part.some(({ value, within }) =>
        factors.some((by) => sorted.has({ value: value * by, within: exact ? 0 : within * by }))
      )
    for (const [source, sorted] of all) {
      // Some quotient rounds to any small number: things are counted exactly.
      const exact = counts && source === "derived"
      if (parts.every((part) => hit(sorted, part, exact))) return source
    }
    if (parts.length > 1 && parts.every((part) => all.some(([, sorted]) => hit(sorted, part)))) return "result"
    return counts && this.#counted.has(parts[0]![0]!.value) ? "count" : undefined
  }
}

/** Cells of a line between commas, those between quotation marks left whole. */
const cellsOf = (line: string): ReadonlyArray<string> =>
  line.includes('"') ? [...line.matchAll(/(?:^|,)("[^"]*"|[^,]*)/g)].map(([, cell]) => cell!) : line.split(",")

/** As many cells in each of several lines. It may be prose all the same: its numbers are read in both ways. */
const isTable = (lines: ReadonlyArray<string>): boolean => {
  const [first, ...rest] = lines.slice(0, 100).map((line) => cellsOf(line).length)
  return first !== undefined && first > 1 && rest.length > 0 && rest.every((cells) => cells === first)
}

const months = [
  "jan feb mar apr may jun jul aug sep oct nov dec",
  "january february march april may june july august september october november december",
  "jan feb mär apr mai jun jul aug sep okt nov dez",
  "januar februar märz april mai juni juli august september oktober november dezember"
].map((names) => names.split(" "))

/** The number of a month that stands beside a number: "12 March", "März 2024". */
const monthBeside =
  /(?:\d(?:st|nd|rd|th)?[.]?[ \t]{1,2}(?:of )?)(\p{L}{3,9})(?!\p{L})|(?<!\p{L})(\p{L}{3,9})[.]?[ \t]{1,2}(?=\d)/giu

/** "3.7 million": 3,700,000 in the words of an answer. */
const scaled =
  /(\d(?:[\d.,]{0,38}\d)?)[ \t\u00a0\u202f]?(thousand|million|billion|mio|mrd|tausend|millionen|milliarden)(?!\p{L})/giu

const scales: Readonly<Record<string, number>> = {
  thousand: 1e3,
  tausend: 1e3,
  million: 1e6,
  millionen: 1e6,
  mio: 1e6,
  billion: 1e9,
  milliarden: 1e9,
  mrd: 1e9
}

const monthOf = (word: string): number => {
  const lower = word.toLowerCase()
  return 1 + Math.max(...months.map((names) => names.indexOf(lower)))
}

/** A file's text may be JSON. */
const jsonIn = (text: string): unknown => {
  if (text.length > parsedBytes || !/^\s{0,99}[[{]/.test(text)) return undefined
  try {
    const parsed: unknown = JSON.parse(text)
    return typeof parsed === "object" && parsed !== null ? parsed : undefined
  } catch {
    return undefined
  }
}
