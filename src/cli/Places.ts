/** What is wrong with a path that was named on the command line, in words. Looks only; opens and reads nothing. */
import { look } from "../effects/RunDirectory.ts"

const nouns = { File: "file", Directory: "directory" } as const

/** Why there is no such thing at `path`; `undefined` where there is one. */
export const problemAt = (path: string, wanted: keyof typeof nouns): string | undefined => {
  const place = look(path)
  if (place._tag === wanted) return undefined
  if (place._tag === "Unknown") return place.reason
  return place._tag === "Nothing" ? `there is no such ${nouns[wanted]}` : `it is not a ${nouns[wanted]}`
}

/** Why no run or trace is found by this name, and by which names one is. */
export const noTrace = (named: string): string => {
  const place = look(named)
  const how = "give a trace file, a run's directory, or the id of a run in .writ/runs"
  return place._tag === "Unknown" ? `${named}: ${place.reason}; ${how}` : `there is no trace ${named}: ${how}`
}
