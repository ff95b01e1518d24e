/**
 * A process that fills the conversation `c.yaml` of a directory and dies where it is told to: `node conversationChild.ts
 * DIRECTORY _ WHERE`. Run again in the same directory it goes on with the file. WHERE is `PLACE:N` (the N-th time it comes
 * there), `torn:N` (half of the N-th new file is written) or `never`. What it came to is a JSON line on stdout.
 */
import fs, { appendFileSync, existsSync, readdirSync, readFileSync } from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { join } from "node:path"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as ArtifactStore from "../../src/actors/ArtifactStore.ts"
import { EffectLedger } from "../../src/actors/EffectLedger.ts"
import { layerSqlite } from "../../src/actors/EffectLedgerSqlite.ts"
import * as Ids from "../../src/actors/Ids.ts"
import * as ToolPool from "../../src/actors/ToolPool.ts"
import * as TraceWriter from "../../src/actors/TraceWriter.ts"
import * as Advertised from "../../src/effects/conversation/Advertised.ts"
import * as ConversationFile from "../../src/effects/conversation/ConversationFile.ts"
import * as Filling from "../../src/effects/conversation/Filling.ts"
import * as Fixture from "../../src/effects/conversation/Fixture.ts"
import { Approval, allowAll } from "../../src/effects/Policy.ts"
import * as RunDirectory from "../../src/effects/RunDirectory.ts"
import * as Families from "../../src/engine/codecs/Families.ts"
import { Model } from "../../src/engine/Model.ts"
import * as Contract from "../../src/tools/Contract.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { ToolContext } from "../../src/tools/ToolContext.ts"
import { acts } from "./contracts.ts"

const [directory = ".", , where = "never"] = process.argv.slice(2)
const [place, ordinal] = where.split(":")

const die = (): never => {
  process.kill(process.pid, "SIGKILL")
  throw new Error("still here")
}

const visits = new Map<string, number>()

const at = (name: string): boolean => {
  const visit = (visits.get(name) ?? 0) + 1
  visits.set(name, visit)
  return place === name && visit === Number(ordinal)
}

/** Dies here, if this is where and when. */
const here = (name: string) =>
  Effect.sync(() => {
    if (at(name)) die()
  })

const { renameSync, writeSync } = fs

const isFile = (path: unknown): boolean => String(path).endsWith("c.yaml")

/** The new file lies beside the old one; then it takes its place. */
fs.renameSync = (from, to) => {
  if (isFile(to) && at("before-rename")) die()
  renameSync(from, to)
  if (isFile(to) && at("after-rename")) die()
}

fs.writeSync = ((fd: number, data: string | Uint8Array, ...rest: ReadonlyArray<never>) => {
  if (typeof data === "string" && data.startsWith('{"schema":"writ.trace')) {
    const written = writeSync(fd, data, ...rest)
    if (at("line")) die()
    return written
  }
  const text = Buffer.from(data as Uint8Array)
  if (text.subarray(0, 11).toString() === "---\nmodel: " && at("torn")) {
    writeSync(fd, text, 0, text.length >> 1)
    die()
  }
  return writeSync(fd, data as never, ...rest)
}) as typeof fs.writeSync
syncBuiltinESMExports()

const world = join(directory, "world.txt")

const Read = Tool.make("read_note", {
  description: "Reads a note.",
  parameters: Schema.Struct({ name: Schema.String }),
  success: Schema.String
}).annotate(Contract.Risk, "read")

const Save = acts(
  "local-write",
  Tool.make("save", {
    description: "Saves a text.",
    parameters: Schema.Struct({ name: Schema.String, content: Schema.String }),
    success: Schema.String
  }),
  { ledger: "atomic" }
)

const Notify = acts(
  "external",
  Tool.make("notify", {
    description: "Tells somebody.",
    parameters: Schema.Struct({ to: Schema.String }),
    success: Schema.Struct({ told: Schema.String })
  }),
  { ledger: "external" }
)

/** The outside world. It knows a key that was used before. */
const deliver = (key: string, to: string): void => {
  if (!existsSync(world) || !readFileSync(world, "utf8").includes(key)) appendFileSync(world, `${key} ${to}\n`)
}

const registry = await Effect.runPromise(
  Registry.fromToolkit(Toolkit.make(Read, Save, Notify), {
    read_note: ({ name }) => Effect.succeed(`the note ${name}: ä€𝄞`),
    save: Effect.fnUntraced(function* ({ content, name }) {
      const { produce } = yield* ToolContext
      produce({ name, mediaType: "text/plain", bytes: Buffer.from(content) })
      return "saved"
    }),
    notify: Effect.fnUntraced(function* ({ to }) {
      const { settings } = yield* ToolContext
      yield* here("before-effect")
      yield* Effect.sync(() => deliver(settings.idempotencyKey ?? "", to))
      yield* here("after-effect")
      return { told: to }
    })
  })
)

const use = (name: string, input: object) => ({ type: "tool_use", name, input: input as never }) as const

const fixture: Fixture.Fixture = {
  name: "script",
  engine: [
    { raw: "<tool_call>\n{broken\n</tool_call>" },
    {
      blocks: [
        { type: "text", text: "First the note." },
        use("read_note", { name: "a" }),
        use("save", { name: "first.txt", content: "one ä" }),
        use("notify", { to: "ann" }),
        use("nobody_knows", {})
      ]
    },
    { blocks: [use("notify", { to: "bob" })] },
    { text: "Everybody was told." },
    { text: "You are welcome." }
  ]
}

const layerLedger = Layer.effect(
  EffectLedger,
  Effect.map(EffectLedger, (ledger) =>
    EffectLedger.of({
      ...ledger,
      begin: (intent) =>
        Effect.tap(Effect.andThen(here("before-begin"), ledger.begin(intent)), () => here("after-begin")),
      settle: (key, outcome) =>
        Effect.andThen(
          here("before-settle"),
          Effect.tap(ledger.settle(key, outcome), () => here("after-settle"))
        )
    })
  )
).pipe(Layer.provide(layerSqlite({ path: join(directory, "ledger.sqlite") })))

const directoryOf = (runId: string) => {
  const { part, root } = RunDirectory.partOf(runId)
  return RunDirectory.at(join(directory, "runs", root), part)
}

const services = Layer.mergeAll(
  layerLedger,
  ArtifactStore.layerDirectory((runId) => directoryOf(runId).artifacts),
  ToolPool.layerInline(),
  TraceWriter.layerFile((runId) => directoryOf(runId).trace),
  Ids.layer,
  Layer.succeed(Approval, allowAll)
)

const path = join(directory, "c.yaml")

const program = Effect.gen(function* () {
  const conversation = yield* ConversationFile.load(path)
  const tools = yield* Advertised.registryOf(conversation.meta, registry, path)
  const codec = Result.getOrThrow(Families.byId("qwen2.5"))
  const { scripted, voice } = Fixture.engineOf(fixture, conversation, codec, tools.specs)
  const filled = yield* Filling.fill({
    conversation,
    path: "c.yaml",
    tools,
    codec,
    voice,
    trace: { content: true },
    recorded: (name) => {
      const { directory } = directoryOf(name)
      return existsSync(directory) ? readdirSync(directory).filter((file) => file.endsWith(".jsonl")).length : 0
    },
    save: (now) => ConversationFile.save(path, now)
  }).pipe(Effect.provideService(Model, scripted.model))
  return { stop: filled.stop, left: scripted.left() }
}).pipe(Effect.scoped)

const said = await Effect.runPromise(Effect.provide(program, services))
process.stdout.write(`${JSON.stringify({ ...said, lines: 0, visits: Object.fromEntries(visits) })}\n`)
