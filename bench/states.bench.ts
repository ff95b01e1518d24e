/**
 * When a saved state pays: milliseconds to evaluate a prompt of so many tokens, to save its state, and to check and load it
 * again. Random weights of two sizes, one thread; the larger one has about a fiftieth of a small real model's work per token.
 */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import * as Effect from "effect/Effect"
import { makeControl } from "../src/engine/LlamaControl.ts"
import { load } from "../src/engine/LlamaModel.ts"
import { text } from "../src/engine/Prompt.ts"
import { type GgufRecipe, makeGguf } from "../test/kit/gguf.ts"

const sizes: Readonly<Record<string, GgufRecipe>> = {
  tiny: { ctx: 4096 },
  mid: { ctx: 4096, dim: 512, ff: 1536, layers: 8 }
}
const lengths = [128, 512, 2048]

const median = (values: ReadonlyArray<number>): number => [...values].sort((a, b) => a - b)[values.length >> 1]!
const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const start = performance.now()
    return Effect.map(effect, () => performance.now() - start)
  })

const measured = Effect.fnUntraced(function* (modelPath: string, tokens: number, path: string) {
  const options = { modelPath, contextTokens: 4096, sequences: 1, threads: 1, gpu: false, reuse: "never" } as const
  const engine = yield* load(options, makeControl())
  const evaluating: Array<number> = []
  const saving: Array<number> = []
  const loading: Array<number> = []
  for (let round = 0; round < 5; round++) {
    yield* Effect.scoped(
      Effect.gen(function* () {
        const session = yield* engine.session
        evaluating.push(yield* timed(session.commit([text("x".repeat(tokens))])))
        saving.push(yield* timed(session.save(path, "bench")))
      })
    )
    yield* Effect.scoped(
      Effect.flatMap(engine.session, (session) =>
        Effect.map(timed(session.load(path)), (millis) => loading.push(millis))
      )
    )
  }
  return {
    evaluating: median(evaluating),
    saving: median(saving),
    loading: median(loading),
    bytes: Fs.statSync(path).size
  }
}, Effect.scoped)

const program = Effect.gen(function* () {
  const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-bench-"))
  yield* Effect.addFinalizer(() => Effect.sync(() => Fs.rmSync(directory, { recursive: true, force: true })))
  const figures: Record<string, number> = {}
  for (const [name, recipe] of Object.entries(sizes)) {
    const modelPath = Path.join(directory, `${name}.gguf`)
    Fs.writeFileSync(modelPath, makeGguf(recipe))
    for (const tokens of lengths) {
      const { bytes, evaluating, loading, saving } = yield* measured(modelPath, tokens, Path.join(directory, "state"))
      const what = `${name}, ${tokens} tokens`
      figures[`${what}: evaluate ms`] = evaluating
      figures[`${what}: save ms`] = saving
      figures[`${what}: check and load ms`] = loading
      figures[`${what}: load / evaluate`] = loading / evaluating
      figures[`${what}: MiB`] = bytes / 2 ** 20
    }
  }
  return figures
}).pipe(Effect.scoped)

export const statesBench = (): Promise<Record<string, number>> => Effect.runPromise(program)

if (import.meta.main) process.stdout.write(`${JSON.stringify(await statesBench(), null, 2)}\n`)
