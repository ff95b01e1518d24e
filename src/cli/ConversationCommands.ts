/** The commands about conversation files: names, flags, help. Programs are imported when they run. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { names, type SettingName } from "../effects/SettingFields.ts"
import * as Flags from "./Flags.ts"

const project = Flags.text("project", "DIR", "The project's directory (default .)").pipe(Flag.withAlias("p"))

const several = (name: string, form: string, description: string): Flag.Flag<ReadonlyArray<string>> =>
  Flag.String(name).pipe(Flag.withMetavar(form), Flag.withDescription(description), Flag.atLeast(0))

/** `writ assemble NAME` */
export const assemble = Command.make(
  "assemble",
  {
    name: Argument.String("name").pipe(Argument.withDescription("The assembly: NAME is assemblies/NAME.yaml")),
    project,
    case: several("case", "NAME", "Only this conversation of the matrix (may be repeated)"),
    var: several("var", "AXIS=VALUE[,VALUE]", "Only these values of an axis, or a new axis (may be repeated)"),
    json: Flags.json
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./assemble.ts")),
      ({ assemble }) => assemble(flags)
    )
).pipe(
  Command.withDescription(
    "Make conversation files out of an assembly and the prompts, texts and tools it names: one per combination of the matrix, all of them or none. Prints the directory they are in."
  ),
  Command.withShortDescription("Make conversation files out of an assembly"),
  Command.withExamples([
    { command: "writ assemble research", description: "Everything assemblies/research.yaml describes" },
    { command: "writ assemble claims --case over-limit", description: "One conversation of the matrix" },
    { command: "writ assemble research --var model=small,large", description: "Some values of one axis" }
  ])
)

/** `writ eval SUITE --over PATH` */
export const evaluate = Command.make(
  "eval",
  {
    suite: Argument.String("suite").pipe(
      Argument.withDescription("The suite: NAME is evals/NAME.yaml; a path is a file anywhere")
    ),
    over: Flag.String("over").pipe(
      Flag.withMetavar("PATH"),
      Flag.withDescription("A conversation file, a directory of them, or the id of a run (may be repeated)"),
      Flag.atLeast(1)
    ),
    project,
    strict: Flags.switchOn("strict", "What is deferred, or matches nothing, is a no as well"),
    id: Flags.text("id", "ID", "What the report is called (default: the run's name)"),
    judgeModel: Flags.text("judge-model", "MODEL", "The model that judges: a GGUF file, or hf:USER/REPO:QUANT"),
    judgeCodec: Flags.text("judge-codec", "ID", "The codec of that model (default: by its chat template)"),
    judgeScript: Flags.text("judge-script", "FILE", "Replies of a scripted judge instead of a model"),
    embeddingModel: Flags.text(
      "embedding-model",
      "MODEL",
      "The model that compares meanings: a GGUF file, hf:USER/REPO:QUANT, or tiny (ships)"
    ),
    html: Flag.Boolean("html").pipe(Flag.withDescription("Write a page as well (default)"), Flag.withDefault(true)),
    concurrency: Flags.number("concurrency", "N", "How many conversations are evaluated at a time"),
    json: Flags.json,
    quiet: Flags.quiet,
    color: Flags.color
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./eval.ts")),
      ({ evaluate }) => evaluate(flags)
    )
).pipe(
  Command.withDescription(
    "Check what a suite asserts against conversations that are there, and write a report as JSON, Markdown, JUnit XML and a page. Runs no conversation. Ends with 3 where an assertion failed, or could not be checked."
  ),
  Command.withShortDescription("Check assertions against conversation files"),
  Command.withExamples([
    {
      command: "writ eval claims --over runs/2026-11-30T13-07-42Z-4f9a2c-claims",
      description: "Everything of one run"
    },
    {
      command: "writ eval evals/claims.yaml --over case.yaml --strict",
      description: "One file; what was not checked is a no"
    }
  ])
)

/** `writ report ID [ID2]` */
export const report = Command.make(
  "report",
  {
    ids: Argument.String("id").pipe(
      Argument.withDescription("The name of a report (a run's id), or its JSON file; two are compared"),
      Argument.variadic({ min: 1 })
    ),
    project,
    labelA: Flags.text("label-a", "TEXT", "What the first side is called"),
    labelB: Flags.text("label-b", "TEXT", "What the second side is called"),
    repeats: Flags.switchOn("repeats", "They are repeated runs of the same: take them together, name what is flaky"),
    against: several("against", "ID", "Compare the others with this one (may be repeated, for repeated runs)"),
    gate: Flags.switchOn("gate", "End with 3 if something got worse, or is not asserted or decided any more"),
    requireImprovement: Flags.switchOn("require-improvement", "The same, and something has to be better"),
    json: Flags.json,
    quiet: Flags.quiet
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./evalReport.ts")),
      ({ report }) => report(flags)
    )
).pipe(
  Command.withDescription(
    "Show one report of an evaluation as Markdown, compare two, or take repeated runs together: shares with their intervals, flaky assertions, and whether a difference means anything."
  ),
  Command.withShortDescription("Show or compare reports of evaluations"),
  Command.withExamples([
    { command: "writ report before after --gate", description: "May this go in?" },
    { command: "writ report r1 r2 r3 --repeats", description: "What is flaky?" }
  ])
)

/** A matrix says itself what runs and where its files are; the rest of a run's settings hold for all of it. */
const held = [
  "model",
  "script",
  "system",
  "tools",
  "runDir",
  "ledger",
  "dryRun",
  "traceContent",
  "tokenEvents",
  "redact"
] as const

const matrixSettings = names.filter(
  (name): name is Exclude<SettingName, (typeof held)[number]> => !(held as ReadonlyArray<string>).includes(name)
)

/** `writ bench-model --model A --model B --suite S` */
export const benchModel = Command.make(
  "bench-model",
  {
    model: several("model", "[NAME=]FILE|hf:…|tiny", "A model to compare (may be repeated)"),
    script: several("script", "[NAME=]FILE|DIR", "A script that plays a model (may be repeated)"),
    assembly: several("assembly", "NAME", "What is asked: the conversations of an assembly (may be repeated)"),
    case: several("case", "NAME", "Only these conversations of the assemblies (may be repeated)"),
    over: several("over", "PATH", "What is asked: conversation files with blank turns (may be repeated)"),
    external: Flags.text("external", "bfcl=FILE", "What is asked and how it is judged: a suite from elsewhere"),
    limit: Flags.number("limit", "N", "Only so many prompts, taken evenly from all of them"),
    suite: Flags.text("suite", "NAME", "The suite that judges: evals/NAME.yaml, or a path"),
    policy: several("policy", "NAME [KEY=VALUE…]", "Settings to compare, as 'free constrained=off' (may be repeated)"),
    repeat: Flags.number("repeat", "N", "How often each is run, with seeds from --seed on (default 1)"),
    parallel: Flags.number("parallel", "N", "Conversations at a time (default 2)"),
    judgeModel: Flags.text("judge-model", "MODEL", "The model that judges"),
    judgeCodec: Flags.text("judge-codec", "ID", "The codec of that model (default: by its chat template)"),
    id: Flags.text("id", "ID", "What the reports are called (default: by what is compared)"),
    fresh: Flags.switchOn("fresh", "Run everything again, whatever is there"),
    project,
    ...Flags.settings(...matrixSettings),
    json: Flags.json,
    quiet: Flags.quiet,
    color: Flags.color
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./benchModel.ts")),
      ({ benchModel }) => benchModel({ ...flags, settings: Flags.rawOf(omitted(flags)) })
    )
).pipe(
  Command.withDescription(
    "Run every model on every prompt under every policy, so often, judge all of it by one suite, and write a matrix with intervals, cost and latency. What was run before is not run again: stopped anywhere, the same command goes on."
  ),
  Command.withShortDescription("Compare models, prompts and policies by a suite"),
  Command.withExamples([
    {
      command:
        "writ bench-model --model tiny --assembly sums --suite sums --policy grammar --policy 'free constrained=off'",
      description: "Does the grammar help?"
    },
    {
      command:
        "writ bench-model --model a.gguf --model b.gguf --assembly claims --suite claims --repeat 5 --temperature 0.7",
      description: "Which model?"
    },
    {
      command: "writ bench-model --model a.gguf --external bfcl=bfcl.jsonl --limit 200",
      description: "Function calling by the rules of a leaderboard"
    }
  ])
)

/** The flags that are repeatable here and single settings elsewhere are none of the settings. */
const omitted = ({ model: _, script: __, ...flags }: Readonly<Record<string, unknown>>) => flags
