/** `writ models remove`: removes models from their directory, after asking. Reaches nothing outside of it. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { pullerOf } from "../actors/ModelPull.ts"
import * as ModelStore from "../actors/ModelStore.ts"
import { nearest } from "../tools/Nearest.ts"
import { askTerminal } from "./Approvers.ts"
import { inJson, type UsageError, usage } from "./Ending.ts"
import { tinyName } from "./ModelNames.ts"
import { directoryOf, type ModelsFlags } from "./ModelView.ts"
import { count, inline, jsonText, size } from "./Printable.ts"
import * as Screen from "./Screen.ts"

export interface RemoveFlags extends ModelsFlags {
  readonly names: ReadonlyArray<string>
  readonly yes: boolean
}

/** The models of these names. A name is compared and never taken for a path. */
const modelsFor = Effect.fnUntraced(function* (
  names: ReadonlyArray<string>,
  directory: string
): Effect.fn.Return<ReadonlyArray<ModelStore.StoredModel>, UsageError> {
  const all = ModelStore.list(directory)
  const aliases = ModelStore.aliases(directory)
  const found = new Set<ModelStore.StoredModel>()
  for (const name of names) {
    const wanted = name.replace(/\.gguf$/i, "")
    const here = all.filter((model) => model.name === wanted)
    for (const model of here) found.add(model)
    if (here.length > 0) continue
    if (Object.hasOwn(aliases, name)) {
      return yield* usage(
        `${name} is a name that stands for ${aliases[name]}: take it away with writ models alias ${name} --remove, or name the model`
      )
    }
    if (name === tinyName) return yield* usage(`${name} ships with writ and stays`)
    const near = nearest(
      wanted,
      all.map((model) => model.name)
    )
    return yield* usage(
      `there is no model ${name} in ${directory}${near === undefined ? ": " : `; did you mean ${near}? `}writ models list shows what there is`
    )
  }
  return [...found]
})

/** What is being downloaded is not taken from under the one who does it. */
const checkIdle = (
  models: ReadonlyArray<ModelStore.StoredModel>,
  directory: string
): Effect.Effect<void, UsageError> => {
  for (const model of models.filter(({ unfinished }) => unfinished)) {
    const owner = pullerOf(directory, model)
    if (owner !== undefined) return usage(`${model.name} is being downloaded by process ${owner}: stop that first`)
  }
  return Effect.void
}

const said = ({ bytes, files, name, unfinished }: ModelStore.StoredModel): string =>
  `${inline(name)} (${size(bytes)}${files.length > 1 ? ` in ${files.length} files` : ""}${unfinished ? ", not complete" : ""})`

/** Yes or no; where nobody can be asked it is a mistake not to have said so. */
const agreed = Effect.fnUntraced(function* (
  models: ReadonlyArray<ModelStore.StoredModel>,
  directory: string,
  screen: Screen.Screen
): Effect.fn.Return<boolean, UsageError> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    return yield* usage("nobody can be asked here (there is no terminal): say --yes to remove without asking")
  }
  const question = `Remove ${models.map(said).join(", ")} from ${directory}? [y]es, [n]o: `
  const answer = yield* askTerminal(screen)(question)
  return /^y(?:es)?$/i.test(answer?.trim() ?? "")
})

export const removeModels = (flags: RemoveFlags) =>
  Effect.gen(function* () {
    const directory = yield* directoryOf(flags)
    const models = yield* modelsFor(flags.names, directory)
    yield* checkIdle(models, directory)
    const screen = yield* Screen.make(flags.color)
    if (!flags.yes) {
      if (flags.json) return yield* usage("with --json nobody is asked: say --yes")
      if (!(yield* agreed(models, directory, screen))) return screen.line("nothing was removed")
    }
    let freed = 0
    for (const model of models) freed += yield* ModelStore.remove(directory, model)
    const gone = models.filter(({ unfinished }) => !unfinished).map(({ name }) => name)
    const dangling = Object.entries(ModelStore.aliases(directory))
      .filter(([, target]) => gone.includes(target.replace(/\.gguf$/i, "")))
      .map(([name]) => name)
    if (flags.json) {
      const document = {
        directory,
        removed: models.map(({ name }) => name),
        freed_bytes: freed,
        dangling_aliases: dangling
      }
      return yield* Console.log(jsonText(document))
    }
    screen.line(`${count(models.length, "model")} removed, ${size(freed)} free again`)
    for (const name of dangling) {
      screen.line(`${inline(name)} stands for nothing now: writ models alias ${inline(name)} TARGET, or --remove`)
    }
    return undefined
  }).pipe(inJson(flags.json))
