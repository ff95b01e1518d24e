/**
 * A process that publishes one artifact as a tool's effect, and kills itself next to the rename that does it:
 * `node publishChild.ts DIRECTORY WHERE`, where WHERE is `before`, `after` or `never`. Run again it takes the attempt over.
 */
import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ArtifactStore, layerDirectory } from "../../src/actors/ArtifactStore.ts"
import { EffectLedger } from "../../src/actors/EffectLedger.ts"
import { layerSqlite } from "../../src/actors/EffectLedgerSqlite.ts"
import { intent, succeeded } from "./ledger.ts"

const [directory = "", where = "never"] = process.argv.slice(2)

const { renameSync } = fs
fs.renameSync = (from, to) => {
  if (where === "before") process.kill(process.pid, "SIGKILL")
  renameSync(from, to)
  if (where === "after") process.kill(process.pid, "SIGKILL")
}
syncBuiltinESMExports()

await Effect.runPromise(
  Effect.gen(function* () {
    const ledger = yield* EffectLedger
    const begun = yield* ledger.retake(intent(0, { mode: "atomic" }))
    if (begun._tag !== "New") return
    const artifact = { name: "a.txt", mediaType: "text/plain", bytes: Buffer.from("x".repeat(100_000)) }
    const { artifactId } = yield* (yield* ArtifactStore).put("run", artifact)
    yield* ledger.settle(intent(0).key, succeeded(artifactId))
  }).pipe(
    Effect.provide(
      Layer.merge(
        layerDirectory(() => join(directory, "artifacts")),
        layerSqlite({ path: join(directory, "ledger.sqlite") })
      )
    )
  )
)
