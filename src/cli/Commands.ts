/**
 * The command tree: names, flags, help. Every handler imports its program when it runs, so that help and usage errors
 * load neither an engine nor a pool.
 */

import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { approve, deny } from "./ApprovalCommands.ts"
import { codec } from "./CodecCommands.ts"
import * as Flags from "./Flags.ts"
import { ledger } from "./LedgerCommands.ts"
import { mcp } from "./McpCommands.ts"
import { metrics } from "./MetricsCommand.ts"
import { tools } from "./ToolCommands.ts"
import { traceCommands } from "./TraceCommands.ts"

const showing = { json: Flags.json, quiet: Flags.quiet, color: Flags.color }

const demo = Command.make(
  "demo",
  { ...showing, runDir: Flags.text("run-dir", "DIR", "Directory of this run (default .writ/runs/RUN-ID)") },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./demo.ts")),
      ({ demo }) => demo(flags)
    )
).pipe(
  Command.withDescription(
    "Run the demonstration task on the tiny model that ships: two files are read, a number is calculated, a report is written. No download."
  ),
  Command.withShortDescription("Run the demonstration on the model that ships"),
  Command.withExamples([{ command: "writ demo", description: "See a run from start to end" }])
)

const settings = Flags.settings(
  "model",
  "script",
  "codec",
  "system",
  "tools",
  "toolsDir",
  "mcp",
  "mcpContracts",
  "mcpEnv",
  "mcpHeader",
  "webHost",
  "webAddress",
  "webSearch",
  "webCache",
  "webCacheMode",
  "webHtml",
  "workspace",
  "fixture",
  "calls",
  "thinking",
  "constrained",
  "seed",
  "temperature",
  "topK",
  "topP",
  "maxTurns",
  "maxToolCalls",
  "wallTime",
  "toolTimeout",
  "maxOutputTokens",
  "maxThinkTokens",
  "maxResultBytes",
  "maxRepairs",
  "loopThreshold",
  "approve",
  "approvalExpiry",
  "profile",
  "grant",
  "deny",
  "scope",
  "retryAttempts",
  "retryDelay",
  "retryFactor",
  "candidates",
  "dryRun",
  "runDir",
  "ledger",
  "modelsDir",
  "modelHash",
  "traceContent",
  "tokenEvents",
  "context",
  "threads",
  "gpu"
)

const run = Command.make(
  "run",
  {
    task: Argument.String("task").pipe(Argument.withDescription("What the model is asked to do"), Argument.variadic()),
    prompt: Flags.text("prompt", "TEXT", "The task, where it could be taken for something else"),
    promptFile: Flags.text("prompt-file", "FILE", "Read the task from a file, or from standard input with -"),
    resume: Flags.text("resume", "RUN", "Continue a run: its id, its directory or its trace"),
    answer: Flags.text("answer", "TEXT", "With --resume: what the run asked for"),
    suspend: Flag.Boolean("suspend").pipe(
      Flag.withDescription("Short for --approve suspend: stop before a call that needs an approval"),
      Flag.withDefault(false)
    ),
    ...settings,
    ...showing
  },
  ({ answer, color, json, prompt, promptFile, quiet, resume, suspend, task, ...raw }) =>
    Effect.flatMap(
      Effect.promise(() => import("./run.ts")),
      ({ run }) =>
        run({ task, prompt, promptFile, resume, answer, suspend, json, quiet, color, settings: Flags.rawOf(raw) })
    )
).pipe(
  Command.withDescription(
    "Run a task with a local model. Every option except the task can also be set in writ.config.json and in WRIT_… variables; flags win, then variables."
  ),
  Command.withShortDescription("Run a task with a local model"),
  Command.withExamples([
    { command: 'writ run "What is 17.5% of 240?"', description: "A task for the tiny demo model" },
    {
      command: 'writ run --model hf:Qwen/Qwen2.5-7B-Instruct-GGUF:Q4_K_M "Summarise notes.txt in report.md"',
      description: "A real model, downloaded once"
    },
    {
      command: 'writ run --tools lookup --fixture "price=12,50 EUR" "What is the price?"',
      description: "A fact of your own"
    },
    { command: "writ run --resume 20261130-065239-d4257f", description: "Continue a run that was stopped" }
  ])
)

const inspectTrace = Command.make(
  "inspect",
  {
    trace: Argument.String("trace").pipe(Argument.withDescription("A trace file, a run's directory, or a run's id")),
    follow: Flag.Boolean("follow").pipe(
      Flag.withAlias("f"),
      Flag.withDescription("Go on reading until the run has ended"),
      Flag.withDefault(false)
    ),
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
    allowIncomplete: Flag.Boolean("allow-incomplete").pipe(
      Flag.withDescription("Accept a trace without an end, as a crash leaves it"),
      Flag.withDefault(false)
    ),
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

const reportTrace = Command.make(
  "report",
  {
    trace: Argument.String("trace").pipe(Argument.withDescription("A trace file, a run's directory, or a run's id")),
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

const trace = Command.make("trace").pipe(
  Command.withDescription("Look at the record of a run"),
  Command.withSubcommands([inspectTrace, validateTrace, ...traceCommands, reportTrace])
)

const inspectModel = Command.make(
  "inspect",
  {
    file: Argument.String("file").pipe(
      Argument.withDescription("A GGUF file (default: the demo model)"),
      Argument.optional,
      Argument.map((file) => (file._tag === "Some" ? file.value : undefined))
    ),
    json: Flags.json,
    color: Flags.color
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./modelsInspect.ts")),
      ({ inspectModel }) => inspectModel(flags)
    )
).pipe(Command.withDescription("Show a model file's metadata and template, and which codec fits it and why"))

const models = Command.make("models").pipe(
  Command.withDescription("Look at model files"),
  Command.withSubcommands([inspectModel])
)

const doctor = Command.make("doctor", { json: Flags.json, color: Flags.color }, (flags) =>
  Effect.flatMap(
    Effect.promise(() => import("./doctor.ts")),
    ({ doctor }) => doctor(flags)
  )
).pipe(Command.withDescription("Check what works on this machine and where settings come from"))

/** The whole command line. */
export const writ = Command.make("writ").pipe(
  Command.withDescription("The execution layer between a language model and the world"),
  Command.withSubcommands([demo, run, approve, deny, trace, metrics, ledger, models, codec, tools, mcp, doctor])
)
