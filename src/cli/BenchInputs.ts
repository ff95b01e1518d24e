/** What a matrix is made of, as the command line names it: contestants, policies, prompts. Runs and writes nothing. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { basename, join } from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as ModelHashes from "../actors/ModelHashes.ts"
import { plan } from "../effects/conversation/assemble/Assemble.ts"
import { type Contestant, labelled, type Policy, type Prompt, sha256 } from "../effects/eval/bench/Cell.ts"
import * as Bfcl from "../effects/eval/external/Bfcl.ts"
import * as Project from "../effects/eval/Project.ts"
import type { Suite } from "../effects/eval/Suite.ts"
import { problemWith } from "../effects/Limits.ts"
import * as RunDirectory from "../effects/RunDirectory.ts"
import { flagOf, type SettingName, type Settings } from "../effects/SettingFields.ts"
import { gatesProblem, limitsOf, load, type RawSettings, type Resolved } from "../effects/Settings.ts"
import { tinyModel } from "../effects/Wiring.ts"
import type { Json, JsonObject } from "../tools/JsonText.ts"
import { nearest } from "../tools/Nearest.ts"
import { type UsageError, usage } from "./Ending.ts"
import { checkCodec, checkModel, chooseToOpen } from "./ModelChoice.ts"
import { problemAt } from "./Places.ts"

/** What plays: a model as `--model` takes it (`undefined`: the one that ships), or a script. */
export interface Player {
  readonly contestant: Contestant
  readonly source:
    | { readonly _tag: "Model"; readonly model: string | undefined; readonly path: string }
    | { readonly _tag: "Script"; readonly path: string }
}

/** Settings that a policy may vary: what changes what a model does, and not where things are. */
const variable: ReadonlyArray<SettingName> = [
  "codec",
  "constrained",
  "thinking",
  "temperature",
  "topK",
  "topP",
  "calls",
  "profile",
  "candidates",
  "maxTurns",
  "maxToolCalls",
  "wallTime",
  "toolTimeout",
  "maxOutputTokens",
  "maxThinkTokens",
  "maxResultBytes",
  "maxRepairs",
  "loopThreshold",
  "retryAttempts",
  "retryDelay",
  "retryFactor"
]

/** Settings that decide what a conversation comes to, besides those. */
const deciding: ReadonlyArray<SettingName> = [
  ...variable,
  "fixture",
  "approve",
  "grant",
  "deny",
  "scope",
  "context",
  "gpu"
]

export interface BenchPolicy {
  readonly policy: Policy
  readonly resolved: Resolved
}

/** Times and limits without end are `none`, as they are said. */
const plain = (value: unknown): Json =>
  JSON.parse(
    JSON.stringify(value ?? null, (_, one: unknown) => (one === Number.POSITIVE_INFINITY ? "none" : one))
  ) as Json

const decides = (settings: Settings): JsonObject =>
  Object.fromEntries(deciding.map((name) => [name, plain(settings[name])]))

const settingOf = (word: string): Result.Result<readonly [SettingName, string], string> => {
  const [key = "", value] = word.split(/=(.*)/s)
  const found = variable.find((name) => flagOf(name) === key || name === key)
  if (found === undefined || value === undefined) {
    const near = nearest(key, variable.map(flagOf))
    return Result.fail(
      `${word} is no KEY=VALUE of a policy${near === undefined ? `; keys are ${variable.map(flagOf).join(", ")}` : `; did you mean ${near}?`}`
    )
  }
  return Result.succeed([found, value])
}

/** `free constrained=off temperature=0.7`: a name and what differs; without a name, what differs is the name. */
const policyOf = Effect.fnUntraced(function* (text: string, base: RawSettings) {
  const words = text.split(/\s+/).filter((word) => word !== "")
  const named = words[0] !== undefined && !words[0].includes("=")
  const raw: Record<string, string> = {}
  for (const word of named ? words.slice(1) : words) {
    const read = settingOf(word)
    if (Result.isFailure(read)) return yield* usage(`--policy ${text}: ${read.failure}`)
    raw[read.success[0]] = read.success[1]
  }
  const resolved = yield* load({ ...base, ...raw })
  yield* checkCodec(resolved.settings.codec)
  const problem = problemWith(limitsOf(resolved.settings)) ?? gatesProblem(resolved.settings)
  if (problem !== undefined) return yield* usage(`--policy ${text}: ${problem}`)
  const name = named ? words[0]! : words.join(" ")
  return { policy: { name, decides: decides(resolved.settings) }, resolved } satisfies BenchPolicy
})

const twiceIn = (all: ReadonlyArray<string>): string | undefined => all.find((one, at) => all.indexOf(one) !== at)

/** One per `--policy`; without any, the settings as they are. */
export const policiesOf = Effect.fnUntraced(function* (texts: ReadonlyArray<string>, base: RawSettings) {
  const policies = yield* Effect.forEach(texts.length === 0 ? ["default"] : texts, (text) => policyOf(text, base))
  const twice = twiceIn(policies.map(({ policy }) => policy.name))
  return twice === undefined ? policies : yield* usage(`--policy: two are called ${twice}; a name comes first`)
})

/** `NAME=FILE`, where the name is no path. */
const namedIn = (text: string): readonly [string | undefined, string] => {
  const found = /^([A-Za-z0-9._-]+)=(.+)$/s.exec(text)
  return found === null ? [undefined, text] : [found[1], found[2]!]
}

const stem = (path: string): string => basename(path).replace(/\.gguf$|(?:\.script)?\.(?:ya?ml|json)$/i, "")

/** The content of a file, or what it has instead of one: gigabytes are not read where nobody wants them to be. */
const identityOf = Effect.fnUntraced(function* (path: string, { modelHash }: Settings) {
  if (modelHash) {
    yield* Effect.ignore(RunDirectory.prepareHome)
    return `sha256:${yield* ModelHashes.sha256(path, RunDirectory.modelHashes)}`
  }
  const { mtimeNs, size } = statSync(path, { bigint: true })
  return `file:${path}:${size}:${mtimeNs}`
})

const modelPlayer = Effect.fnUntraced(function* (text: string, settings: Settings, progress: (text: string) => void) {
  const [name, said] = namedIn(text)
  const model = said === "tiny" ? undefined : said
  yield* checkModel(model, settings.modelsDir)
  const chosen = yield* chooseToOpen({ ...settings, model }, progress)
  const called = name ?? (model === undefined ? "tiny" : stem(said))
  const path = model === undefined ? tinyModel : chosen.path
  const contestant = { name: called, identity: yield* identityOf(path, settings) }
  return { contestant, source: { _tag: "Model", model, path } } satisfies Player
})

/** Every script of a directory counts: which of them is played, the prompts say. */
const scriptText = (path: string): string =>
  RunDirectory.isDirectory(path)
    ? readdirSync(path)
        .filter((name) => /\.script\.ya?ml$/i.test(name))
        .toSorted()
        .map((name) => `${name}\n${readFileSync(join(path, name), "utf8")}`)
        .join("\n")
    : readFileSync(path, "utf8")

const scriptPlayer = Effect.fnUntraced(function* (text: string) {
  const [name, path] = namedIn(text)
  if (!existsSync(path)) return yield* usage(`--script ${path}: there is no such file or directory`)
  const contestant = { name: name ?? stem(path), identity: `script:${sha256(scriptText(path))}` }
  return { contestant, source: { _tag: "Script", path } } satisfies Player
})

export const playersOf = Effect.fnUntraced(function* (
  flags: { readonly model: ReadonlyArray<string>; readonly script: ReadonlyArray<string> },
  settings: Settings,
  progress: (text: string) => void
) {
  const scripts = yield* Effect.forEach(flags.script, (text) => scriptPlayer(text))
  const models = yield* Effect.forEach(flags.model, (text) => modelPlayer(text, settings, progress))
  const players: ReadonlyArray<Player> = [...models, ...scripts]
  if (players.length === 0) return yield* usage("name what is compared: --model FILE, hf:… or tiny, or --script FILE")
  const twice = twiceIn(players.map(({ contestant }) => contestant.name))
  return twice === undefined ? players : yield* usage(`two contestants are called ${twice}: give one as NAME=FILE`)
})

/** What is asked, and by which suite it is judged if that comes along. */
export interface Asked {
  readonly prompts: ReadonlyArray<Prompt>
  readonly suite?: Suite
  /** Calls are looked at and not carried out. */
  readonly recorded: boolean
}

export interface PromptFlags {
  readonly assembly: ReadonlyArray<string>
  readonly case: ReadonlyArray<string>
  readonly over: ReadonlyArray<string>
  readonly external: string | undefined
  readonly limit: number | undefined
}

const bfcl = Effect.fnUntraced(function* (path: string): Effect.fn.Return<Asked, UsageError> {
  const problem = problemAt(path, "File")
  if (problem !== undefined) return yield* usage(`--external bfcl=${path}: ${problem}`)
  const read = Bfcl.read(readFileSync(path, "utf8"))
  if (Result.isFailure(read)) return yield* usage(`--external bfcl=${path}: ${read.failure}`)
  const rows = read.success
  const twice = twiceIn(rows.map(Bfcl.nameOf))
  if (twice !== undefined) return yield* usage(`--external bfcl=${path}: two rows are called ${twice}`)
  const prompts = rows.map((row) => ({
    group: row.category,
    name: Bfcl.nameOf(row),
    conversation: Bfcl.conversationOf(row)
  }))
  return { prompts: labelled(prompts), suite: Bfcl.suiteOf(rows), recorded: true }
})

const own = Effect.fnUntraced(function* ({ assembly, case: cases, over }: PromptFlags, project: string) {
  const assembled = yield* Effect.forEach(assembly, (name) =>
    Effect.map(plan({ project, name, cases, variables: [] }), (all) =>
      all.map(({ conversation, from }) => ({ group: name, name: from.name, conversation }))
    )
  )
  const given = yield* Effect.forEach(over, (one) =>
    Effect.map(Project.over(project, one), ({ conversations, runId }) =>
      conversations.map((named) => ({ ...named, group: runId }))
    )
  )
  const prompts = labelled([...assembled, ...given].flat())
  const twice = twiceIn(prompts.map(({ label }) => label))
  return twice === undefined ? prompts : yield* usage(`two prompts are called ${twice}`)
})

/** So many prompts, from everywhere in the list: the same for the same list. */
const spread = <A>(all: ReadonlyArray<A>, limit: number | undefined): ReadonlyArray<A> =>
  limit === undefined || limit >= all.length
    ? all
    : Array.from({ length: limit }, (_, at) => all[Math.floor((at * all.length) / limit)]!)

export const promptsOf = Effect.fnUntraced(function* (flags: PromptFlags, project: string) {
  const { assembly, external, limit, over } = flags
  if (limit !== undefined && limit < 1) return yield* usage("--limit: at least 1")
  if (external === undefined) {
    if (assembly.length + over.length === 0) {
      return yield* usage("name what is asked: --assembly NAME, --over FILE|DIR, or --external bfcl=FILE")
    }
    return { prompts: spread(yield* own(flags, project), limit), recorded: false } satisfies Asked
  }
  if (assembly.length + over.length > 0)
    return yield* usage("--external brings its prompts; leave out --assembly and --over")
  const [name, path] = namedIn(external)
  if (name !== "bfcl") return yield* usage(`--external ${external}: there is bfcl=FILE (see docs/evaluation.md)`)
  const asked = yield* bfcl(path)
  const prompts = spread(asked.prompts, limit)
  const kept = new Set(prompts.map((prompt) => prompt.name))
  const suite = asked.suite!
  return {
    ...asked,
    prompts,
    suite: { ...suite, cases: suite.cases.filter((one) => one.name === undefined || kept.has(one.name)) }
  } satisfies Asked
})
