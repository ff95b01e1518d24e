/** The commands about traces: names, flags, help. Programs are imported when they run. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Flags from "./Flags.ts"
import * as SettingLists from "./SettingLists.ts"

const named = (name: string, description: string) => Argument.String(name).pipe(Argument.withDescription(description))

const aTrace = "A trace file, a run's directory, or a run's id"

const inspectTrace = Command.make(
  "inspect",
  {
    trace: named("trace", aTrace),
    follow: Flags.switchOn("follow", "Go on reading until the run has ended").pipe(Flag.withAlias("f")),
    json: Flags.json,
    color: Flags.color
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./traceInspect.ts")),
      ({ inspect }) => inspect(flags)
    )
).pipe(Command.withDescription("Show what happened in a run, and when"))

const validateTrace = Command.make(
  "validate",
  {
    traces: Argument.String("trace").pipe(
      Argument.withDescription("Trace files, directories of runs, or ids of runs"),
      Argument.variadic()
    ),
    allowIncomplete: Flags.switchOn("allow-incomplete", "Accept a trace without an end, as a crash leaves it"),
    artifacts: Flag.Boolean("artifacts").pipe(
      Flag.withDescription("Compare the artifacts beside the trace as well (default: yes)"),
      Flag.withDefault(true)
    ),
    json: Flags.json,
    color: Flags.color
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./traceValidate.ts")),
      ({ validate }) => validate(flags)
    )
).pipe(
  Command.withDescription(
    "Check that a trace can be believed: unbroken, in order, and a run of the documented state machine. Ends with 3 if not."
  ),
  Command.withShortDescription("Check that a trace can be believed")
)

const diffTraces = Command.make(
  "diff",
  {
    a: named("a", aTrace),
    b: named("b", "Another one"),
    failOnDiff: Flags.switchOn("fail-on-diff", "End with 3 if they differ"),
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
    full: Flags.switchOn("full", "Run the whole run again from its recorded turns; nothing is executed"),
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
    ...Flags.settings(...SettingLists.tools, "webHost", "webSearch", "webCache", "webHtml"),
    json: Flags.json,
    color: Flags.color
  },
  ({ color, fixture, full, json, trace, workspace, ...raw }) =>
    Effect.flatMap(
      Effect.promise(() => import("./traceReplay.ts")),
      ({ replayTrace }) => replayTrace({ trace, full, workspace, fixture, json, color, settings: Flags.rawOf(raw) })
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
    call: named("call", "The call's id, or its place among all calls, from 1; or `answer`, for what the answer claims"),
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
    csv: Flags.switchOn("csv", "Print one line of CSV per run"),
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

const reportTrace = Command.make(
  "report",
  {
    trace: named("trace", aTrace),
    output: Flags.text("output", "FILE", "The page to write (default report.html)").pipe(Flag.withAlias("o")),
    json: Flags.json,
    color: Flags.color
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./traceReport.ts")),
      ({ report }) => report(flags)
    )
).pipe(
  Command.withDescription(
    "Write a trace as one HTML page: summary, timeline, conversation, artifacts, limits, problems, every event. It opens from disk and loads nothing."
  ),
  Command.withShortDescription("Write a trace as one HTML page")
)

/** `writ trace …` */
export const trace = Command.make("trace").pipe(
  Command.withDescription("Look at the record of a run"),
  Command.withSubcommands([
    inspectTrace,
    validateTrace,
    diffTraces,
    replayTrace,
    explainCall,
    stats,
    exportTrace,
    reportTrace
  ])
)
