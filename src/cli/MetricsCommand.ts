/** `writ metrics`: names, flags, help. The program is imported when it runs. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Flags from "./Flags.ts"

export const metrics = Command.make(
  "metrics",
  {
    traces: Argument.String("trace").pipe(
      Argument.withDescription("Trace files, directories of runs, patterns, or ids of runs"),
      Argument.variadic()
    ),
    scores: Flags.text("scores", "FILE", 'Scores by run: {"RUN-ID": {"with": 0.8, "without": 0.5}}'),
    window: Flags.number("window", "N", "Watch the schema-violation rate over N attempts in a row (default 100)"),
    alarm: Flags.text("alarm", "RATE", "End with 3 where that rate is above this: 0.05 or 5%"),
    json: Flags.json,
    color: Flags.color
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./metrics.ts")),
      ({ metrics }) => metrics(flags)
    )
).pipe(
  Command.withDescription(
    "Measure tool use from traces alone: violations, kept promises, duplicates, rollbacks, progress after failures, gain per call. Where there was nothing to count it says n/a. Ends with 3 if --alarm trips."
  ),
  Command.withShortDescription("Measure tool use from traces alone"),
  Command.withExamples([
    { command: "writ metrics .writ/runs", description: "All runs of this directory" },
    {
      command: "writ metrics .writ/runs --window 50 --alarm 5%",
      description: "Fail where more than 5 % of 50 attempts in a row violate a schema"
    }
  ])
)
