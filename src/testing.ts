/** Public surface "effect-writ/testing": runs that are the same each time. No thread, no file, no model. */
import * as Layer from "effect/Layer"
import * as ArtifactStore from "./actors/ArtifactStore.ts"
import * as EffectLedger from "./actors/EffectLedger.ts"
import * as Ids from "./actors/Ids.ts"
import * as ToolPool from "./actors/ToolPool.ts"
import * as TraceWriter from "./actors/TraceWriter.ts"
import * as ScriptedModel from "./engine/ScriptedModel.ts"

export { MemoryTraces } from "./actors/TraceWriter.ts"
export type { Script, ScriptedFault, ScriptedTurn } from "./engine/ScriptedModel.ts"
/** `layerEngine(script)` is the engine alone, for `Wiring.layer({ engine })` or services of your own. */
export { layer as layerEngine, ScriptedSessions } from "./engine/ScriptedModel.ts"

/** The same digests in every test run. */
const fixedKey = Layer.succeed(TraceWriter.TraceKey, () => new Uint8Array(32))

/** A scripted engine, tools in this thread, record and artifacts in memory, runs named `run-1`, `run-2`, … */
export const layerScripted = (script: ScriptedModel.Script) =>
  Layer.mergeAll(
    ScriptedModel.layer(script),
    ToolPool.layerInline({ anyIsolation: true }),
    TraceWriter.layerMemory.pipe(Layer.provideMerge(fixedKey)),
    ArtifactStore.layerMemory,
    EffectLedger.layerMemory(),
    Ids.layerSequence
  )
