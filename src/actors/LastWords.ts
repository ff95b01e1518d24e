/** What a process said before it ended: whether that was for want of memory, and what of it a message should hold. Reads text only. */

/** Characters that a message holds. */
const shownLength = 600

/** What only a process says that ends over it, wherever it stands: V8, the C++ runtimes and ggml print a stack of any length behind it. */
const fatal = new RegExp(
  [
    /FATAL ERROR: [^\n]{0,400}?(?:out of memory|allocation failed)/,
    /Fatal (?:process|JavaScript) out of memory/,
    /(?:terminat[^\n]{0,100}|what\(\):\s+)std::bad_(?:alloc|array_new_length)/,
    /(?:CUDA|ROCm|HIP|MUSA) error: out of memory/
  ]
    .map(({ source }) => `(?:${source})[^\\n]*`)
    .join("|"),
  "gi"
)

/** What may also be survived: only the very last words count. */
const noMemory =
  /out[ _]?of[ _]?(?:device|host|pool)?[ _]?memory(?! range)|heap limit|bad_(?:alloc|array_new)|alloc(?:ation)?[ _]failed|failed to allocate|cannot allocate|ENOMEM|(?:insufficient|not enough) memory/i

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
