/** `writ ledger list`: effects as a table or as JSON, oldest first. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import type { LedgerRecord } from "../actors/EffectLedger.ts"
import { partOf } from "../effects/RunDirectory.ts"
import { nearest } from "../tools/Nearest.ts"
import { inJson, usage } from "./Ending.ts"
import { type LedgerFlags, type OpenLedger, shortLength, withLedger } from "./LedgerPlace.ts"
import { moment, painted, rowDocument, wordOf } from "./LedgerView.ts"
import { count, cut, jsonText } from "./Printable.ts"
import * as Screen from "./Screen.ts"

export interface ListFlags extends LedgerFlags {
  readonly run: string | undefined
  readonly unknown: boolean
}

/** Names are cut where they would push the other columns off a terminal; `show` has them whole. */
const widest = 24

const tableOf = (records: ReadonlyArray<LedgerRecord>, paint: Screen.Paint): ReadonlyArray<string> => {
  const length = shortLength(records.map(({ entry }) => entry.key))
  const head = ["KEY", "TOOL", "RUN", "STANDING", "MODE", "WHEN"]
  const rows = records.map((record) => {
    const { entry } = record
    return [
      entry.key.slice(0, length),
      cut(entry.tool, widest),
      cut(entry.runId, widest),
      wordOf(record),
      entry.mode,
      moment(entry.attempts[0]!.at)
    ]
  })
  const widths = head.map((name, at) => Math.max(name.length, ...rows.map((row) => row[at]!.length)))
  const line = (row: ReadonlyArray<string>, style: (text: string, at: number) => string) =>
    row.map((text, at) => style(at === row.length - 1 ? text : text.padEnd(widths[at]!), at)).join("  ")
  return [
    line(head, paint.dim),
    ...rows.map((row, index) => {
      const colour = painted(paint, records[index]!)
      return line(row, (text, at) => (at === 3 ? colour(text) : text))
    })
  ]
}

const summary = (records: ReadonlyArray<LedgerRecord>): string => {
  const words = records.map(wordOf)
  const parts = ["happened", "no effect", "running", "unknown"].flatMap((word) => {
    const times = words.filter((one) => one === word).length
    return times === 0 ? [] : [`${times} ${word}`]
  })
  return `${count(records.length, "effect")}: ${parts.join(", ")}`
}

const chosen = Effect.fnUntraced(function* ({ ledger, place }: OpenLedger, { run, unknown }: ListFlags) {
  // All parts of a run share its name here.
  const runId = run === undefined ? undefined : partOf(run).root
  const records = yield* ledger.list(runId === undefined ? {} : { runId })
  if (runId !== undefined && records.length === 0) {
    const runs = [...new Set((yield* ledger.list()).map(({ entry }) => entry.runId))]
    const near = nearest(runId, runs)
    const hint = near === undefined ? "" : `; did you mean ${near}?`
    return yield* usage(`the effect ledger ${place} has no effects of a run ${run}${hint}`)
  }
  return unknown ? records.filter(({ standing }) => standing === "unknown") : records
})

export const listEffects = (flags: ListFlags) =>
  withLedger(flags, (open) =>
    Effect.gen(function* () {
      const records = yield* chosen(open, flags)
      if (flags.json) {
        const document = { ledger: open.place, effects: records.map(rowDocument) }
        return yield* Console.log(jsonText(document))
      }
      if (records.length === 0) {
        return yield* Console.log(flags.unknown ? "no effect is unknown" : "the ledger holds no effects")
      }
      const paint = yield* Screen.paintFor(flags.color)
      return yield* Console.log([...tableOf(records, paint), "", summary(records)].join("\n"))
    })
  ).pipe(inJson(flags.json))
