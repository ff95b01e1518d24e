/** Timing by blocks in alternation, so that every candidate meets the same noise: medians of runs, in microseconds. */

export interface Candidate {
  readonly name: string
  readonly run: () => Promise<unknown>
  /** Cleans up after a run, outside its time. */
  readonly after?: () => void
}

const median = (values: ReadonlyArray<number>): number => {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

/** Median microseconds per run of each candidate, and the 10th percentile of its block medians ("quiet"). */
export const measure = async (
  candidates: ReadonlyArray<Candidate>,
  options: { readonly warmup: number; readonly blocks: number; readonly perBlock: number }
): Promise<Record<string, { readonly median: number; readonly quiet: number }>> => {
  const all = new Map(candidates.map(({ name }) => [name, [] as Array<number>]))
  const blocks = new Map(candidates.map(({ name }) => [name, [] as Array<number>]))
  const untimed = async ({ after, run }: Candidate, times: number) => {
    for (let at = 0; at < times; at++) {
      await run()
      after?.()
    }
  }
  for (const candidate of candidates) await untimed(candidate, options.warmup)
  for (let block = 0; block < options.blocks; block++) {
    for (const candidate of candidates) {
      const { after, name, run } = candidate
      const times: Array<number> = []
      await untimed(candidate, 5)
      for (let at = 0; at < options.perBlock; at++) {
        const before = performance.now()
        await run()
        times.push((performance.now() - before) * 1000)
        after?.()
      }
      all.get(name)!.push(...times)
      blocks.get(name)!.push(median(times))
    }
  }
  const quietest = (values: ReadonlyArray<number>) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 10)]!
  return Object.fromEntries(
    candidates.map(({ name }) => [
      name,
      {
        median: Math.round(median(all.get(name)!) * 10) / 10,
        quiet: Math.round(quietest(blocks.get(name)!) * 10) / 10
      }
    ])
  )
}
