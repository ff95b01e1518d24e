/** What this process holds: memory after a collection, threads, descriptors. Counted where the system says (Linux). */
import { readdirSync } from "node:fs"
import { loadavg } from "node:os"

const mb = 1024 * 1024

const entriesOf = (directory: string): number => {
  try {
    return readdirSync(directory).length
  } catch {
    return Number.NaN
  }
}

/** Needs `--expose-gc` for figures that say something about memory. */
export const held = () => {
  globalThis.gc?.()
  const { external, heapUsed, rss } = process.memoryUsage()
  return {
    rssMb: rss / mb,
    heapMb: heapUsed / mb,
    externalMb: external / mb,
    threads: entriesOf("/proc/self/task"),
    descriptors: entriesOf("/proc/self/fd"),
    // Timers come and go with whoever sleeps at the moment.
    handles: process.getActiveResourcesInfo().filter((type) => type !== "Timeout" && type !== "Immediate").length
  }
}

export type Held = ReturnType<typeof held>

export const shown = ({ descriptors, externalMb, handles, heapMb, rssMb, threads }: Held): string =>
  `rss ${rssMb.toFixed(0)} MB  heap ${heapMb.toFixed(1)} MB  external ${externalMb.toFixed(1)} MB` +
  `  threads ${threads}  descriptors ${descriptors}  handles ${handles}  load ${loadavg()[0]!.toFixed(1)}`
