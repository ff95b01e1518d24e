/**
 * Ten times the text may cost twelve times the time at most, for every family (`node bench/linear.ts [family …]`): plain
 * text, calls, and texts made to be slow, in the pieces an engine sends and all at once. The time of a text is that of ten
 * copies of it, one after another, so that both sides pass over the same number of bytes and neither has the processor's cache
 * to itself. Medians of processor time of this thread, from an empty heap each time. What else the machine does shows in a
 * single figure, so a case that costs more is measured again, four times at most; what is not linear fails each time.
 * Ends with 1 where one fails. The same is counted, not timed, in a test.
 */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import * as Result from "effect/Result"
import type { Codec } from "../src/engine/codecs/Codec.ts"
import { byId, ids } from "../src/engine/codecs/Families.ts"
import { readSlow, slowTexts } from "../test/kit/slowTexts.ts"

const most = 12
/** How many times the text. */
const more = 10
const runs = 3
const attempts = 5
const pieces = [64, Number.POSITIVE_INFINITY]

/** A collection that one text leaves to the next would be in the wrong figure. */
setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc") as () => void

type Shape = (codec: Codec, count: number) => string

/** Microseconds of reading so many copies. Each reads a text of its own, since one that was read before is flat. */
const once = (codec: Codec, text: string, size: number, copies = 1): number => {
  const bytes = Buffer.from(text)
  const fresh = Array.from({ length: copies }, () => bytes.toString())
  collect()
  const before = process.threadCpuUsage()
  for (const one of fresh) readSlow(codec, one, size)
  const { system, user } = process.threadCpuUsage(before)
  return user + system
}

const median = (list: ReadonlyArray<number>): number => [...list].sort((a, b) => a - b)[list.length >> 1]!

const compare = (codec: Codec, shape: Shape, size: number) => {
  // At least 10,000 parts, so 100,000 in the large text, and more where the small one takes no time to speak of.
  let count = 10_000
  for (let run = 0; run < runs; run++) once(codec, shape(codec, count), size)
  while (once(codec, shape(codec, count), size, more) < 200_000 && shape(codec, count).length < 3_000_000) count *= 2
  const [small, large] = [shape(codec, count), shape(codec, count * more)]
  let best = { ratio: Number.POSITIVE_INFINITY, ms: 0, chars: large.length }
  for (let attempt = 0; attempt < attempts && best.ratio > most; attempt++) {
    const times = Array.from(
      { length: runs },
      () => [once(codec, small, size, more), once(codec, large, size)] as const
    )
    const [few, many] = [median(times.map(([one]) => one)), median(times.map(([, one]) => one))]
    // Frames around the parts are there once, so the large text is a little less than ten times the small one.
    const ratio = (many / Math.max(few, 1) / (large.length / (small.length * more))) * more
    if (ratio < best.ratio) best = { ...best, ratio, ms: many / 1000 }
  }
  return { ...best, held: best.ratio <= most }
}

let failed = 0
const families = process.argv.slice(2)
for (const id of families.length === 0 ? ids : families) {
  const codec = Result.getOrThrow(byId(id))
  console.log(id)
  for (const [name, shape] of Object.entries(slowTexts)) {
    const cells = pieces.map((size) => compare(codec, shape, size))
    failed += cells.filter(({ held }) => !held).length
    const shown = cells.map(
      ({ chars, held, ms, ratio }) =>
        `${ratio.toFixed(1).padStart(6)}${held ? " " : "!"}(${(chars / 1e6).toFixed(1)} M in ${ms.toFixed(0)} ms)`
    )
    console.log(`  ${name.padEnd(28)}${shown.map((cell) => cell.padEnd(28)).join("")}`)
  }
}
console.log(failed === 0 ? `all at ${most} or less` : `${failed} cases above ${most}`)
process.exitCode = failed === 0 ? 0 : 1
