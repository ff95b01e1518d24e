/** `writ models alias`: gives a model a name for `--model`, takes one away, or lists them. Downloads nothing. */
import { resolve } from "node:path"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as ModelStore from "../actors/ModelStore.ts"
import { shownUri } from "../engine/RemoteFile.ts"
import { nearest } from "../tools/Nearest.ts"
import { inJson, type UsageError, usage } from "./Ending.ts"
import { defaultName, isName, named, tinyName } from "./ModelNames.ts"
import { directoryOf, type ModelsFlags, shownAliases, table } from "./ModelView.ts"
import { inline, jsonText } from "./Printable.ts"
import { paintFor } from "./Screen.ts"

export interface AliasFlags extends ModelsFlags {
  readonly name: string | undefined
  readonly target: string | undefined
  readonly remove: boolean
}

/**
 * What is kept of a target. A name of another alias is what that stands for, so that names never go round in circles; a path
 * holds from every directory.
 */
const kept = Effect.fnUntraced(function* (target: string, directory: string): Effect.fn.Return<string, UsageError> {
  const other = ModelStore.aliases(directory)[target]
  if (other !== undefined) return other
  const found = yield* named(target, directory, "")
  if (found._tag === "Uri") return target
  if (found._tag === "Tiny") return tinyName
  const stored = ModelStore.find(directory, target)
  if (stored !== undefined) return stored.name
  return found._tag === "File" ? resolve(found.path) : target
})

const checkName = (name: string, directory: string): Effect.Effect<void, UsageError> => {
  if (name === tinyName) return usage(`${tinyName} is the model that ships; choose another name`)
  if (!isName(name))
    return usage(`${name}: expected a name of letters, digits and . _ : + -, which is no path and no address`)
  return ModelStore.find(directory, name) === undefined
    ? Effect.void
    : usage(`${name} is the name of a model in ${directory} already; choose another name`)
}

const show = Effect.fnUntraced(function* (directory: string, flags: AliasFlags) {
  const aliases = shownAliases(ModelStore.aliases(directory))
  if (flags.json) return yield* Console.log(jsonText({ directory, aliases }))
  const rows = Object.entries(aliases).map(([name, target]) => [inline(name), inline(target)])
  if (rows.length === 0) return yield* Console.log("no names were given; writ models alias NAME TARGET gives one")
  const paint = yield* paintFor(flags.color)
  const lines = table(["NAME", "STANDS FOR"], rows, (text, row) => (row < 0 ? paint.dim(text) : text))
  return yield* Console.log(lines.join("\n"))
})

const takeAway = Effect.fnUntraced(function* (name: string, directory: string) {
  const names = Object.keys(ModelStore.aliases(directory))
  if (names.includes(name)) return yield* ModelStore.setAlias(directory, name, undefined)
  const near = nearest(name, names)
  return yield* usage(`there is no name ${name}${near === undefined ? "" : `; did you mean ${near}?`}`)
})

export const aliasModel = (flags: AliasFlags) =>
  Effect.gen(function* () {
    const { name, remove, target } = flags
    const directory = yield* directoryOf(flags)
    if (name === undefined) {
      if (remove) return yield* usage("--remove: say which name")
      return yield* show(directory, flags)
    }
    if (remove) {
      if (target !== undefined) return yield* usage("give a target or --remove, not both")
      yield* takeAway(name, directory)
    } else {
      if (target === undefined) return yield* usage(`${name}: say what it stands for, or --remove`)
      yield* checkName(name, directory)
      yield* ModelStore.setAlias(directory, name, yield* kept(target, directory))
    }
    if (flags.json) return yield* show(directory, flags)
    const now = ModelStore.aliases(directory)[name]
    if (now === undefined) return yield* Console.log(`${name} is taken away`)
    const use = name === defaultName ? "runs that name no model have it" : `use it with --model ${name}`
    return yield* Console.log(`${name} stands for ${inline(shownUri(now))}; ${use}`)
  }).pipe(inJson(flags.json))
