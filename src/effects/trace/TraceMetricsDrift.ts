/**
 * The schema-violation rate over the last so many attempts, moved along all of them: a rate that climbs says that the tools'
 * schemas and the model's habits drift apart. Only full windows count, so a short record raises no alarm.
 */
import type { CallLog, Place } from "./TraceMetricsCall.ts"

export interface DriftOptions {
  /** Attempts side by side, at least 1. */
  readonly window: number
  /** The alarm trips where the rate is above this; `undefined`: never. */
  readonly alarm: number | undefined
}

/** An attempt: its number among all, from 1, its call if it has one, and where it is on record. */
export interface DriftPlace extends Place {
  readonly attempt: number
  readonly call: string | undefined
}

export interface DriftWindow {
  readonly violations: number
  readonly rate: number
  readonly from: DriftPlace
  readonly to: DriftPlace
}

export interface Drift extends DriftOptions {
  readonly attempts: number
  /** Full windows, and how many of them are above the alarm. */
  readonly windows: number
  readonly above: number
  /** The first one above the alarm. */
  readonly tripped: DriftWindow | undefined
  /** The one with the highest rate, the first of several. */
  readonly worst: DriftWindow | undefined
  readonly last: DriftWindow | undefined
}

/** In order of time. An attempt whose time is not on record stays behind the one that was read before it. */
const inTime = (attempts: ReadonlyArray<CallLog>): ReadonlyArray<CallLog> => {
  let before = Number.NEGATIVE_INFINITY
  const timed = attempts.map((call) => {
    before = call.place?.at ?? before
    return { call, at: before }
  })
  return timed.sort((a, b) => (a.at === b.at ? 0 : a.at - b.at)).map(({ call }) => call)
}

export const driftOf = (read: ReadonlyArray<CallLog>, { alarm, window }: DriftOptions): Drift => {
  const attempts = inTime(read)
  const placeOf = (at: number): DriftPlace => {
    const { id, place } = attempts[at]!
    return { ...place!, attempt: at + 1, call: id }
  }
  const windowAt = (end: number | undefined, violations: number): DriftWindow | undefined =>
    end === undefined
      ? undefined
      : { violations, rate: violations / window, from: placeOf(end - window + 1), to: placeOf(end) }
  let [violations, windows, above] = [0, 0, 0]
  let first: { readonly end: number; readonly violations: number } | undefined
  let worst = first
  for (const [end, call] of attempts.entries()) {
    if (call.schema) violations += 1
    if (end >= window && attempts[end - window]!.schema) violations -= 1
    if (end < window - 1) continue
    windows += 1
    if (worst === undefined || violations > worst.violations) worst = { end, violations }
    if (alarm === undefined || violations / window <= alarm) continue
    above += 1
    first ??= { end, violations }
  }
  return {
    window,
    alarm,
    attempts: attempts.length,
    windows,
    above,
    tripped: windowAt(first?.end, first?.violations ?? 0),
    worst: windowAt(worst?.end, worst?.violations ?? 0),
    last: windowAt(windows === 0 ? undefined : attempts.length - 1, violations)
  }
}
