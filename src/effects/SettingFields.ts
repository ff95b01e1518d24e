/**
 * Every setting a run can have: its name in each source, how a raw value is read, and what it is when nobody says. One table,
 * so that a flag, a variable and a key of the file always mean the same.
 */
import * as Result from "effect/Result"
import { isAddress } from "../actors/EffectLedgerAddress.ts"
import type { RedactionRule } from "../actors/Redaction.ts"
import { isObject, type Json, parse } from "../tools/JsonText.ts"
import { type Grant, parseGrant } from "./Authority.ts"
import * as Backoff from "./Backoff.ts"
import type { ContextPolicy } from "./ContextPolicy.ts"
import { type EngineWords, engine } from "./EngineFields.ts"
import { standardApprovalMillis } from "./Gates.ts"
import * as Limits from "./Limits.ts"
import {
  headerForm,
  parseHeader,
  parseServer,
  parseVariable,
  parseVariableName,
  serverForm,
  variableForm
} from "./McpSettings.ts"
import { type PhaseWords, phase } from "./PhaseFields.ts"
import { cautious, parse as parseProfile, profiles, type TaskProfile } from "./Profile.ts"
import { readRules } from "./RedactSettings.ts"
import type { CallPolicy } from "./RunContext.ts"
import {
  choice,
  duration,
  expected,
  type Field,
  flag,
  leavesHere,
  limit,
  list,
  number,
  onOff,
  optionalNumber,
  pairForm,
  pairs,
  path,
  seconds,
  text,
  words
} from "./SettingForms.ts"
import { type WebWords, web } from "./WebFields.ts"

/** How somebody answers calls that need approval. */
export type ApproveMode = "ask" | "deny" | "all" | "suspend"
/** `false`: the processor only. */
export type GpuSetting = "auto" | "cuda" | "metal" | "vulkan" | false

export interface Settings extends WebWords, EngineWords, PhaseWords {
  /** A file or an `hf:` URI; undefined is the model that ships. */
  readonly model: string | undefined
  /** A file that says what the model writes, instead of a model. */
  readonly script: string | undefined
  readonly codec: string | undefined
  readonly system: string | undefined
  readonly tools: ReadonlyArray<string>
  readonly toolsDir: string | undefined
  /** Names of variables that the tools see. */
  readonly toolEnv: ReadonlyArray<string>
  /** MCP servers, as they are said. */
  readonly mcp: ReadonlyArray<string>
  /** The contract file for their tools. */
  readonly mcpContracts: string | undefined
  readonly mcpEnv: ReadonlyArray<string>
  readonly mcpHeader: ReadonlyArray<string>
  readonly workspace: string
  readonly fixture: Readonly<Record<string, string>>
  readonly calls: CallPolicy
  readonly thinking: boolean | undefined
  readonly constrained: boolean
  readonly seed: number
  readonly temperature: number
  readonly topK: number
  readonly topP: number
  readonly maxTurns: number
  readonly maxToolCalls: number
  /** Milliseconds. */
  readonly wallTime: number
  /** Milliseconds. */
  readonly toolTimeout: number
  readonly maxOutputTokens: number
  readonly maxThinkTokens: number
  readonly maxResultBytes: number
  readonly maxRepairs: number
  readonly loopThreshold: number
  readonly approve: ApproveMode
  /** Milliseconds from an approval to its use. */
  readonly approvalExpiry: number
  readonly profile: TaskProfile
  /** What the run is permitted; without any grant, whatever is not denied. */
  readonly grant: ReadonlyArray<Grant>
  readonly deny: ReadonlyArray<Grant>
  /** The permissions it has by name; without any, all. */
  readonly scope: ReadonlyArray<string>
  readonly retryAttempts: number
  /** Milliseconds. */
  readonly retryDelay: number
  readonly retryFactor: number
  readonly candidates: number
  readonly dryRun: boolean
  /** The directory of this one run; undefined is `.writ/runs/<run-id>`. */
  readonly runDir: string | undefined
  /** SQLite file of the effect ledger, the address of a PostgreSQL database, or `memory`; undefined is `.writ/ledger.sqlite`. */
  readonly ledger: string | undefined
  readonly modelsDir: string
  readonly modelHash: boolean
  readonly traceContent: boolean
  readonly tokenEvents: boolean
  readonly keepState: boolean
  /** What is never written down. The patterns are compiled by `load`. */
  readonly redact: ReadonlyArray<RedactionRule>
  readonly context: number | undefined
  readonly contextPolicy: ContextPolicy["onFull"]
  readonly threads: number | undefined
  readonly gpu: GpuSetting
}

export type SettingName = keyof Settings

/** The read and artifact tools, in the order the shipped model was trained on. */
export const defaultTools: ReadonlyArray<string> = [
  "list_files",
  "read_text_file",
  "search_text",
  "calculate",
  "lookup",
  "write_artifact"
]

const tools: Field<ReadonlyArray<string>> = {
  description: `Tools the model may call, or "none" (default ${defaultTools.join(",")})`,
  form: "A,B,…",
  fallback: defaultTools,
  read: (raw) => {
    if (raw === "none") return Result.succeed([])
    const list = typeof raw === "string" ? raw.split(",").map((name) => name.trim()) : raw
    if (!Array.isArray(list) || !list.every((name) => typeof name === "string" && name !== "")) {
      return expected('a comma-separated list of tool names or "none"')
    }
    const twice = list.find((name, at) => list.indexOf(name) !== at)
    return twice === undefined ? Result.succeed(list) : Result.fail(`${twice} is named twice`)
  }
}

const fixture: Field<Readonly<Record<string, string>>> = {
  description: "A fact for the lookup tool; repeatable, commas are part of the value",
  form: pairForm,
  kind: "repeated",
  fallback: {},
  read: (raw) => {
    if (Array.isArray(raw)) return pairs(raw)
    // One variable has to hold several facts, so it holds them as JSON.
    const value = typeof raw === "string" ? Result.getOrElse(parse(raw), () => null) : (raw as Json)
    if (!isObject(value)) return expected('an object like {"key": "value"}')
    const wrong = Object.entries(value).find(([, fact]) => typeof fact !== "string")
    return wrong === undefined
      ? Result.succeed(value as Record<string, string>)
      : Result.fail(`"${wrong[0]}" must be a text`)
  }
}

const redact: Field<ReadonlyArray<RedactionRule>> = {
  description: "What no record of the run may hold, as a regular expression (see docs/trace.md); repeatable",
  form: "NAME=PATTERN",
  kind: "repeated",
  fallback: [],
  read: readRules
}

const thinking: Field<boolean | undefined> = {
  description: "Reasoning of models that can switch it (default: the model's own way)",
  form: "on|off",
  choices: ["on", "off"],
  read: onOff,
  fallback: undefined
}

const constrained: Field<boolean> = {
  description: "Hold calls to a grammar of the tools, where the model's family has one (default on)",
  form: "on|off",
  choices: ["on", "off"],
  read: onOff,
  fallback: true
}

const gpu: Field<GpuSetting> = {
  description: "Where inference runs",
  form: "auto|off|cuda|metal|vulkan",
  choices: ["auto", "off", "cuda", "metal", "vulkan"],
  fallback: "auto",
  read: (raw) => {
    if (raw === "off" || raw === false) return Result.succeed(false)
    const found = (["auto", "cuda", "metal", "vulkan"] as const).find((one) => one === raw)
    return found === undefined ? expected("auto, off, cuda, metal or vulkan") : Result.succeed(found)
  }
}

const ledger: Field<string | undefined> = {
  description: "Where effects are remembered so that none happens twice (default .writ/ledger.sqlite)",
  form: "FILE|postgres://…|memory",
  fallback: undefined,
  // A ledger of somebody else's choice would see answers, or forget what was done.
  notFromFile: (said) => said !== undefined && (said === "memory" || isAddress(said) || leavesHere(said)),
  read: (raw) => {
    if (typeof raw !== "string" || raw === "") return expected("a file, postgres://… or memory")
    // Taken for a file name, another kind of address would be made into one.
    return /^[a-z]+:\/\//i.test(raw) && !isAddress(raw)
      ? expected("a file, postgres://… or memory")
      : Result.succeed(raw)
  }
}

const profile: Field<TaskProfile> = {
  description: `What the task is like: ${profiles.map(({ profile: { name } }) => name).join(", ")}; with ,KEY=VALUE a property is changed (default ${cautious.name})`,
  form: "NAME[,KEY=VALUE…]",
  fallback: cautious,
  // Anything that asks or checks less than the default does.
  notFromFile: ({ evidence, retry, reversibility, sideEffects }) =>
    reversibility !== cautious.reversibility ||
    sideEffects !== cautious.sideEffects ||
    retry === "harmless" ||
    evidence === "self",
  read: (raw) => (typeof raw === "string" ? parseProfile(raw) : expected("the name of a profile"))
}

/** A permission's name, as contracts spell it. */
const scopeName = (name: string): Result.Result<string, string> =>
  /^[^\s,]{1,200}$/.test(name) ? Result.succeed(name) : Result.fail(`"${name}" is not the name of one permission`)

const day = 86_400_000

/** What decides about calls. */
const gates = {
  approvalExpiry: {
    ...duration("How long an approval holds (default 30m)", standardApprovalMillis, 30 * day),
    notFromFile: (millis: number) => millis > standardApprovalMillis
  },
  profile,
  grant: list("Permit this and nothing else, as in write:workspace:notes/**; repeatable", "VERB:RESOURCE", parseGrant),
  deny: list("Never permit this, granted or not; repeatable", "VERB:RESOURCE", parseGrant),
  scope: list("A permission the run has, by its name; with one, only those; repeatable", "NAME", scopeName),
  retryAttempts: number("Tries of a call whose answer was lost, the first included (default 4)", "N", 4, {
    least: 1,
    most: Backoff.maxAttempts
  }),
  retryDelay: duration("Wait before the second try (default 1s)", 1000, Backoff.maxDelayMillis),
  retryFactor: number("What each further wait grows by (default 2)", "F", 2, { least: 1, most: 1000, whole: false }),
  candidates: number("Turns that are sampled before one of them is kept (default 1)", "N", 1, { least: 1, most: 16 }),
  dryRun: flag("Check, price and show what the run would do; only reads are executed")
}

/** Programs are started for it, so that a file somebody else wrote cannot name it. */
const toolsDir: Field<string | undefined> = {
  ...text("Take the tools of a directory too: NAME.tool.json (see docs/tools.md)", "DIR"),
  notFromFile: (said) => said !== undefined
}

/** What reveals something cannot come from a file that somebody else wrote either. */
const toolEnv = words("Let tools see a variable of the environment; repeatable", "VARIABLE", parseVariableName)

/** Tools of other programs. */
const mcp = {
  mcp: words("Take the tools of an MCP server too; repeatable", serverForm, parseServer),
  mcpContracts: {
    ...text("Contracts of tools of MCP servers, YAML or JSON (see docs/mcp.md)", "FILE"),
    notFromFile: (said: string | undefined) => said !== undefined
  },
  mcpEnv: words("Give a server a variable of the environment; repeatable", variableForm, parseVariable),
  mcpHeader: words("Send a server a header, its value in a variable; repeatable", headerForm, parseHeader)
}

const { defaults } = Limits

export const fields: { readonly [K in SettingName]: Field<Settings[K]> } = {
  model: text(
    "Model file, a name from writ models list, or hf:USER/REPO:QUANT to download one (default: the one that was chosen or is alone, else the tiny demo model)",
    "FILE|NAME|hf:…"
  ),
  script: text("Play a script instead of a model: YAML or JSON with what it writes, turn by turn", "FILE"),
  codec: text("Model family, where the model's own template does not say", "ID"),
  system: text("System text", "TEXT"),
  tools,
  toolsDir,
  toolEnv,
  ...mcp,
  ...web,
  workspace: { ...path("Directory the file tools may read (default: the current one)", "."), notFromFile: leavesHere },
  fixture,
  calls: choice(
    "Several calls in one turn: only the first, in order, or reads side by side",
    ["single", "sequential", "parallel"],
    "sequential"
  ),
  thinking,
  constrained,
  seed: number("Seed of the run (default 0)", "N", 0, { least: 0, most: 2 ** 32 - 1 }),
  temperature: number("Sampling temperature; 0 always takes the likeliest token (default 0)", "T", 0, {
    least: 0,
    most: 10,
    whole: false
  }),
  topK: number("Sample among the K likeliest tokens (default 40)", "K", 40, { least: 0, most: 1_000_000 }),
  topP: number("Sample among the tokens that make up this probability (default 0.95)", "P", 0.95, {
    least: 0,
    most: 1,
    whole: false
  }),
  maxTurns: limit("Model turns; 0 generates nothing", defaults.modelTurns),
  maxToolCalls: limit("Executed calls; 0 stops at the first", defaults.toolCalls),
  wallTime: seconds("Time for the whole run; 0 stops after the prompt", defaults.wallMillis),
  toolTimeout: seconds("Time for one call; 0 lets every call time out", defaults.toolMillis),
  maxOutputTokens: number(
    `Tokens one turn may generate (default ${defaults.outputTokens})`,
    "N",
    defaults.outputTokens,
    { least: 1 }
  ),
  maxThinkTokens: number(
    "Tokens the reasoning of one turn may take before it is closed (default none)",
    "N|none",
    defaults.thinkTokens,
    { least: 1, none: true }
  ),
  maxResultBytes: limit("Bytes of one result the model is shown; longer ones are cut", defaults.resultBytes),
  maxRepairs: limit("Broken turns in a row; 0 stops at the first", defaults.repairs),
  loopThreshold: limit("Equal calls in a row that count as a loop; below 2 or none: never", defaults.loopThreshold),
  approve: {
    ...choice(
      "Who decides about calls that reach outside (without a terminal, ask means deny)",
      ["ask", "deny", "all", "suspend"],
      "ask"
    ),
    notFromFile: (value) => value === "all"
  },
  ...gates,
  runDir: { ...text("Directory of this run (default .writ/runs/RUN-ID)", "DIR"), notFromFile: leavesHere },
  ledger,
  modelsDir: path("Where downloaded models are kept (default .writ/models)", ".writ/models"),
  modelHash: flag("Put the SHA-256 of the model file into the record (default on)", true),
  traceContent: flag("Write prompts, arguments and results into the trace; without it only lengths and digests"),
  tokenEvents: flag("One trace line for each piece of generated text"),
  keepState: flag("Keep the evaluated context of a run that stops, so that --resume need not evaluate it again"),
  redact,
  context: optionalNumber("Tokens of context (default 8192, at most what the model was trained for)", "N", {
    least: 8,
    most: 2 ** 31 - 1
  }),
  contextPolicy: choice(
    "When the context is full: stop, or remove the oldest exchanges and say so",
    ["refuse", "compact"],
    "refuse"
  ),
  threads: optionalNumber("Threads for inference (default: all processors but one)", "N", { least: 1, most: 1024 }),
  gpu,
  ...engine,
  ...phase
}

export const names = Object.keys(fields) as ReadonlyArray<SettingName>

const kebab = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** `maxTurns` on the command line: `max-turns`. */
export const flagOf = (name: SettingName): string => kebab(name)
/** `maxTurns` in the environment: `WRIT_MAX_TURNS`. */
export const variableOf = (name: SettingName): string => `WRIT_${kebab(name).replaceAll("-", "_").toUpperCase()}`
