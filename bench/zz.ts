import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { makeWorker } from "../src/actors/Inference.ts"
import { tinyModel } from "../src/effects/Wiring.ts"
import { makeControl } from "../src/engine/LlamaControl.ts"
import { load } from "../src/engine/LlamaModel.ts"
import { text, control } from "../src/engine/Prompt.ts"
const program = Effect.gen(function* () {
  const o = { modelPath: tinyModel, contextTokens: 2048, sequences: 1, threads: 1, gpu: false, reuse: "never", flashAttention: process.argv[2] === "fa" } as const
  const worker = yield* makeWorker(o)
  const engine = yield* load(o, makeControl())
  for (const [name, model] of [["thread", worker.model], ["here", engine], ["thread", worker.model], ["here", engine]] as const) yield* Effect.scoped(Effect.gen(function* () {
    const session = yield* model.session
    const t = performance.now()
    const first = yield* session.commit([text("some words to fill it ".repeat(20))])
    const big = performance.now() - t
    const row: Array<string> = []
    for (let i = 0; i < 30; i++) {
      const t = performance.now()
      const { start, end } = yield* session.commit([control("<|im_start|>user\n"), text(`What is ${i} plus three?`), control("<|im_end|>\n")])
      const a = performance.now() - t
      const t2 = performance.now()
      const ev = yield* Stream.runCollect(session.turn([control("<|im_start|>assistant\n")], { maxTokens: 10, stops: [], sampling: { temperature: 0, topK: 40, topP: 0.95, seed: 1 } }))
      const b = performance.now() - t2
      const t3 = performance.now()
      yield* session.keep([control("<|im_end|>\n")])
      const c = performance.now() - t3
      const u = (ev.at(-1) as any).usage
      if (i % 6 === 0) row.push(`@${start} commit ${end - start}tok ${a.toFixed(1)} turn ${b.toFixed(1)} (pre ${u.prefillTokens}:${u.prefillMillis.toFixed(1)} dec ${u.outputTokens}:${u.decodeMillis.toFixed(1)}) keep ${c.toFixed(1)}`)
    }
    console.log(name, first.end, big.toFixed(1)); console.log(row.join("\n"))
  }))
}).pipe(Effect.scoped)
Effect.runPromise(program)
