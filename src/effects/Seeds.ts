/**
 * Seeds of turns, derived from the run's seed. Distinct (turn, attempt) pairs get distinct seeds: every step below is a
 * bijection of 32-bit numbers (odd multiplier, xor-shift), so no random stream is ever used twice in a run.
 */
const attemptsPerTurn = 16

/** @param attempt 0 to 15 */
export const seedOf = (runSeed: number, turn: number, attempt: number): number => {
  const index = turn * attemptsPerTurn + attempt
  let x = (runSeed + Math.imul(index, 0x9e3779b1)) >>> 0
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b) >>> 0
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35) >>> 0
  return (x ^ (x >>> 16)) >>> 0
}
