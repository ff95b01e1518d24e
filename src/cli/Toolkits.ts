/** The tools a command looks at: those that come with Writ, or those of a module somebody names. */
import { resolve } from "node:path"
import { pathToFileURL } from "node:url"
import * as Effect from "effect/Effect"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import { nearest } from "../tools/Nearest.ts"
import type { RegisteredTool, RegistrationError, Registry } from "../tools/Registry.ts"
import { type UsageError, usage } from "./Ending.ts"
import { open, withFiles } from "./FileToolSource.ts"
import { problemAt } from "./Places.ts"
import { Provisions } from "./Provisions.ts"

/** What every command about tools is told. */
export interface ToolFlags {
  readonly toolkit: string | undefined
  readonly toolsDir?: string | undefined
  readonly json: boolean
  readonly color: boolean | undefined
}

const reasonOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

const isRegistry = (value: unknown): value is Registry =>
  typeof value === "object" && value !== null && Array.isArray((value as { readonly tools?: unknown }).tools)

/** A module as tool threads load one: its `registry` is an effect, or the registry itself. */
const fromModule = Effect.fnUntraced(function* (named: string): Effect.fn.Return<Registry, UsageError> {
  const refused = (why: string) => usage(`--toolkit ${named}: ${why}`)
  const problem = problemAt(named, "File")
  if (problem !== undefined) return yield* refused(problem)
  const exported = yield* Effect.tryPromise({
    try: async () => (await import(pathToFileURL(resolve(named)).href)) as { readonly registry?: unknown },
    catch: reasonOf
  }).pipe(Effect.catch((why) => refused(`it cannot be loaded: ${why}`)))
  const { registry } = exported
  const made = Effect.isEffect(registry)
    ? yield* (registry as Effect.Effect<unknown, unknown>).pipe(Effect.catch((error) => refused(reasonOf(error))))
    : registry
  return isRegistry(made) ? made : yield* refused("it exports no registry (export const registry = …)")
})

const refused = ({ message, tool }: RegistrationError) => usage(`the tool ${tool}: ${message}`)

/** All tools, and the names of those that are files. */
export const bySource = Effect.fnUntraced(function* ({
  toolkit,
  toolsDir
}: ToolFlags): Effect.fn.Return<
  { readonly registry: Registry; readonly files: ReadonlySet<string> },
  UsageError,
  ChildProcessSpawner
> {
  const own =
    toolkit === undefined ? yield* Effect.catch((yield* Provisions).tools, refused) : yield* fromModule(toolkit)
  const files = yield* open(toolsDir)
  const registry = yield* Effect.catch(withFiles(own, files), refused)
  return { registry, files: new Set((files?.registry.tools ?? []).map(({ name }) => name)) }
})

export const toolsOf = (flags: ToolFlags) => Effect.map(bySource(flags), ({ registry }) => registry)

/** One of them by name. */
export const toolNamed = (registry: Registry, name: string): Effect.Effect<RegisteredTool, UsageError> => {
  const found = registry.get(name)
  if (found !== undefined) return Effect.succeed(found)
  const names = registry.tools.map((tool) => tool.name)
  const near = nearest(name, names)
  return usage(
    `there is no tool ${name}${near === undefined ? `; there are ${names.join(", ")}` : `; did you mean ${near}?`}`
  )
}
