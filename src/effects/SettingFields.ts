/**
 * Every setting a run can have: its name in each source, how a raw value is read, and what it is when nobody says. One table,
 * so that a flag, a variable and a key of the file always mean the same.
 */
import * as Result from "effect/Result"
import { isObject, type Json, parse } from "../tools/JsonText.ts"
import * as Limits from "./Limits.ts"
import type { CallPolicy } from "./RunContext.ts"

/** How somebody answers calls that need approval. */
export type ApproveMode = "ask" | "deny" | "all" | "suspend"
/** `false`: the processor only. */
export type GpuSetting = "auto" | "cuda" | "metal" | "vulkan" | false

export interface Settings {
  /** A file or an `hf:` URI; undefined is the model that ships. */
  readonly model: string | undefined
  /** A file that says what the model writes, instead of a model. */
  readonly script: string | undefined
  readonly codec: string | undefined
  readonly system: string | undefined
  readonly tools: ReadonlyArray<string>
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
  /** The directory of this one run; undefined is `.writ/runs/<run-id>`. */
  readonly runDir: string | undefined
  /** SQLite file of the effect ledger, or `memory`; undefined is `.writ/ledger.sqlite`. */
  readonly ledger: string | undefined
  readonly modelsDir: string
  readonly modelHash: boolean
  readonly traceContent: boolean
  readonly tokenEvents: boolean
  readonly context: number | undefined
  readonly threads: number | undefined
  readonly gpu: GpuSetting
}

export type SettingName = keyof Settings

/** A raw value as a source has it: text from flags and variables, JSON from the file, lists from repeated flags. */
export type Raw = Json | ReadonlyArray<string>

export interface Field<A> {
  readonly description: string
  /** What a value looks like, for help and for messages. */
  readonly form: string
  readonly choices?: ReadonlyArray<string>
  readonly kind?: "boolean" | "repeated"
  /** Must not come from a file that may lie in somebody else's directory. */
  readonly notFromFile?: (value: A) => boolean
  readonly read: (raw: Raw) => Result.Result<A, string>
  readonly fallback: A
}

const expected = (form: string): Result.Result<never, string> => Result.fail(`expected ${form}`)

const text = (description: string, form: string): Field<string | undefined> => ({
  description,
  form,
  fallback: undefined,
  read: (raw) => (typeof raw === "string" && raw !== "" ? Result.succeed(raw) : expected(form))
})

const path = (description: string, fallback: string): Field<string> => ({
  description,
  form: "DIR",
  fallback,
  read: (raw) => (typeof raw === "string" && raw !== "" ? Result.succeed(raw) : expected("a directory"))
})

const flag = (description: string, fallback = false): Field<boolean> => ({
  description,
  form: "on|off",
  kind: "boolean",
  fallback,
  read: (raw) => (typeof raw === "boolean" ? Result.succeed(raw) : onOff(raw))
})

const onOff = (raw: Raw): Result.Result<boolean, string> => {
  if (raw === true || raw === "on" || raw === "true" || raw === "1") return Result.succeed(true)
  if (raw === false || raw === "off" || raw === "false" || raw === "0") return Result.succeed(false)
  return expected("on or off")
}

const choice = <const A extends string>(description: string, choices: ReadonlyArray<A>, fallback: A): Field<A> => ({
  description,
  form: choices.join("|"),
  choices,
  fallback,
  read: (raw) => {
    const found = choices.find((one) => one === raw)
    return found === undefined ? expected(choices.join(", ")) : Result.succeed(found)
  }
})

/** A finite decimal number, from JSON or from text. Text like `0x10`, ` 1` or the empty one is none. */
const numberOf = (raw: Raw): number | undefined => {
  if (typeof raw === "number") return raw
  return typeof raw === "string" && /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(raw) ? Number(raw) : undefined
}

interface Range {
  readonly least: number
  readonly most?: number
  readonly whole?: boolean
  readonly none?: boolean
  readonly scale?: number
}

const inRange = (value: number, { least, most = Number.MAX_SAFE_INTEGER, whole = true }: Range): boolean =>
  Number.isFinite(value) && value >= least && value <= most && (!whole || Number.isInteger(value))

const rangeForm = ({ least, most, none = false, whole = true }: Range): string =>
  `a ${whole ? "whole " : ""}number ${most === undefined ? `of at least ${least}` : `from ${least} to ${most}`}` +
  (none ? ' or "none"' : "")

const number = (description: string, form: string, fallback: number, range: Range): Field<number> => ({
  description,
  form,
  fallback,
  read: (raw) => {
    if (range.none === true && raw === "none") return Result.succeed(Infinity)
    const value = numberOf(raw)
    if (value === undefined || !inRange(value, range)) return expected(rangeForm(range))
    return Result.succeed(Math.round(value * (range.scale ?? 1) * 1e6) / 1e6)
  }
})

const limit = (description: string, fallback: number): Field<number> =>
  number(`${description} (default ${fallback})`, "N|none", fallback, { least: 0, none: true })

const seconds = (description: string, fallbackMillis: number): Field<number> => {
  const range = { least: 0, most: 2_000_000, whole: false, none: true, scale: 1000 }
  const field = number(`${description} (default ${fallbackMillis / 1000})`, "SECONDS|none", fallbackMillis, range)
  // Limits count whole milliseconds.
  return {
    ...field,
    read: (raw) => Result.map(field.read(raw), (millis) => (millis === Infinity ? millis : Math.ceil(millis)))
  }
}

const optionalNumber = (description: string, form: string, range: Range): Field<number | undefined> => ({
  description,
  form,
  read: number(description, form, 0, range).read,
  fallback: undefined
})

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

const pairForm = "KEY=VALUE"

const pairs = (list: ReadonlyArray<Json>): Result.Result<Record<string, string>, string> => {
  const entries: Array<readonly [string, string]> = []
  for (const pair of list) {
    const at = typeof pair === "string" ? pair.indexOf("=") : -1
    if (typeof pair !== "string" || at < 1) return expected(pairForm)
    entries.push([pair.slice(0, at), pair.slice(at + 1)])
  }
  return Result.succeed(Object.fromEntries(entries))
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
  form: "FILE|memory",
  fallback: undefined,
  read: (raw) => {
    if (typeof raw !== "string" || raw === "") return expected("a file or memory")
    // Taken for a file name, it would be made into one.
    return /^[a-z]+:\/\//i.test(raw) ? expected("a file on this machine or memory") : Result.succeed(raw)
  }
}

const { defaults } = Limits

export const fields: { readonly [K in SettingName]: Field<Settings[K]> } = {
  model: text("Model file, or hf:USER/REPO:QUANT to download one (default: the tiny demo model)", "FILE|hf:…"),
  script: text("Play a script instead of a model: YAML or JSON with what it writes, turn by turn", "FILE"),
  codec: text("Model family, where the model's own template does not say", "ID"),
  system: text("System text", "TEXT"),
  tools,
  workspace: path("Directory the file tools may read (default: the current one)", "."),
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
  runDir: text("Directory of this run (default .writ/runs/RUN-ID)", "DIR"),
  ledger,
  modelsDir: path("Where downloaded models are kept (default .writ/models)", ".writ/models"),
  modelHash: flag("Put the SHA-256 of the model file into the record (default on)", true),
  traceContent: flag("Write prompts, arguments and results into the trace; without it only lengths and digests"),
  tokenEvents: flag("One trace line for each piece of generated text"),
  context: optionalNumber("Tokens of context (default 8192, at most what the model was trained for)", "N", {
    least: 8,
    most: 2 ** 31 - 1
  }),
  threads: optionalNumber("Threads for inference (default: all processors but one)", "N", { least: 1, most: 1024 }),
  gpu
}

export const names = Object.keys(fields) as ReadonlyArray<SettingName>

const kebab = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** `maxTurns` on the command line: `max-turns`. */
export const flagOf = (name: SettingName): string => kebab(name)
/** `maxTurns` in the environment: `WRIT_MAX_TURNS`. */
export const variableOf = (name: SettingName): string => `WRIT_${kebab(name).replaceAll("-", "_").toUpperCase()}`
