/** The nearest of some known names to one that is not known, for messages that suggest it. */

/** The closest name by edits, or `undefined` where nothing is close enough to be what was meant. */
export const nearest = (name: string, known: ReadonlyArray<string>): string | undefined => {
  const wanted = name.toLowerCase().slice(0, longest)
  let best: string | undefined
  let bound = Math.max(2, Math.floor(wanted.length / 3)) + 1
  for (const candidate of known) {
    const distance = edits(wanted, candidate.toLowerCase().slice(0, longest))
    if (distance < bound) [best, bound] = [candidate, distance]
  }
  return best
}

const longest = 64

/** Insertions, deletions and replacements from `a` to `b`. */
const edits = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)))
    }
    row = next
  }
  return row[b.length]!
}
