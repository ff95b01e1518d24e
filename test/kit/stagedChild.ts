/**
 * A process that notes numbers in a ledger's database, one run for each, until it is killed or has noted all:
 * `node stagedChild.ts FILE|URL FROM TO WHERE`. WHERE is `before:N` or `after:N` (it kills itself around its N-th commit),
 * `slow` (each commit takes seconds) or `never`. It says `committing N` and `committed N` on stdout.
 */
import { writeSync } from "node:fs"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ArtifactStore from "../../src/actors/ArtifactStore.ts"
import { EffectLedger } from "../../src/actors/EffectLedger.ts"
import { layerPostgres } from "../../src/actors/EffectLedgerPostgres.ts"
import { layerSqlite } from "../../src/actors/EffectLedgerSqlite.ts"
import * as Ids from "../../src/actors/Ids.ts"
import * as ToolPool from "../../src/actors/ToolPool.ts"
import * as TraceWriter from "../../src/actors/TraceWriter.ts"
import * as Agent from "../../src/effects/Agent.ts"
import { Approval, allowAll } from "../../src/effects/Policy.ts"
import * as ScriptedModel from "../../src/engine/ScriptedModel.ts"
import { calls } from "./script.ts"
import { noteTool } from "./stagedTool.ts"

const [place = "", from = "0", to = "0", where = "never"] = process.argv.slice(2)
const [when, ordinal] = where.split(":")
const say = (line: string) => writeSync(1, `${line}\n`)

/** Seconds of work inside the transaction, after the row is there. */
const slow = {
  sql: place.startsWith("postgres:")
    ? "select pg_sleep(4)"
    : "update notes set n = n where n < 0 and (with a (x) as (values (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)) select count(*) from a, a b, a c, a d, a e, a f, a g, a h) < 0"
}

let commits = 0
const dieIf = (here: string) =>
  Effect.sync(() => {
    if (when === here && commits === Number(ordinal)) process.kill(process.pid, "SIGKILL")
  })

const watched = Layer.effect(
  EffectLedger,
  Effect.map(EffectLedger, (ledger) =>
    EffectLedger.of({
      ...ledger,
      commit: (key, outcome, staged) =>
        Effect.gen(function* () {
          say(`committing ${++commits}`)
          yield* dieIf("before")
          const kept = yield* ledger.commit(key, outcome, staged)
          yield* dieIf("after")
          say(`committed ${commits}`)
          return kept
        })
    })
  )
).pipe(Layer.provide(place.startsWith("postgres:") ? layerPostgres({ url: place }) : layerSqlite({ path: place })))

const services = Layer.mergeAll(
  watched,
  ArtifactStore.layerMemory,
  ToolPool.layerInline(),
  TraceWriter.layerMemory,
  Ids.layer,
  Layer.succeed(Approval, allowAll)
)

const noted = Effect.gen(function* () {
  const tools = yield* noteTool({ also: () => (when === "slow" ? [slow] : []) })
  for (let n = Number(from); n < Number(to); n++) {
    const { stop } = yield* Agent.run({ task: `Note ${n}.`, system: "You note.", tools }).pipe(
      Effect.provide(ScriptedModel.layer({ turns: [calls(["add_note", { n }]), "Done."] }))
    )
    if (stop._tag !== "Completed") say(JSON.stringify(stop))
  }
  say("end")
})

await Effect.runPromise(Effect.provide(noted, services))
