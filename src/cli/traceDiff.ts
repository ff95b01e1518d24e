/** `writ trace diff A B`: what is the same in two runs, what is not, and where and why they part. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { shown } from "../effects/RunDirectory.ts"
import { aspects, type Diff, type Divergence, diff, type Finding } from "../effects/trace/TraceDiff.ts"
import { show } from "../effects/trace/TraceTimeline.ts"
import { isLeftOut } from "../effects/trace/TraceValues.ts"
import { endWith, inJson, usage } from "./Ending.ts"
import { count, cut, inline, jsonText } from "./Printable.ts"
import * as Screen from "./Screen.ts"
import { load, type TraceFile } from "./TraceFile.ts"

export interface DiffFlags {
  readonly a: string
  readonly b: string
  readonly failOnDiff: boolean
  readonly json: boolean
  readonly color: boolean | undefined
}

/** Findings of an aspect that are shown one by one; the rest is counted. */
const shownFindings = 8
const valueWidth = 100

const side = (value: unknown): string => (value === undefined ? "(nothing)" : cut(show(value) || '""', valueWidth))

const findingLine = ({ a, b, comparison, path }: Finding, paint: Screen.Paint): string =>
  comparison === "different"
    ? `    ${inline(path)}: ${paint.red(side(a))} | ${paint.green(side(b))}`
    : `    ${inline(path)}: ${paint.dim(isLeftOut(a) && isLeftOut(b) ? `both ${side(a)}` : `A: ${side(a)} | B: ${side(b)}`)}`

const aspectLines = (found: Diff, paint: Screen.Paint): ReadonlyArray<string> =>
  aspects.flatMap((aspect) => {
    const state = found.aspects[aspect]
    const of = found.findings.filter((finding) => finding.aspect === aspect)
    const words = {
      same: paint.green("same"),
      different: paint.red("different"),
      undetermined: paint.yellow("cannot be told")
    }
    const more = of.length - shownFindings
    return [
      `${aspect.padEnd(11)} ${words[state]}`,
      ...of.slice(0, shownFindings).map((finding) => findingLine(finding, paint)),
      ...(more > 0 ? [`    and ${more} more`] : [])
    ]
  })

const divergenceLines = (
  { a, at, b, path, valueA, valueB, why }: Divergence,
  prefix: Diff["prefix"],
  paint: Screen.Paint
) => {
  const place = (name: string, seq: number | undefined) =>
    seq === undefined ? `the end of ${name}` : `event ${seq} of ${name}`
  return [
    "",
    `${paint.bold("they part at")} ${place("A", a?.seq)}, ${place("B", b?.seq)}: ${inline(why)}`,
    ...(path === "event_type"
      ? []
      : [`    ${inline(path)}: ${paint.red(side(valueA))} | ${paint.green(side(valueB))}`]),
    paint.dim(`    ${count(at, "event")} before it agree`),
    ...(prefix === undefined
      ? []
      : [`    ${prefix.toUpperCase()} is the beginning of the other one: all its events are of the same types`])
  ]
}

const verdictWords: Readonly<Record<Diff["verdict"], string>> = {
  same: "the runs are the same",
  different: "the runs differ",
  undetermined: "nothing differs in what can be compared"
}

const human = (a: TraceFile, b: TraceFile, found: Diff, paint: Screen.Paint): string =>
  [
    `${paint.dim("A")} ${inline(shown(a.path))} ${paint.dim(inline(a.run.runId))}`,
    `${paint.dim("B")} ${inline(shown(b.path))} ${paint.dim(inline(b.run.runId))}`,
    "",
    ...aspectLines(found, paint),
    ...(found.divergence === undefined ? [] : divergenceLines(found.divergence, found.prefix, paint)),
    "",
    ...found.notes.map((note) => paint.dim(inline(note))),
    paint.bold(verdictWords[found.verdict])
  ].join("\n")

const documentOf = (a: TraceFile, b: TraceFile, found: Diff) => {
  const { divergence } = found
  const event = (record: Divergence["a"]) =>
    record === undefined ? null : { seq: record.seq, event_type: record.event_type, step: record.step }
  return {
    a: { file: a.path, run_id: a.run.runId, schema: a.run.schema },
    b: { file: b.path, run_id: b.run.runId, schema: b.run.schema },
    verdict: found.verdict,
    aspects: found.aspects,
    prefix: found.prefix ?? null,
    divergence:
      divergence === undefined
        ? null
        : {
            agreeing_events: divergence.at,
            a: event(divergence.a),
            b: event(divergence.b),
            path: divergence.path,
            value_a: divergence.valueA ?? null,
            value_b: divergence.valueB ?? null,
            why: divergence.why
          },
    findings: found.findings.map(({ a: left, aspect, b: right, comparison, path }) => ({
      aspect,
      path,
      comparison,
      a: left ?? null,
      b: right ?? null
    })),
    notes: found.notes
  }
}

const differs = 3

/** Ends with 0, also where they differ, unless that is asked for. */
export const diffTraces = (flags: DiffFlags) =>
  Effect.gen(function* () {
    const [a, b] = [yield* load(flags.a), yield* load(flags.b)]
    for (const { path, records } of [a, b]) if (records.length === 0) return yield* usage(`${path} holds no events`)
    const compared = diff(a.run, b.run)
    const damaged = [a, b].flatMap(({ path, unreadable }) =>
      unreadable === 0 ? [] : [`${count(unreadable, "line")} of ${shown(path)} cannot be read`]
    )
    const found = { ...compared, notes: [...compared.notes, ...damaged] }
    if (flags.json) yield* Console.log(jsonText(documentOf(a, b, found)))
    else yield* Console.log(human(a, b, found, yield* Screen.paintFor(flags.color)))
    return yield* endWith(flags.failOnDiff && found.verdict === "different" ? differs : 0)
  }).pipe(inJson(flags.json))
