/** `writ trace inspect`: the timeline of a run, what it came to, and how much of the file could not be read. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { ClaimCheck } from "../effects/trace/claims/ClaimCheck.ts"
import { follow } from "../effects/trace/TraceFollow.ts"
import { eachItem, type Item, type Unreadable } from "../effects/trace/TraceReader.ts"
import { type Row, rowOf, type Summary, type Tone, Totals } from "../effects/trace/TraceTimeline.ts"
import type { Verdict } from "../effects/trace/TraceValidator.ts"
import { claimDocument, claimLines } from "./ClaimView.ts"
import { inJson } from "./Ending.ts"
import { count, cut, duration, inline, jsonText } from "./Printable.ts"
import * as Screen from "./Screen.ts"
import { locate } from "./TraceFile.ts"
import { judge, Problems, recordDocument, recordLines } from "./TraceProblems.ts"

export interface InspectFlags {
  readonly trace: string
  /** Goes on reading until the run has ended. */
  readonly follow: boolean
  readonly json: boolean
  readonly color: boolean | undefined
}

/** Unreadable lines that are named one by one; the rest is counted. */
const namedLines = 20

interface Found {
  readonly unreadable: Array<Unreadable>
  unreadableCount: number
  readonly totals: Totals
  readonly problems: Problems
  readonly claims: ClaimCheck
}

/** Reads the trace; `see` gets each row as it comes, and `between` runs from time to time, and at the end. */
const scan = Effect.fnUntraced(function* (
  path: string,
  following: boolean,
  see: (row: Row) => void,
  between: Effect.Effect<void> = Effect.void
) {
  const found: Found = {
    unreadable: [],
    unreadableCount: 0,
    totals: new Totals(),
    problems: new Problems(),
    claims: new ClaimCheck()
  }
  const take = (item: Item): void => {
    if (item._tag === "Unreadable") {
      found.unreadableCount += 1
      found.claims.unreadable()
      if (found.unreadable.length < namedLines) found.unreadable.push(item)
      return
    }
    found.totals.add(item.record)
    found.claims.see(item.record)
    const row = rowOf(item.record)
    if (row === undefined) return
    found.problems.see(row)
    see(row)
  }
  yield* following
    ? Stream.runForEach(follow(path), (item) =>
        Effect.andThen(
          Effect.sync(() => take(item)),
          between
        )
      )
    : eachItem(path, take, { between })
  return found
})

const lineOf = (paint: Screen.Paint, columns: number): ((row: Row) => string) => {
  const tones: Readonly<Record<Tone, (text: string) => string>> = {
    plain: (text) => text,
    good: paint.green,
    bad: paint.red,
    quiet: paint.dim
  }
  return ({ detail, label, seconds, tone }) => {
    const time = seconds.toFixed(3).padStart(9)
    const shown = cut(detail, Math.max(20, columns - 29))
    return `${paint.dim(time)}  ${tones[tone](inline(label).padEnd(16))} ${tone === "quiet" ? paint.dim(shown) : shown}`.trimEnd()
  }
}

const statusLine = ({ events, status, statusDetail }: Summary): string => {
  if (status === "unfinished") {
    return events === 0
      ? "no events"
      : "unfinished: there is no terminal event; the process was killed, or is still running"
  }
  return statusDetail === "" ? status : `${status}: ${statusDetail}`
}

const closing = (
  summary: Summary,
  found: Found,
  verdict: Verdict | undefined,
  paint: Screen.Paint
): ReadonlyArray<string> => {
  const {
    artifacts,
    codec,
    content,
    events,
    model,
    modelMillis,
    outputTokens,
    rejected,
    runIds,
    seconds,
    toolCalls,
    toolMillis,
    turns
  } = summary
  const status = inline(statusLine(summary))
  const colour = summary.status === "completed" ? paint.green : paint.red
  const [record = "", ...broken] = recordLines(verdict, summary)
  const field = (name: string, value: string) => `${paint.dim(name.padEnd(9))} ${value}`
  return [
    "",
    field("status", colour(status)),
    field("run", `${runIds.map(inline).join(", ")}${runIds.length > 1 ? paint.red("  several runs in one file") : ""}`),
    ...(model === undefined
      ? []
      : [field("model", inline(`${model}${codec === undefined ? "" : `, codec ${codec}`}`))]),
    field(
      "counts",
      `${count(turns, "turn")}, ${count(toolCalls, "call")}, ${rejected} rejected, ${count(artifacts, "artifact")}, ${count(outputTokens, "token")}`
    ),
    field("time", `${duration(seconds * 1000)}: model ${duration(modelMillis)}, tools ${duration(toolMillis)}`),
    field(
      "lines",
      `${count(events, "event")}, ${found.unreadableCount} unreadable${content === false ? "; recorded without content" : ""}`
    ),
    field("problems", found.problems.text),
    field("record", (broken.length > 0 ? paint.red : String)(record)),
    ...broken.map((line) => field("", line)),
    ...claimLines(found.claims.end(), paint).map((line, at) => field(at === 0 ? "claims" : "", line))
  ]
}

const complaints = ({ unreadable, unreadableCount }: Found): ReadonlyArray<string> => [
  ...unreadable.map(
    ({ bytes, line, offset, reason }) => `line ${line} (byte ${offset}, ${count(bytes, "byte")}): ${reason}`
  ),
  ...(unreadableCount > unreadable.length ? [`and ${unreadableCount - unreadable.length} more`] : [])
]

const inspectHuman = Effect.fnUntraced(function* (path: string, flags: InspectFlags) {
  const screen = yield* Screen.make(flags.color)
  const line = lineOf(screen.paint, screen.columns)
  // Rows are printed in portions: one write each would cost more than reading them.
  let portion: Array<string> = []
  const print = Effect.suspend(() => {
    const text = portion.join("\n")
    portion = []
    return text === "" ? Effect.void : Console.log(text)
  })
  const found = yield* scan(path, flags.follow, (row) => void portion.push(line(row)), print)
  const { summary } = found.totals
  yield* Console.log(closing(summary, found, yield* judge(path, summary), screen.paint).join("\n"))
  for (const complaint of complaints(found)) yield* Console.error(`writ: ${inline(complaint)}`)
})

const inspectJson = Effect.fnUntraced(function* (path: string, flags: InspectFlags) {
  const rows: Array<Row> = []
  const { claims, problems, totals, unreadable, unreadableCount } = yield* scan(
    path,
    flags.follow,
    (row) => void rows.push(row)
  )
  const { summary } = totals
  const document = {
    file: path,
    schema: summary.schema ?? null,
    run_ids: summary.runIds,
    status: summary.status.replaceAll(" ", "_"),
    status_detail: summary.statusDetail,
    model: summary.model ?? null,
    codec: summary.codec ?? null,
    content: summary.content ?? null,
    counts: {
      events: summary.events,
      turns: summary.turns,
      tool_calls: summary.toolCalls,
      rejected: summary.rejected,
      artifacts: summary.artifacts,
      output_tokens: summary.outputTokens,
      redactions: summary.redactions
    },
    claims: claimDocument(claims.end()),
    problems: problems.document,
    record: recordDocument(yield* judge(path, summary)),
    seconds: summary.seconds,
    model_ms: summary.modelMillis,
    tool_ms: summary.toolMillis,
    unreadable: {
      count: unreadableCount,
      lines: unreadable.map(({ bytes, cut, line, offset, reason }) => ({ line, offset, bytes, reason, cut }))
    },
    timeline: rows
  }
  yield* Console.log(jsonText(document))
})

export const inspect = (flags: InspectFlags) =>
  Effect.gen(function* () {
    const path = yield* locate(flags.trace)
    yield* flags.json ? inspectJson(path, flags) : inspectHuman(path, flags)
  }).pipe(inJson(flags.json))
