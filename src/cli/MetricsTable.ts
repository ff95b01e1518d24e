/** The numbers of `writ metrics` for people, in 80 columns: what was counted, out of what, and what the number leaves out. */
import { shown } from "../effects/RunDirectory.ts"
import type { Budget, Drift, DriftPlace, DriftWindow, Metrics, Share, Utility } from "../effects/trace/TraceMetrics.ts"
import { count, cut, duration, inline } from "./Printable.ts"
import type { Paint } from "./Screen.ts"

/** What was read besides the numbers. */
export interface Read {
  readonly traces: number
  readonly copies: number
  readonly unreadable: number
}

/** Never rounded to all or nothing. */
const percent = (rate: number): string => {
  const words = (rate * 100).toFixed(1)
  if (words === "0.0" && rate > 0) return "<0.1 %"
  return words === "100.0" && rate < 1 ? ">99.9 %" : `${words} %`
}

const nameWidth = 26
const valueWidth = 8
const indent = " ".repeat(3)

/** Lines of at most 80 columns, the further ones below the text of the first. */
const wrapped = (text: string, left: string): ReadonlyArray<string> => {
  const lines: Array<string> = []
  let line = ""
  for (const word of text.split(" ")) {
    if (line !== "" && left.length + line.length + 1 + word.length > 80) {
      lines.push(`${left}${line}`)
      line = word
    } else line = line === "" ? word : `${line} ${word}`
  }
  return [...lines, `${left}${line}`]
}

const row = (number: string, name: string, value: string, about: string, paint: Paint): string =>
  `${number.padEnd(indent.length)}${name.padEnd(nameWidth)}${value.padStart(valueWidth)}   ${paint.dim(about)}`

/** What is counted over, one of it and several. */
type Noun = readonly [one: string, many: string]

const shareRow = (number: string, name: string, found: Share, [one, many]: Noun, paint: Paint): string =>
  found.rate === undefined
    ? row(number, name, "n/a", `no ${many}`, paint)
    : row(number, name, percent(found.rate), `${found.count} of ${found.of} ${found.of === 1 ? one : many}`, paint)

const budgetWords = ({ modelTurns, outputTokens, thinkTokens, wallMillis }: Budget): string =>
  `budget of a run: ${duration(wallMillis)}, ${count(modelTurns, "turn")} of ${count(outputTokens, "token")}` +
  (thinkTokens === null ? "" : `, ${thinkTokens} of them for reasoning`)

const signed = (value: number): string => `${value < 0 ? "" : "+"}${Number(value.toPrecision(3))}`

const utilityRows = (found: Utility, paint: Paint): ReadonlyArray<string> => {
  const { budget, calls, gain, perCall, reason, runs, scored } = found
  if (perCall === undefined || budget === undefined) {
    const hint = scored === 0 && found.unused === 0 ? "no scores (--scores FILE)" : "see below"
    const why = hint === "see below" ? wrapped(reason ?? "", indent) : []
    return [row("6.", "gain per call", "n/a", hint, paint), ...why.map(paint.dim)]
  }
  const words = `${signed(gain)} in ${count(calls, "call")}, ${scored} of ${count(runs, "run")} scored`
  return [row("6.", "gain per call", signed(perCall), words, paint), paint.dim(`${indent}${budgetWords(budget)}`)]
}

const notes = (found: Metrics, read: Read): ReadonlyArray<string> => {
  const { left } = found
  const said = (n: number, words: string) => (n === 0 ? [] : [words])
  return [
    ...said(
      left.unclear,
      `${count(left.unclear, "execution")} left it unknown whether the effect is there: not in 3 and 4.`
    ),
    ...said(left.possibleDuplicates, `${left.possibleDuplicates} of them may be a duplicate.`),
    ...said(
      left.unjudged,
      `${count(left.unjudged, "effect")} of traces that do not say whether promises were kept: not in 2 and 4.`
    ),
    ...said(left.undecided, `${count(left.undecided, "failed call")} of such traces: not in 5.`),
    ...said(
      left.withoutIntent,
      `${count(left.withoutIntent, "call")} that did more than read, with no intent on record: not in 2, 3 and 4.`
    ),
    ...said(
      found.keyedByTrace ? found.duplicateEffects.of : 0,
      "Traces without content have keys of their own: 3 is within each trace, not across."
    ),
    ...said(found.utility.unused, `${count(found.utility.unused, "score")} of runs that were not read.`),
    ...said(read.copies, `${count(read.copies, "copy").replace("copys", "copies")} of traces left out.`),
    ...said(read.unreadable, `${count(read.unreadable, "line")} could not be read.`)
  ]
}

const head = (found: Metrics, read: Read): string => {
  const open = found.parts - found.ended
  const resumed = found.parts === found.runs ? "" : ` in ${found.parts} parts`
  return (
    [
      `${count(found.runs, "run")}${resumed}`,
      ...(open > 0 ? [`${open} without an end`] : []),
      count(found.schemaViolations.of, "attempt"),
      count(found.readSuccess.of, "read"),
      count(found.postconditionSuccess.of + found.left.unjudged, "effect")
    ].join(", ") + (read.traces === found.parts ? "" : ` (${count(read.traces, "file")})`)
  )
}

const placeWords = ({ attempt, call, file, runId, seq }: DriftPlace): string => {
  const what = call === undefined || call === "" ? "a malformed turn" : cut(call, 24)
  return `attempt ${attempt}, ${what} of ${cut(runId, 40)} (event ${seq} in ${inline(shown(file))})`
}

const windowWords = (name: string, found: DriftWindow, window: number, paint: Paint): ReadonlyArray<string> => [
  `${indent}${name.padEnd(nameWidth)}${percent(found.rate).padStart(valueWidth)}   ${paint.dim(
    `${found.violations} of ${window}, attempts ${found.from.attempt} to ${found.to.attempt}`
  )}`
]

const driftRows = (found: Drift, paint: Paint): ReadonlyArray<string> => {
  const { above, alarm, attempts, last, tripped, window, windows, worst } = found
  const threshold = alarm === undefined ? "" : `, alarm above ${percent(alarm)}`
  const title = paint.bold(`drift: schema violations in ${window} attempts in a row${threshold}`)
  if (worst === undefined || last === undefined) {
    return [title, `${indent}not enough attempts: ${attempts} of ${window}`]
  }
  const verdict =
    tripped === undefined
      ? alarm === undefined
        ? []
        : [`${indent}${paint.green("no alarm")}`]
      : [
          `${indent}${paint.red("ALARM")} in ${above} of ${count(windows, "window")}; first tripped by`,
          ...wrapped(placeWords(tripped.to), indent.repeat(2))
        ]
  return [
    title,
    ...windowWords("worst", worst, window, paint),
    ...windowWords("latest", last, window, paint),
    ...verdict
  ]
}

const classRow = (classes: Readonly<Record<string, number>>, paint: Paint): ReadonlyArray<string> => {
  const words = Object.entries(classes).map(([name, n]) => `${name} ${n}`)
  return words.length === 0 ? [] : ["", ...wrapped(`failed attempts: ${words.join(", ")}`, "").map(paint.dim)]
}

const nouns = {
  attempts: ["attempt", "attempts"],
  executed: ["executed effect", "executed effects"],
  reads: ["finished read", "finished reads"],
  effects: ["effect that is there", "effects that are there"],
  undoable: ["effect that undoes nothing", "effects that undo nothing"],
  turns: ["turn of the model", "turns of the model"],
  failed: ["failed call", "failed calls"]
} as const satisfies Readonly<Record<string, Noun>>

/** The whole answer. */
export const table = (found: Metrics, read: Read, paint: Paint): string => {
  const of = (number: string, name: string, part: Share, noun: keyof typeof nouns) =>
    shareRow(number, name, part, nouns[noun], paint)
  const said = notes(found, read).flatMap((note) => wrapped(note, ""))
  return [
    head(found, read),
    "",
    of("1.", "schema violations", found.schemaViolations, "attempts"),
    of("", "precondition violations", found.preconditionViolations, "attempts"),
    of("", "authorization refusals", found.authorizationRefusals, "attempts"),
    of("2.", "postcondition success", found.postconditionSuccess, "executed"),
    of("", "reads that succeeded", found.readSuccess, "reads"),
    of("3.", "duplicate effects", found.duplicateEffects, "effects"),
    of("4.", "rollbacks of effects", found.rollbacks, "undoable"),
    of("", "turns rolled back", found.turnsRolledBack, "turns"),
    of("5.", "progress after a failure", found.progressAfterFailure, "failed"),
    ...utilityRows(found.utility, paint),
    ...classRow(found.classes, paint),
    ...(said.length === 0 ? [] : ["", ...said.map(paint.dim)]),
    ...(found.drift === undefined ? [] : ["", ...driftRows(found.drift, paint)])
  ].join("\n")
}
