/**
 * The command tree: names, flags, help. Every handler imports its program when it runs, so that help and usage errors
 * load neither an engine nor a pool.
 */

import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { names } from "../effects/SettingFields.ts"
import { approve, deny } from "./ApprovalCommands.ts"
import { chat } from "./ChatCommand.ts"
import { codec } from "./CodecCommands.ts"
import { assemble, benchModel, evaluate, report } from "./ConversationCommands.ts"
import * as Flags from "./Flags.ts"
import { ledger } from "./LedgerCommands.ts"
import { mcp } from "./McpCommands.ts"
import { metrics } from "./MetricsCommand.ts"
import { models } from "./ModelCommands.ts"
import { serve } from "./ServeCommand.ts"
import { tools } from "./ToolCommands.ts"
import { trace } from "./TraceCommands.ts"

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

const run = Command.make(
  "run",
  {
    task: Argument.String("task").pipe(Argument.withDescription("What the model is asked to do"), Argument.variadic()),
    prompt: Flags.text("prompt", "TEXT", "The task, where it could be taken for something else"),
    promptFile: Flags.text("prompt-file", "FILE", "Read the task from a file, or from standard input with -"),
    resume: Flags.text("resume", "RUN", "Continue a run: its id, its directory or its trace"),
    answer: Flags.text("answer", "TEXT", "With --resume: what the run asked for"),
    suspend: Flags.switchOn("suspend", "Short for --approve suspend: stop before a call that needs an approval"),
    parallel: Flags.number("parallel", "N", "Conversation files: how many are filled at a time (default 2)"),
    replay: Flags.switchOn("replay", "Conversation files: play them again from themselves and compare; writes nothing"),
    ...Flags.settings(...names),
    ...showing
  },
  ({ answer, color, json, parallel, prompt, promptFile, quiet, replay, resume, suspend, task, ...raw }) =>
    Effect.flatMap(
      Effect.promise(() => import("./run.ts")),
      ({ run }) =>
        run({
          task,
          prompt,
          promptFile,
          resume,
          answer,
          suspend,
          parallel,
          replay,
          json,
          quiet,
          color,
          settings: Flags.rawOf(raw)
        })
    )
).pipe(
  Command.withDescription(
    "Run a task with a local model. Settings can also stand in writ.config.json and in WRIT_… variables; flags win, then variables."
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
      description: "A fact of your own, for a real model"
    },
    { command: "writ run --resume 20261130-065239-d4257f", description: "Continue a run that was stopped" },
    { command: "writ run runs/*/*.yaml --parallel 4", description: "Fill the blank turns of conversation files" }
  ])
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
  Command.withSubcommands([
    demo,
    run,
    chat,
    assemble,
    evaluate,
    report,
    benchModel,
    approve,
    deny,
    trace,
    metrics,
    ledger,
    models,
    codec,
    tools,
    mcp,
    serve,
    doctor
  ])
)
