/**
 * The few statistics a report needs. Interval of a share: Wilson, "Probable inference, the law of succession, and statistical
 * inference", JASA 22 (1927). Paired outcomes: the exact form of McNemar's test (Psychometrika 12, 1947), which is the sign test
 * on the pairs that differ (Dixon and Mood, JASA 41, 1946): two-sided, by the binomial distribution with 1/2.
 */

export interface Interval {
  readonly low: number
  readonly high: number
}

/** The 97.5 % point of the normal distribution: intervals are of 95 %. */
const z = 1.959963984540054

/** Where the true share lies, after `passes` of `runs`; `undefined` where nothing was tried. */
export const wilson = (passes: number, runs: number): Interval | undefined => {
  if (runs === 0) return undefined
  const share = passes / runs
  const scale = 1 + z ** 2 / runs
  const centre = (share + z ** 2 / (2 * runs)) / scale
  const half = (z / scale) * Math.sqrt((share * (1 - share)) / runs + z ** 2 / (4 * runs ** 2))
  // Rounding must not put a share that was seen outside its own interval.
  return { low: passes === 0 ? 0 : Math.max(0, centre - half), high: passes === runs ? 1 : Math.min(1, centre + half) }
}

/**
 * How likely it is, if neither is better, that of `better + worse` pairs that differ so few or fewer go one way (two-sided).
 * 1 where no pair differs.
 */
export const signTest = (better: number, worse: number): number => {
  const pairs = better + worse
  const fewer = Math.min(better, worse)
  if (pairs === 0) return 1
  // The logarithm of "pairs over k" grows by one factor per step; only sums of its powers would overflow.
  let logarithm = -pairs * Math.LN2
  let tail = 0
  for (let k = 0; k <= fewer; k++) {
    if (k > 0) logarithm += Math.log((pairs - k + 1) / k)
    tail += Math.exp(logarithm)
  }
  return Math.min(1, 2 * tail)
}
