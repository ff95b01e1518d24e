/**
 * Numbers as people write them: `1,234.5`, `21.57 %`, `$1.2 million`, `three`, `2026-11-30`. Says what a number may mean and how
 * exactly it is given. Leaves out what is no statement: labels ("step 2"), ordinals, names with digits, 0 and 1.
 */
import type { Sentence, Word } from "./AnswerText.ts"
import { nameOf } from "./Names.ts"
import { wordSet } from "./Statements.ts"

export interface Mention {
  readonly text: string
  readonly at: number
  /** What has to be found: each part of a date or version, one part of any other number. */
  readonly parts: ReadonlyArray<ReadonlyArray<Reading>>
  readonly percent: boolean
  readonly money: boolean
  /** Without a unit, and small: it may count things. */
  readonly counts: boolean
}

/** One of the things that a number may mean: `1,234` is 1234 or 1.234, `2 s` may be 2000 of something. */
export interface Reading {
  readonly value: number
  /** By how much a source may differ: half of the last digit that is given. */
  readonly within: number
}

const small =
  "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split(
    " "
  )
const tens = "twenty thirty forty fifty sixty seventy eighty ninety".split(" ")

/** `twenty-five`, `three`. */
export const spelled = (word: string): number | undefined => {
  const [ten, one] = word.split("-")
  if (one === undefined) {
    const at = small.indexOf(word)
    return at >= 0 ? at : tens.includes(word) ? (tens.indexOf(word) + 2) * 10 : undefined
  }
  const [high, low] = [tens.indexOf(ten!), small.indexOf(one)]
  return high >= 0 && low > 0 && low < 10 && word === `${ten}-${one}` ? (high + 2) * 10 + low : undefined
}

const scales: Readonly<Record<string, ReadonlyArray<number>>> = {
  hundred: [100],
  k: [1, 1e3],
  thousand: [1, 1e3],
  m: [1, 1e6, 60],
  mn: [1, 1e6],
  million: [1, 1e6],
  b: [1, 1e9],
  bn: [1, 1e9],
  billion: [1, 1e9],
  kb: [1, 1e3, 1024],
  mb: [1, 1e6, 1024 ** 2],
  gb: [1, 1e9, 1024 ** 3],
  tb: [1, 1e12, 1024 ** 4],
  kib: [1024],
  mib: [1024 ** 2],
  gib: [1024 ** 3],
  s: [1, 1e3],
  sec: [1, 1e3],
  second: [1, 1e3],
  seconds: [1, 1e3],
  min: [1, 60, 6e4],
  minute: [1, 60, 6e4],
  minutes: [1, 60, 6e4],
  h: [1, 60, 3600, 3.6e6],
  hour: [1, 60, 3600],
  hours: [1, 60, 3600],
  tsd: [1, 1e3],
  tausend: [1, 1e3],
  mio: [1, 1e6],
  millionen: [1, 1e6],
  mrd: [1, 1e9],
  milliarden: [1, 1e9],
  sekunden: [1, 1e3],
  minuten: [1, 60, 6e4],
  stunden: [1, 60, 3600]
}
const units = wordSet(
  "x ms px kg g km cm mm nm l ml c f w kw v hz khz mhz ghz eur usd gbp chf pt pp fps t ha ppm rpm kwh db kbps mbps"
)
const currencies = wordSet("eur usd gbp chf euro euros dollar dollars pounds francs cents cent € $ £ ¥")
const labels = wordSet(
  "step steps option part section chapter figure fig example phase point method approach stage scenario case exercise"
)
const sureness = wordSet("sure certain confident positive right correct")
/** What is given is not reached, or left behind. */
const bounds = wordSet(
  "nearly almost over under above below than least most fast knapp über unter mindestens höchstens als"
)
const hedges = new Set([
  ...bounds,
  ...wordSet("about around roughly approximately approx circa ca some to etwa rund ungefähr")
])

const whole =
  /^[~≈]?[-+−]?([$€£¥]?)[-+−]?(\d(?:[\d.,]|['’\u00a0\u202f](?=\d{3}))*)(?:e([-+]?\d{1,3}))?([%€$£¥°]?)([a-zµ]{0,4})$/i

/** Separators of thousands and decimals, in every way the form allows. Nothing for what is several numbers. */
export const readings = (digits: string): ReadonlyArray<{ readonly value: number; readonly decimals: number }> => {
  const plain = (text: string) => {
    const point = text.indexOf(".")
    return { value: Number(text), decimals: point < 0 ? 0 : text.length - point - 1 }
  }
  const [commas, points] = [digits.split(",").length - 1, digits.split(".").length - 1]
  if (commas === 0 && points <= 1) {
    const grouped = /^[1-9]\d{0,2}\.\d{3}$/.test(digits) ? [plain(digits.replace(".", ""))] : []
    return [plain(digits), ...grouped]
  }
  if (/^[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?$/.test(digits)) {
    const english = plain(digits.replaceAll(",", ""))
    return commas === 1 && points === 0 ? [english, plain(digits.replace(",", "."))] : [english]
  }
  if (/^[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?$/.test(digits)) return [plain(digits.replaceAll(".", "").replace(",", "."))]
  return commas === 1 && points === 0 ? [plain(digits.replace(",", "."))] : []
}

/**
 * Half of the last place: of the digits that are given, or of those that are not zero in a rough number. `bound`: all of it, as
 * "over 3600" is said of 3680.
 */
const precision = (value: number, decimals: number, rough: boolean, bound: boolean): number => {
  const part = bound ? 1 : 0.5
  if (!rough || decimals > 0 || value === 0) return part * 10 ** -decimals
  let place = 1
  while (value % (place * 10) === 0 && place < value) place *= 10
  return part * place
}

interface Around {
  readonly before: Word | undefined
  readonly after: Word | undefined
  /** What follows the number and its sign. */
  readonly beyond: Word | undefined
}

const scaled = (unit: string, { after }: Around): ReadonlyArray<number> => {
  if (Object.hasOwn(scales, unit)) return scales[unit]!
  const next = after?.mark === false ? after.lower : ""
  return unit === "" && Object.hasOwn(scales, next) ? scales[next]! : [1]
}

const single = (word: Word, around: Around): Mention | undefined => {
  const found = whole.exec(word.text)
  if (found === null) return undefined
  const [, sign, digits, exponent, mark, suffix] = found
  const unit = suffix!.toLowerCase()
  if (unit !== "" && !units.has(unit) && !Object.hasOwn(scales, unit)) return undefined
  const power = exponent === undefined ? 1 : 10 ** Number(exponent)
  const next = around.after?.mark === false ? around.after.lower : ""
  const percent = mark === "%" || around.after?.text === "%" || /^(?:percent|per|percentage|prozent)$/.test(next)
  const money = [sign, mark, unit, next, around.before?.lower].some((one) => one !== undefined && currencies.has(one))
  const rough = /^[~≈]/.test(word.text) || hedges.has(around.before?.lower ?? "")
  const bound = bounds.has(around.before?.lower ?? "")
  const times = scaled(unit, around)
  const plain = digits!.replace(/[.,]+$/, "").replace(/['’\u00a0\u202f]/g, "")
  const parts = readings(plain).flatMap(({ decimals, value }) =>
    times.map((by) => ({ value: value * power * by, within: precision(value, decimals, rough, bound) * power * by }))
  )
  if (parts.length === 0) return undefined
  if (percent && digits === "100" && sureness.has(around.beyond?.lower ?? "")) return undefined
  const bare = unit === "" && !percent && !money && times.length === 1 && times[0] === 1
  const value = parts[0]!.value
  if (bare && (value === 0 || value === 1)) return undefined
  const text = mark === "" && around.after?.text === "%" ? `${word.text} %` : word.text
  const counts = bare && Number.isInteger(value) && value <= 100
  return { text, at: word.at, percent, money, counts, parts: [parts] }
}

/** A date, a time, a version, a range: each of its numbers. */
const several = (word: Word): Mention | undefined => {
  const written = word.text.replace(/(?<=^\d{1,2}:\d{2})[ap]\.?m$/i, "")
  if (!/^\d{1,4}(?:[-/.:]\d{1,4}){1,5}$/.test(written) || written === "24/7") return undefined
  const parts = written.split(/[-/.:]/).map((one) => [{ value: Number(one), within: 0 }])
  // 2:30 in the afternoon is 14:30.
  if (/^\d{1,2}:\d{2}(?::\d{2})?$/.test(written)) {
    const hour = parts[0]![0]!.value
    parts[0]!.push({ value: hour < 12 ? hour + 12 : hour - 12, within: 0 })
  }
  const small = parts.filter(([one]) => one!.value > 1)
  return small.length === 0
    ? undefined
    : { text: word.text, at: word.at, percent: false, money: false, counts: false, parts: small }
}

const inWords = (word: Word, { after }: Around): Mention | undefined => {
  const value = spelled(word.lower)
  if (value === undefined || value < 2) return undefined
  const next = after?.mark === false ? after.lower : ""
  const times = /^(?:hundred|thousand|million|billion)$/.test(next) ? scales[next]!.at(-1)! : 1
  const percent = /^(?:percent|per)$/.test(next)
  const parts = [[{ value: value * times, within: 0.5 * times }]]
  return {
    text: times === 1 ? word.text : `${word.text} ${next}`,
    at: word.at,
    percent,
    money: false,
    counts: times === 1 && !percent,
    parts
  }
}

/** The numbers of a sentence, in order. */
export const numbersIn = ({ words }: Sentence): ReadonlyArray<Mention> =>
  words.flatMap((word, at) => {
    if (word.mark || nameOf(word.text) !== undefined) return []
    const before = words[at - 1]?.text === "." ? undefined : words[at - 1]
    if (before !== undefined && (labels.has(before.lower) || before.text === "#")) return []
    const after = words[at + 1]
    const around = { before, after, beyond: after?.text === "%" ? words[at + 2] : after }
    const found = /\d/.test(word.text) ? (single(word, around) ?? several(word)) : inWords(word, around)
    return found === undefined ? [] : [found]
  })
