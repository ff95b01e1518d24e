/** The commands that compare, repeat, explain, count and export traces: names, flags, help. Programs are imported when they run. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Flags from "./Flags.ts"

const named = (name: string, description: string) => Argument.String(name).pipe(Argument.withDescription(description))

const aTrace = "A trace file, a run's directory, or a run's id"

const switchOn = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false))

const diffTraces = Command.make(
  "diff",
  {
    a: named("a", aTrace),
    b: named("b", "Another one"),
    failOnDiff: switchOn("fail-on-diff", "End with 3 if they differ"),
    json: Flags.json,
    color: Flags.color
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./traceDiff.ts")),
      ({ diffTraces }) => diffTraces(flags)
    )
).pipe(
  Command.withDescription("Compare two runs: what is the same, what is not, and where and why they part"),
  Command.withShortDescription("Compare two runs")
)

const replayTrace = Command.make(
  "replay",
  {
    trace: named("trace", aTrace),
    full: switchOn("full", "Run the whole run again from its recorded turns; nothing is executed"),
    workspace: Flags.text(
      "workspace",
      "DIR",
      "The directory that the run's file tools read (default: the run's own, if it has one)"
    ),
    fixture: Flag.String("fixture").pipe(
      Flag.withMetavar("KEY=VALUE"),
      Flag.withDescription("A fact the run had for the lookup tool; repeatable"),
      Flag.atLeast(0)
    ),
    ...Flags.settings("webHost", "webSearch", "webCache", "webHtml"),
    json: Flags.json,
    color: Flags.color
  },
  ({ color, fixture, full, json, trace, workspace, ...raw }) =>
    Effect.flatMap(
      Effect.promise(() => import("./traceReplay.ts")),
      ({ replayTrace }) => replayTrace({ trace, full, workspace, fixture, json, color, web: Flags.rawOf(raw) })
    )
).pipe(
  Command.withDescription(
    "Execute recorded calls that only read once more and compare what they come to. Ends with 3 if one differs, or if there is nothing to compare."
  ),
  Command.withShortDescription("Execute recorded calls again and compare")
)

const explainCall = Command.make(
  "explain",
  {
    trace: named("trace", aTrace),
    call: named("call", "The call's id, or its place among all calls, from 1"),
    json: Flags.json,
    color: Flags.color
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./traceExplain.ts")),
      ({ explainCall }) => explainCall(flags)
    )
).pipe(
  Command.withDescription("Follow one call from what the model wrote to what the model was told, with reasons"),
  Command.withShortDescription("Follow one call from proposal to answer")
)

const stats = Command.make(
  "stats",
  {
    directory: named("directory", "Where to look for traces, all the way down"),
    json: Flags.json,
    csv: switchOn("csv", "Print one line of CSV per run"),
    color: Flags.color
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./traceStats.ts")),
      ({ stats }) => stats(flags)
    )
).pipe(
  Command.withDescription("Count many runs: how they ended, what failed, how long things took, how many tokens"),
  Command.withShortDescription("Count many runs")
)

const exportTrace = Command.make(
  "export",
  {
    trace: named("trace", aTrace),
    otlp: Flags.text("otlp", "URL", "Send it to this OpenTelemetry collector (OTLP over HTTP)"),
    json: Flags.json
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./traceExport.ts")),
      ({ exportTrace }) => exportTrace(flags)
    )
).pipe(
  Command.withDescription(
    "Make OpenTelemetry spans of a run and print (--json) or send them (--otlp). Content is in them only if it is in the trace."
  ),
  Command.withShortDescription("Make OpenTelemetry spans of a run")
)

/** What `writ trace` knows besides looking and validating. */
export const traceCommands = [diffTraces, replayTrace, explainCall, stats, exportTrace] as const
