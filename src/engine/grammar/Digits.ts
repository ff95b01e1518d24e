/**
 * Numbers between bounds, written digit by digit. A grammar cannot compare, so a range becomes the few shapes of its
 * numbers: `17 … 305` is `1[7-9] | [2-9][0-9] | 1[0-9]{2} | 2[0-9]{2} | 30[0-5]`.
 */

/** Digits of the largest numbers that are written: every integer of so many digits is safe. */
export const maxDigits = 15

const some = (from: string, to: string): string => (from === to ? `"${from}"` : `[${from}-${to}]`)
const anyDigits = (count: number): string => (count === 0 ? "" : count === 1 ? "[0-9]" : `[0-9]{${count}}`)
const join = (...parts: ReadonlyArray<string>): string => parts.filter((part) => part !== "").join(" ")

/** Digit strings of one length from `low` to `high`. */
const sameLength = (low: string, high: string): ReadonlyArray<string> => {
  if (low === "") return [""]
  if (/^0*$/.test(low) && /^9*$/.test(high)) return [anyDigits(low.length)]
  const [first, last, left] = [low[0]!, high[0]!, low.length - 1]
  if (first === last) return sameLength(low.slice(1), high.slice(1)).map((rest) => join(`"${first}"`, rest))
  const out = sameLength(low.slice(1), "9".repeat(left)).map((rest) => join(`"${first}"`, rest))
  if (Number(last) - Number(first) > 1) {
    out.push(join(some(String(Number(first) + 1), String(Number(last) - 1)), anyDigits(left)))
  }
  return [...out, ...sameLength("0".repeat(left), high.slice(1)).map((rest) => join(`"${last}"`, rest))]
}

/** Whole numbers from `low` to `high`, neither negative, without leading zeros. */
const naturals = (low: bigint, high: bigint): ReadonlyArray<string> => {
  const out: Array<string> = []
  for (let from = low; from <= high; ) {
    const size = from.toString().length
    const end = 10n ** BigInt(size) - 1n
    const to = end < high ? end : high
    out.push(...sameLength(from.toString(), to.toString()))
    from = to + 1n
  }
  return out
}

/** Whole numbers, of either sign. Empty where there are none. */
export const integers = (low: bigint, high: bigint): ReadonlyArray<string> => {
  const positive = high < 0n ? [] : naturals(low > 0n ? low : 0n, high)
  const negative = low >= 0n ? [] : naturals(high < 0n ? -high : 1n, -low).map((digits) => `"-" ${digits}`)
  return [...positive, ...negative]
}

/** Fixed-point numbers: `unit` decimals, bounds counted in the last of them. */
const fixed = (low: bigint, high: bigint, decimals: number, tail: string): ReadonlyArray<string> => {
  const scale = 10n ** BigInt(decimals)
  const out: Array<string> = []
  const from = low < 0n ? 0n : low
  for (const [first, last] of wholes(from, high, scale)) {
    if (first > last) continue
    const whole = naturals(first / scale, last / scale)
    if (decimals === 0) out.push(...whole.map((digits) => join(digits, tail)))
    else if (first % scale === 0n && last % scale === scale - 1n)
      out.push(...whole.map((digits) => join(digits, '"."', anyDigits(decimals), tail)))
    else {
      const fraction = sameLength(
        (first % scale).toString().padStart(decimals, "0"),
        (last % scale).toString().padStart(decimals, "0")
      )
      out.push(...whole.flatMap((digits) => fraction.map((part) => join(digits, '"."', part, tail))))
    }
  }
  return out
}

/** A range of fixed-point numbers as ranges that begin and end with a whole number, except at its two ends. */
const wholes = (low: bigint, high: bigint, scale: bigint): ReadonlyArray<readonly [bigint, bigint]> => {
  if (low > high) return []
  if (low / scale === high / scale) return [[low, high]]
  const [firstWhole, lastWhole] = [((low + scale - 1n) / scale) * scale, (high / scale) * scale]
  const whole = (high + 1n) % scale === 0n ? high : lastWhole - 1n
  return [
    [low, firstWhole - 1n],
    [firstWhole, whole],
    [whole + 1n, high]
  ]
}

export interface Bound {
  readonly value: number
  readonly exclusive: boolean
}

const ceil = (numerator: bigint, denominator: bigint): bigint => {
  const whole = numerator / denominator
  return whole * denominator < numerator ? whole + 1n : whole
}

/** A finite number as a fraction of a power of ten, or `undefined` where it has more than six decimals. */
const decimal = (value: number): { readonly units: bigint; readonly decimals: number } | undefined => {
  const found = /^(-?)(\d+)(?:\.(\d{1,6}))?$/.exec(String(value))
  if (found === null) return undefined
  const fraction = found[3] ?? ""
  return { units: BigInt(`${found[1]}${found[2]}${fraction}`), decimals: fraction.length }
}

/**
 * Numbers between bounds, at most 15 significant digits and no exponent. `undefined`: the bounds cannot be carried. Numbers
 * with more decimals than the bounds are carried too, so none of them is reached or passed by rounding.
 */
export const numbers = (low: Bound | undefined, high: Bound | undefined): ReadonlyArray<string> | undefined => {
  const limit = 10n ** BigInt(maxDigits) - 1n
  const [least, most] = [low && decimal(low.value), high && decimal(high.value)]
  if ((low !== undefined && least === undefined) || (high !== undefined && most === undefined)) return undefined
  const decimals = Math.max(least?.decimals ?? 0, most?.decimals ?? 0)
  const unitsAt = (bound: typeof least, scale: number): bigint => bound!.units * 10n ** BigInt(scale - bound!.decimals)
  const scale = 10n ** BigInt(decimals)
  const clamp = (units: bigint): bigint => {
    const end = limit * scale
    return units > end ? end : units < -end ? -end : units
  }
  const from = clamp(least === undefined ? -limit * scale : unitsAt(least, decimals))
  const to = clamp(most === undefined ? limit * scale : unitsAt(most, decimals))
  const out: Array<string> = []
  for (const sign of [1n, -1n]) {
    // Negative numbers are the mirrored range behind a minus; zero has no sign.
    const [a, b] = sign === 1n ? [from, to] : [-to, -from]
    const [openA, openB] = sign === 1n ? [low?.exclusive, high?.exclusive] : [high?.exclusive, low?.exclusive]
    const floor = sign === 1n ? 0n : 1n
    const parts = between({ a, b, openA: openA === true, openB: openB === true, floor }, decimals)
    out.push(...parts.map((part) => (sign === 1n ? part : `"-" ${part}`)))
  }
  return out
}

interface Range {
  readonly a: bigint
  readonly b: bigint
  readonly openA: boolean
  readonly openB: boolean
  readonly floor: bigint
}

const between = ({ a, b, floor, openA, openB }: Range, decimals: number): ReadonlyArray<string> => {
  const out: Array<string> = []
  const scale = 10n ** BigInt(decimals)
  const [first, last] = [openA ? a + 1n : a, openB ? b - 1n : b]
  for (let fewer = 0; fewer <= decimals; fewer++) {
    const step = 10n ** BigInt(decimals - fewer)
    const [low, high] = [ceil(first, step), last < 0n ? -1n : last / step]
    out.push(...fixed(low < floor ? floor : low, high, fewer, ""))
  }
  // With more decimals: the digits before them are at least the lower bound and below the upper one.
  const low = a < 0n ? 0n : a
  const size = (b < 0n ? 0n : b / scale).toString().length
  const room = maxDigits - size - decimals
  if (room > 0 && b > 0n) {
    const digits = room > 1 ? `[0-9]{0,${room - 1}} [1-9]` : "[1-9]"
    out.push(...fixed(low, b - 1n, decimals, decimals === 0 ? `"." ${digits}` : digits))
  }
  return out
}
