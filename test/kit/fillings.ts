/** Fills conversations in this process: scripted engine, tools in this thread, files in memory. */
import { join } from "node:path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as ArtifactStore from "../../src/actors/ArtifactStore.ts"
import * as Advertised from "../../src/effects/conversation/Advertised.ts"
import type { Conversation, Message, ToolDefinition } from "../../src/effects/conversation/Conversation.ts"
import * as ConversationText from "../../src/effects/conversation/ConversationText.ts"
import * as Filling from "../../src/effects/conversation/Filling.ts"
import * as Fixture from "../../src/effects/conversation/Fixture.ts"
import { ScriptedTools } from "../../src/effects/conversation/ScriptedTools.ts"
import { Approval, allowAll } from "../../src/effects/Policy.ts"
import * as Families from "../../src/engine/codecs/Families.ts"
import { Model } from "../../src/engine/Model.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import type { Registry } from "../../src/tools/Registry.ts"
import { directory } from "./cli.ts"
import * as TestTools from "./tools.ts"

export const user = (content: string): Message => ({ role: "user", content })
export const system = (content: string): Message => ({ role: "system", content })
export const blank: Message = { role: "assistant" }

const number = { type: "number" } as const

export const addTool: ToolDefinition = {
  name: "add",
  description: "Adds two numbers, says the file.",
  input_schema: { type: "object", properties: { a: number, b: number }, required: ["a", "b"] }
}

/** A declaration of a tool of the kit, by its name. */
export const declared = (registry: Registry, ...names: ReadonlyArray<string>): ReadonlyArray<ToolDefinition> =>
  names.map((name) => {
    const { description, parameters } = registry.get(name)!.spec
    return { name, description, input_schema: parameters }
  })

export const conversation = (
  tools: ReadonlyArray<ToolDefinition>,
  ...session: ReadonlyArray<Message>
): Conversation => ({
  meta: { model: "noop", ...(tools.length === 0 ? {} : { tools }) },
  session
})

/** A call as a block of a script. */
export const use = (name: string, input: Readonly<Record<string, never>> | object, id?: string) =>
  ({ type: "tool_use", name, input: input as never, ...(id === undefined ? {} : { id }) }) as const

export interface FillKit extends Omit<Partial<Filling.FillingOptions>, "conversation" | "tools"> {
  /** Script's results; without them the kit's tools run. */
  readonly results?: Fixture.Fixture["tools"]
}

export interface Play {
  readonly conversation: Conversation
  readonly engine: Fixture.Fixture["engine"]
}

/** The services of several runs after one another, which remember records and effects. */
export class Home extends Context.Service<
  Home,
  { readonly registry: Registry; readonly performed: Array<string>; readonly counts: Map<string, number> }
>()("effect-writ/test/Home") {
  static readonly layer = Layer.mergeAll(
    layerScripted({ turns: [] }),
    // On disk, where a later process finds what an earlier one left.
    Layer.unwrap(Effect.map(directory, (path) => ArtifactStore.layerDirectory((run) => join(path, run)))),
    Layer.effect(
      Home,
      Effect.map(TestTools.make(), (made) => ({ ...made, counts: new Map<string, number>() }))
    ),
    Layer.succeed(Approval, allowAll)
  )
}

export type Services = Layer.Success<typeof Home.layer>

const codecOf = (id = "qwen2.5") => Result.getOrThrow(Families.byId(id))

/** Runs a script over a conversation. `saved` is the file after each step, `context` what the model was shown. */
export const fill = Effect.fnUntraced(function* ({ conversation, engine }: Play, kit: FillKit = {}) {
  const { counts, performed, registry } = yield* Home
  const { codec = "qwen2.5", results, ...options } = kit
  const fixture: Fixture.Fixture = { name: "script", engine, ...(results === undefined ? {} : { tools: results }) }
  const scripted = results === undefined ? undefined : new ScriptedTools(results, Fixture.answered(conversation))
  const tools = yield* scripted === undefined
    ? Advertised.registryOf(conversation.meta, registry, "c.yaml")
    : scripted.registry(conversation.meta, "c.yaml")
  const played = Fixture.engineOf(fixture, conversation, codecOf(codec as string), tools.specs)
  const saved: Array<Conversation> = []
  const filled = yield* Effect.scoped(
    Filling.fill({
      conversation,
      path: "c.yaml",
      tools,
      codec,
      voice: played.voice,
      ...(Fixture.callsInBlocks(fixture) ? { heard: heardOf(tools) } : {}),
      recorded: (name) => counts.get(name) ?? 0,
      trace: { content: true },
      save: (now) => Effect.sync(() => void saved.push(structuredClone(now) as Conversation)),
      started: (_, stop) => {
        if (scripted !== undefined) scripted.stop = stop
      },
      ...options
    })
  ).pipe(Effect.provideService(Model, played.scripted.model))
  for (const { runId } of filled.runs) {
    const root = runId.replace(/-r\d+$/, "")
    counts.set(root, (counts.get(root) ?? 0) + 1)
  }
  const traces = yield* MemoryTraces
  return {
    ...filled,
    saved,
    performed,
    scripted,
    left: [...(played.scripted.left() > 0 ? [`engine: ${played.scripted.left()}`] : []), ...(scripted?.left() ?? [])],
    context: played.scripted.logs.map((log) => log.committed()).join("\n=====\n"),
    traceOf: (runId: string) => traces.text(runId)
  }
})

/** Something to hear calls by, where none is declared. */
export const heardOf = ({ specs }: Registry) =>
  specs.length > 0 ? specs : [{ name: "none", description: "", parameters: { type: "object" } }]

export const text = (conversation: Conversation): string => ConversationText.emit(conversation)

/** Roles, with calls and results by name: `assistant(add)`, `tool(1)`. */
export const shape = ({ session }: Conversation): ReadonlyArray<string> =>
  session.map(({ content, role }) => {
    if (content === undefined) return `${role}()`
    if (typeof content === "string") return role
    const names = content.flatMap((block) => (block.type === "tool_use" ? [block.name] : []))
    if (role === "tool") return `tool(${content.length})`
    return names.length === 0 ? role : `${role}(${names.join(",")})`
  })
