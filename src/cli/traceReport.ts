/** `writ trace report`: a trace as one HTML page that opens from disk. */
import { closeSync, fsyncSync, openSync, realpathSync, writeSync } from "node:fs"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { shown } from "../effects/RunDirectory.ts"
import { ofFile } from "../effects/trace/report/HtmlReport.ts"
import { inJson, usage } from "./Ending.ts"
import { count, inline, jsonText, size } from "./Printable.ts"
import { locate } from "./TraceFile.ts"
import { optionsFor } from "./traceValidate.ts"

export interface ReportFlags {
  readonly trace: string
  /** Where the page goes. */
  readonly output: string | undefined
  readonly json: boolean
}

const real = (path: string): string | undefined => {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}

/** Writes the page piece by piece. Its size in bytes. */
const write = (path: string, pieces: ReadonlyArray<string>) =>
  Effect.try({
    try: () => {
      const file = openSync(path, "w")
      try {
        let bytes = 0
        for (const piece of pieces) {
          const part = Buffer.from(piece)
          for (let at = 0; at < part.length; ) at += writeSync(file, part, at)
          bytes += part.length
        }
        fsyncSync(file)
        return bytes
      } finally {
        closeSync(file)
      }
    },
    catch: (cause) => (cause instanceof Error ? cause.message : String(cause))
  }).pipe(Effect.catch((reason) => usage(`${path} cannot be written: ${reason}`)))

export const report = (flags: ReportFlags) =>
  Effect.gen(function* () {
    const path = yield* locate(flags.trace)
    const output = flags.output ?? "report.html"
    if (real(output) === real(path)) return yield* usage(`${output} is the trace itself: choose another file`)
    const options = yield* optionsFor(path, true)
    const made = yield* ofFile(path, options).pipe(Effect.catchTag("TraceReadError", (error) => usage(error.message)))
    const bytes = yield* write(output, made.pieces)
    const { summary, verdict } = made
    const document = {
      file: path,
      report: output,
      bytes,
      status: summary.status.replaceAll(" ", "_"),
      events: summary.events,
      unreadable: made.unreadable,
      violation_count: verdict.violationCount
    }
    yield* Console.log(
      flags.json ? jsonText(document) : `${inline(shown(output))}: ${count(summary.events, "event")}, ${size(bytes)}`
    )
  }).pipe(inJson(flags.json))
