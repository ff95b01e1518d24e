/**
 * A process that runs an agent and dies where it is told to: `node crashChild.ts DIRECTORY MODE WHERE`. Run again in the
 * same directory it resumes. MODE is how the external tool is kept from acting twice (`external` or `none`); WHERE is
 * `line:N` (N trace lines are with the system), `half:N` (and half of the next), `PLACE:N` (the N-th time it comes there)
 * or `never`. What it came to is a JSON line on stdout.
 */
import fs, { appendFileSync, existsSync, readFileSync } from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { join } from "node:path"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as ArtifactStore from "../../src/actors/ArtifactStore.ts"
import { EffectLedger } from "../../src/actors/EffectLedger.ts"
import { layerSqlite } from "../../src/actors/EffectLedgerSqlite.ts"
import { Ids } from "../../src/actors/Ids.ts"
import * as ToolPool from "../../src/actors/ToolPool.ts"
import * as TraceWriter from "../../src/actors/TraceWriter.ts"
import * as Agent from "../../src/effects/Agent.ts"
import type { Outcome } from "../../src/effects/Outcome.ts"
import { Approval, allowAll } from "../../src/effects/Policy.ts"
import { resume } from "../../src/effects/Resume.ts"
import * as ScriptedModel from "../../src/engine/ScriptedModel.ts"
import * as Contract from "../../src/tools/Contract.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { ToolContext } from "../../src/tools/ToolContext.ts"
import { acts } from "./contracts.ts"
import { kept, parts } from "./crashParts.ts"
import { calls } from "./script.ts"

const [directory = ".", mode = "external", where = "never"] = process.argv.slice(2)
const [place, ordinal] = where.split(":")

const die = (): never => {
  process.kill(process.pid, "SIGKILL")
  throw new Error("still here")
}

const visits = new Map<string, number>()

/** Dies here, if this is where and when. */
const here = (name: string) =>
  Effect.sync(() => {
    const visit = (visits.get(name) ?? 0) + 1
    visits.set(name, visit)
    if (place === name && visit === Number(ordinal)) die()
  })

const writeSync = fs.writeSync
let handedOver = 0

/** The trace writer's own file, written line by line so that every boundary is one to die at. */
fs.writeSync = ((fd: number, data: string | Uint8Array, ...rest: ReadonlyArray<never>) => {
  if (typeof data !== "string" || !data.startsWith('{"schema":"writ.trace'))
    return writeSync(fd, data as never, ...rest)
  for (const line of data.split(/(?<=\n)/)) {
    if (place === "half" && handedOver === Number(ordinal)) {
      const bytes = Buffer.from(line)
      writeSync(fd, bytes, 0, bytes.length >> 1)
      die()
    }
    writeSync(fd, line)
    handedOver++
    if (place === "line" && handedOver === Number(ordinal)) die()
  }
  return Buffer.byteLength(data)
}) as typeof fs.writeSync
syncBuiltinESMExports()

const world = join(directory, "world.txt")

const Note = Tool.make("read_note", {
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
    success: Schema.String
  }),
  { ledger: mode === "none" ? "none" : "external" }
)

const registry = await Effect.runPromise(
  Registry.fromToolkit(Toolkit.make(Note, Save, Notify), {
    read_note: ({ name }) => Effect.succeed(`the note ${name}: ä€𝄞`),
    save: Effect.fnUntraced(function* ({ content, name }) {
      yield* here("before-save")
      const { produce } = yield* ToolContext
      produce({ name, mediaType: "text/plain", bytes: Buffer.from(content) })
      return "saved"
    }),
    notify: Effect.fnUntraced(function* ({ to }) {
      const { settings } = yield* ToolContext
      yield* here("before-effect")
      yield* Effect.sync(() => deliver(settings.idempotencyKey ?? "", to))
      yield* here("after-effect")
      return `told ${to}`
    })
  })
)

/** The outside world. In mode `external` it knows a key that was used before. */
const deliver = (key: string, to: string): void => {
  const known = existsSync(world) && readFileSync(world, "utf8").includes(key)
  if (mode !== "none" && known) return
  appendFileSync(world, `${mode === "none" ? "" : `${key} `}${to}\n`)
}

const turns = [
  calls(["read_note", { name: "a" }]),
  "<tool_call>\n{broken\n</tool_call>",
  calls(
    ["save", { name: "first.txt", content: "one ä" }],
    ["notify", { to: "ann" }],
    ["nobody_knows", {}],
    ["read_note", { name: "b" }]
  ),
  calls(["notify", { to: "bob" }], ["save", { name: "second.txt", content: "two" }]),
  "Everybody was told."
]

const layerLedger = Layer.effect(
  EffectLedger,
  Effect.map(EffectLedger, (ledger) =>
    EffectLedger.of({
      ...ledger,
      begin: (intent) =>
        Effect.tap(Effect.andThen(here("before-begin"), ledger.begin(intent)), () => here("after-begin")),
      retake: (intent) => Effect.tap(ledger.retake(intent), () => here("after-retake")),
      settle: (key, outcome) =>
        Effect.andThen(
          here("before-settle"),
          Effect.tap(ledger.settle(key, outcome), () => here("after-settle"))
        )
    })
  )
).pipe(Layer.provide(layerSqlite({ path: join(directory, "ledger.sqlite") })))

const layerArtifacts = Layer.effect(
  ArtifactStore.ArtifactStore,
  Effect.map(ArtifactStore.ArtifactStore, (store) =>
    ArtifactStore.ArtifactStore.of({
      ...store,
      put: (run, artifact) => Effect.tap(store.put(run, artifact), () => here("after-put"))
    })
  )
).pipe(Layer.provide(ArtifactStore.layerDirectory(() => join(directory, "artifacts"))))

const services = Layer.mergeAll(
  layerLedger,
  layerArtifacts,
  ToolPool.layerInline(),
  TraceWriter.layerFile((runId) => join(directory, `${runId}.jsonl`)),
  Layer.succeed(Ids, Ids.of({ run: Effect.succeed("run") })),
  Layer.succeed(Approval, allowAll)
)

const traces = parts(directory)
const options = { tools: registry, trace: { content: true, tokenEvents: false }, calls: "sequential" } as const

const program: Effect.Effect<Outcome, unknown, Agent.Services> =
  traces.length === 0
    ? Agent.run({ ...options, task: "Tell everybody.", system: "You tell." })
    : resume({ ...options, traces })

const said = await Effect.runPromise(
  program.pipe(
    Effect.map(({ stop, transcript }) => ({ stop, transcript: transcript.map(({ span: _, ...entry }) => entry) })),
    Effect.catch((error) => Effect.succeed({ refused: String(error) })),
    Effect.provide(Layer.merge(services, ScriptedModel.layer({ turns: turns.slice(kept(traces)) })))
  )
)
process.stdout.write(`${JSON.stringify({ ...said, lines: handedOver, visits: Object.fromEntries(visits) })}\n`)
