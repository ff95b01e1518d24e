/**
 * Six numbers about tool use, from traces alone, each with what it is counted over (docs/metrics.md). Where there was nothing
 * to count there is no number. A request that was merely accepted, and a tool's own word, raise none of them.
 */
import { type Drift, type DriftOptions, driftOf } from "./TraceMetricsDrift.ts"
import { type Feed, type RunLog, RunsLog } from "./TraceMetricsRuns.ts"
import { type Score, type Utility, utilityOf } from "./TraceMetricsUtility.ts"

export type { Drift, DriftOptions, DriftPlace, DriftWindow } from "./TraceMetricsDrift.ts"
export type { Feed } from "./TraceMetricsRuns.ts"
export type { Budget, Score, Utility } from "./TraceMetricsUtility.ts"

/** `count` of `of`; no rate where `of` is 0. */
export interface Share {
  readonly count: number
  readonly of: number
  readonly rate: number | undefined
}

export interface Metrics {
  /** Runs, a resumed one with all its parts counted once; parts; parts whose end is on record. */
  readonly runs: number
  readonly parts: number
  readonly ended: number
  /** 1: of all attempts, refused ones and malformed turns included. */
  readonly schemaViolations: Share
  readonly preconditionViolations: Share
  readonly authorizationRefusals: Share
  /** 2: settled as kept, of the effects that were executed. */
  readonly postconditionSuccess: Share
  /** Calls that only look: succeeded, of the finished. */
  readonly readSuccess: Share
  /** 3: beyond the first of its key, of the effects that are there. */
  readonly duplicateEffects: Share
  /** 4: undone, of the effects that are there and undo nothing themselves. */
  readonly rollbacks: Share
  /** Turns of the model that were taken back; the world is not touched by that. */
  readonly turnsRolledBack: Share
  /** 5: followed by a call that came to something, of the failed calls. */
  readonly progressAfterFailure: Share
  /** 6. */
  readonly utility: Utility
  /** Failed attempts by their class. */
  readonly classes: Readonly<Record<string, number>>
  /** What was left out of the numbers, and why. */
  readonly left: {
    /** Executed effects of traces that do not say whether a promise was kept: in neither 2 nor 4. */
    readonly unjudged: number
    /** Executions of which nobody knows whether their effect is there: not in 3 and 4. */
    readonly unclear: number
    /** Of these, the ones under a key that another effect has as well. */
    readonly possibleDuplicates: number
    /** Failed calls after which something may have succeeded, in such traces: not in 5. */
    readonly undecided: number
    /** Executed calls that do more than read, without an intent on record: in no number about effects. */
    readonly withoutIntent: number
  }
  /** Runs whose keys cannot be compared with those of other runs: recorded without content. */
  readonly keyedByTrace: boolean
  readonly drift: Drift | undefined
}

export interface MetricsOptions {
  /** By run id. */
  readonly scores?: ReadonlyMap<string, Score>
  readonly drift?: DriftOptions
}

export const share = (count: number, of: number): Share => ({ count, of, rate: of === 0 ? undefined : count / of })

/** An old run says of its effects what their tools said of themselves, and no more. */
const isUnjudged = (run: RunLog): boolean => !run.judged && run.calls.some(({ unjudged }) => unjudged)

class Effects {
  executed = 0
  settledOk = 0
  present = 0
  undone = 0
  undoable = 0
  unjudged = 0
  unclear = 0
  readonly #keys = new Map<string, { present: number; unclear: number }>()

  readonly add = (run: RunLog): void => {
    const unjudged = isUnjudged(run)
    for (const call of run.calls) {
      if (!call.isEffect) continue
      if (call.executed && unjudged) this.unjudged += 1
      else if (call.executed) {
        this.executed += 1
        if (call.status === "settled_ok") this.settledOk += 1
      }
      for (const { key, present, unclear } of call.effects) {
        this.present += present
        this.unclear += unclear
        if (key !== undefined) this.#key(key, present, unclear)
        if (unjudged) continue
        if (call.compensation) this.undone += present
        else this.undoable += present
      }
    }
  }

  #key(key: string, present: number, unclear: number): void {
    const known = this.#keys.get(key) ?? { present: 0, unclear: 0 }
    known.present += present
    known.unclear += unclear
    this.#keys.set(key, known)
  }

  get duplicates(): number {
    return [...this.#keys.values()].reduce((sum, { present }) => sum + Math.max(0, present - 1), 0)
  }

  get possible(): number {
    const beyond = [...this.#keys.values()].map(({ present, unclear }) => Math.max(0, present + unclear - 1))
    return beyond.reduce((sum, n) => sum + n, 0) - this.duplicates
  }
}

/** Did a call come to something? `undefined`: the record does not say. */
const proof = (call: RunLog["calls"][number], unjudged: boolean): boolean | undefined => {
  if (call.status === "settled_ok" && call.executed) return true
  if (call.isRead) return call.finishedWell
  return call.finishedWell && (unjudged || !call.isEffect) ? undefined : false
}

/** Failed calls of a run: with a later one that came to something, without, and the undecided. */
const progressIn = (run: RunLog) => {
  const unjudged = isUnjudged(run)
  const proofs = run.calls.map((call) => proof(call, unjudged))
  const [lastProof, lastMaybe] = [proofs.lastIndexOf(true), proofs.lastIndexOf(undefined)]
  let [progress, failed, undecided] = [0, 0, 0]
  for (const [at, call] of run.calls.entries()) {
    const why = call.failedOf
    // What the run stopped or put off did not fail.
    if (why === undefined || why === "cancelled") continue
    if (lastProof <= at && lastMaybe > at) undecided += 1
    else {
      failed += 1
      if (lastProof > at) progress += 1
    }
  }
  return { progress, failed, undecided }
}

const classesOf = (runs: ReadonlyArray<RunLog>): Readonly<Record<string, number>> => {
  const counts = new Map<string, number>()
  for (const { failedOf } of runs.flatMap(({ calls }) => calls)) {
    if (failedOf !== undefined) counts.set(failedOf, (counts.get(failedOf) ?? 0) + 1)
  }
  return Object.fromEntries([...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)))
}

/** Traces go in, in the order in which they began; numbers come out. */
export class MetricsCounter {
  readonly #log = new RunsLog()
  #hidden = 0

  /** @param file names the trace where something of it is pointed at */
  readonly feed = (file: string): Feed => {
    const feed = this.#log.feed(file)
    return {
      ...feed,
      see: (record, epochMillis) => {
        if (record.event_type === "run_started" && record.data["content"] === false) this.#hidden += 1
        feed.see(record, epochMillis)
      }
    }
  }

  readonly measure = ({ drift, scores }: MetricsOptions = {}): Metrics => {
    const { attempts } = this.#log
    const runs = [...this.#log.runs.values()]
    const calls = runs.flatMap((run) => run.calls)
    const sum = (of: (run: RunLog) => number) => runs.reduce((total, run) => total + of(run), 0)
    const effects = new Effects()
    for (const run of runs) effects.add(run)
    const reads = calls.filter((call) => call.isRead && call.finished)
    const progress = runs.map(progressIn)
    const total = (name: "progress" | "failed" | "undecided") => progress.reduce((all, one) => all + one[name], 0)
    const ofAttempts = (test: "schema" | "pre" | "scopes") =>
      share(attempts.filter((call) => call[test]).length, attempts.length)
    return {
      runs: runs.length,
      parts: sum(({ parts }) => parts.size),
      ended: sum(({ ended }) => ended.size),
      schemaViolations: ofAttempts("schema"),
      preconditionViolations: ofAttempts("pre"),
      authorizationRefusals: ofAttempts("scopes"),
      postconditionSuccess: share(effects.settledOk, effects.executed),
      readSuccess: share(reads.filter((call) => call.finishedWell).length, reads.length),
      duplicateEffects: share(effects.duplicates, effects.present),
      rollbacks: share(effects.undone, effects.undoable),
      turnsRolledBack: share(
        sum((run) => run.rolledBack),
        sum((run) => run.turns)
      ),
      progressAfterFailure: share(total("progress"), total("failed")),
      utility: utilityOf(runs, scores),
      classes: classesOf(runs),
      left: {
        unjudged: effects.unjudged,
        unclear: effects.unclear,
        possibleDuplicates: effects.possible,
        undecided: total("undecided"),
        withoutIntent: calls.filter((call) => call.executions > 0 && !call.isEffect && !call.isRead).length
      },
      keyedByTrace: this.#hidden > 1,
      drift: drift === undefined ? undefined : driftOf(attempts, drift)
    }
  }
}
