/** A trace that is needed as a whole: found by file, directory or id, read, and taken apart. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { findTrace } from "../effects/RunDirectory.ts"
import { readFile, type TraceRecord } from "../effects/trace/TraceReader.ts"
import { type TraceRun, takeApart } from "../effects/trace/TraceRun.ts"
import { type UsageError, usage } from "./Ending.ts"
import { noTrace } from "./Places.ts"

export interface TraceFile {
  readonly path: string
  /** As they were written. */
  readonly records: ReadonlyArray<TraceRecord>
  readonly run: TraceRun
  /** Lines that could not be read; one that the file ends inside of is what a crash leaves. */
  readonly unreadable: number
  readonly cut: boolean
  /** The moment the record began, in milliseconds since 1970; 0 where it does not say. */
  readonly epochMillis: number
}

/** The path of a trace, or a usage error. */
export const locate = (named: string): Effect.Effect<string, UsageError> => {
  const path = findTrace(named)
  return path === undefined ? usage(noTrace(named)) : Effect.succeed(path)
}

/** Reads one run. A file with several is refused: which of them is meant cannot be known. */
export const load = Effect.fnUntraced(function* (named: string): Effect.fn.Return<TraceFile, UsageError> {
  const path = yield* locate(named)
  const records: Array<TraceRecord> = []
  const found = { unreadable: 0, cut: false, epochMillis: 0 }
  yield* Stream.runForEach(readFile(path, { sources: true }), (item) =>
    Effect.sync(() => {
      if (item._tag === "Unreadable") {
        if (item.cut) found.cut = true
        else found.unreadable += 1
        return
      }
      const epoch = item.source?.envelope["ts_epoch_ms"]
      if (records.length === 0 && typeof epoch === "number") found.epochMillis = epoch - item.record.t_ms
      records.push(item.record)
    })
  ).pipe(Effect.catchTag("TraceReadError", (error) => usage(error.message)))
  const runs = new Set(records.map(({ run_id }) => run_id)).size
  if (runs > 1) return yield* usage(`${path} holds ${runs} runs, and this command is about one`)
  return { path, records, run: takeApart(records), ...found }
})
