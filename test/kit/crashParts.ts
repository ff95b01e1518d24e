/** What a process that continues a run finds of it: the traces its predecessors left, and how far they got. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Lines, type TraceRecord } from "../../src/effects/trace/TraceReader.ts"

/** The trace files of a run's parts, oldest first. */
export const partFiles = (directory: string): ReadonlyArray<string> =>
  readdirSync(directory)
    .filter((name) => name.endsWith(".jsonl"))
    .sort((a, b) => a.length - b.length || (a < b ? -1 : 1))
    .map((name) => join(directory, name))

/** The parts of the run `run` so far, oldest first; none where it never began. A line that was cut is not there. */
export const parts = (directory: string): ReadonlyArray<ReadonlyArray<TraceRecord>> =>
  existsSync(join(directory, "run.jsonl"))
    ? partFiles(directory).map((path) => {
        const lines = new Lines()
        const items = [...lines.push(readFileSync(path)), ...lines.end()]
        return items.flatMap((item) => (item._tag === "Event" ? [item.record] : []))
      })
    : []

/** Turns of the model that were kept: the script goes on behind them. */
export const kept = (traces: ReadonlyArray<ReadonlyArray<TraceRecord>>): number =>
  traces
    .flat()
    .filter(
      ({ data, event_type }) => event_type === "session_state_changed" && String(data["role"]).startsWith("assistant_")
    ).length
