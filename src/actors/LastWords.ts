/** What a process said before it ended: whether that was for want of memory, and what of it a message should hold. Reads text only. */

/** Characters that a message holds. */
const shownLength = 600

/** What ends a process, wherever it stands: a stack of any length follows it. */
const fatal =
  /FATAL ERROR: [^\n]*(?:out of memory|allocation failed)[^\n]*|Fatal (?:process|JavaScript) out of memory[^\n]*|[^\n]{0,120}std::bad_alloc[^\n]*/gi

/** What may also be survived: only the very last words count. */
const noMemory =
  /out[ _]?of[ _]?(?:device|host)?[ _]?memory|heap limit|bad_alloc|failed to allocate|cannot allocate|insufficient memory/i

export interface LastWords {
  readonly cause: "crashed" | "out_of_memory"
  /** In one line; empty where nothing was said. */
  readonly said: string
}

/** @param tail what was said last, as much of it as was kept */
export const lastWords = (tail: string): LastWords => {
  const last = tail.trim().slice(-shownLength)
  const starved = [...tail.matchAll(fatal)].at(-1)?.[0].slice(0, shownLength)
  const cause = starved !== undefined || noMemory.test(last) ? "out_of_memory" : "crashed"
  return { cause, said: (starved ?? last).trim().replace(/\s+/g, " ") }
}
