/**
 * Ten times the text may cost twelve times the time at most, for every family (`node bench/linear.ts [family …]`): plain
 * text, calls, and texts made to be slow, in the pieces an engine sends and all at once. Medians of processor time of this
 * thread, from an empty heap each time. What else the machine does shows in a single figure, so a case that costs more is
 * measured again, four times at most; what is not linear fails each time. A text that is passed over at a nanosecond for a
 * character is at the speed of memory, and how that differs between a small and a large text says nothing of the reader: marked `~`.
 * Ends with 1 where one fails. The same is counted, not timed, in a test.
 */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import * as Result from "effect/Result"
import type { Codec } from "../src/engine/codecs/Codec.ts"
import { byId, ids } from "../src/engine/codecs/Families.ts"
import { readSlow, slowTexts } from "../test/kit/slowTexts.ts"

const most = 12
const runs = 3
const attempts = 5
const pieces = [64, Number.POSITIVE_INFINITY]

/** A collection that one text leaves to the next would be in the wrong figure. */
setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc") as () => void

type Shape = (codec: Codec, count: number) => string

/** Microseconds of one reading. Each reads a text of its own, since one that was read before is flat. */
const once = (codec: Codec, text: string, size: number): number => {
  const fresh = Buffer.from(text).toString()
  collect()
  const before = process.threadCpuUsage()
  readSlow(codec, fresh, size)
  const { system, user } = process.threadCpuUsage(before)
  return user + system
}

const median = (list: ReadonlyArray<number>): number => [...list].sort((a, b) => a - b)[list.length >> 1]!

const compare = (codec: Codec, shape: Shape, size: number) => {
  // At least 10,000 parts, so 100,000 in the large text, and more where the small one takes no time to speak of.
  let count = 10_000
  for (let run = 0; run < runs; run++) once(codec, shape(codec, count), size)
  while (once(codec, shape(codec, count), size) < 20_000 && shape(codec, count).length < 2_000_000) count *= 3
  const [small, large] = [shape(codec, count), shape(codec, count * 10)]
  let best = { ratio: Number.POSITIVE_INFINITY, ms: 0, chars: large.length }
  for (let attempt = 0; attempt < attempts && best.ratio > most; attempt++) {
    const times = Array.from({ length: runs }, () => [once(codec, small, size), once(codec, large, size)] as const)
    const [few, many] = [median(times.map(([one]) => one)), median(times.map(([, one]) => one))]
    const ratio = (many / Math.max(few, 200) / (large.length / small.length)) * 10
    if (ratio < best.ratio) best = { ...best, ratio, ms: many / 1000 }
  }
  return { ...best, held: best.ratio <= most, passedOver: best.ms * 1000 < large.length / 1000 }
}

let failed = 0
const families = process.argv.slice(2)
for (const id of families.length === 0 ? ids : families) {
  const codec = Result.getOrThrow(byId(id))
  console.log(id)
  for (const [name, shape] of Object.entries(slowTexts)) {
    const cells = pieces.map((size) => compare(codec, shape, size))
    failed += cells.filter(({ held, passedOver }) => !held && !passedOver).length
    const shown = cells.map(
      ({ chars, held, ms, passedOver, ratio }) =>
        `${ratio.toFixed(1).padStart(6)}${held ? " " : passedOver ? "~" : "!"}(${(chars / 1e6).toFixed(1)} M in ${ms.toFixed(0)} ms)`
    )
    console.log(`  ${name.padEnd(28)}${shown.map((cell) => cell.padEnd(28)).join("")}`)
  }
}
console.log(failed === 0 ? `all at ${most} or less` : `${failed} cases above ${most}`)
process.exitCode = failed === 0 ? 0 : 1
