/** The yardstick of `engine.bench.ts`: node-llama-cpp alone in a worker thread, the shortest loop that gives tokens. */
import { parentPort, workerData } from "node:worker_threads"
import { getLlama, type Token } from "node-llama-cpp"

const { contextTokens, modelPath, prompt } = workerData as {
  readonly modelPath: string
  readonly contextTokens: number
  readonly prompt: ReadonlyArray<Token>
}
const llama = await getLlama({ gpu: false, build: "never", skipDownload: true, progressLogs: false, maxThreads: 1 })
const model = await llama.loadModel({ modelPath })
const context = await model.createContext({ contextSize: contextTokens, sequences: 1, threads: 1, batchSize: 512 })
const sequence = context.getSequence()
await sequence.evaluateWithoutGeneratingNewTokens(prompt.slice(0, -1))
const start = sequence.nextTokenIndex

export interface BareRequest {
  readonly opening: ReadonlyArray<Token>
  readonly maxTokens: number
  readonly temperature: number
  readonly seed: number
  /** Tell the other thread of new tokens every 16 ms, as an engine that anybody watches must. */
  readonly streaming: boolean
}

parentPort!.on("message", async (request: BareRequest | "close") => {
  if (request === "close") {
    await context.dispose()
    await model.dispose()
    await llama.dispose()
    parentPort!.close()
    return
  }
  const { maxTokens, opening, seed, streaming, temperature } = request
  const out: Array<Token> = []
  let told = 0
  let last = 0
  const options = { temperature, topK: 40, topP: 0.95, seed, yieldEogToken: true }
  for await (const token of sequence.evaluate([...prompt.slice(-1), ...opening], options)) {
    if (model.isEogToken(token)) break
    out.push(token)
    if (streaming && performance.now() - last >= 16) {
      const fresh = out.slice(told)
      parentPort!.postMessage({ fresh, text: model.detokenize(fresh, true) })
      told = out.length
      last = performance.now()
    }
    if (out.length === maxTokens) break
  }
  const text = model.detokenize(out, true)
  await sequence.eraseContextTokenRanges([{ start, end: sequence.nextTokenIndex }])
  parentPort!.postMessage({ tokens: out, text })
})
parentPort!.postMessage("ready")
