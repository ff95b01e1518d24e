/** The yardstick of `together.bench.ts`: node-llama-cpp alone in a worker thread, several sequences generating at once. */
import { parentPort, workerData } from "node:worker_threads"
import { getLlama, type Token } from "node-llama-cpp"

const { contextTokens, modelPath, prompt, sequences } = workerData as {
  readonly modelPath: string
  readonly contextTokens: number
  readonly sequences: number
  readonly prompt: ReadonlyArray<Token>
}
const llama = await getLlama({ gpu: false, build: "never", skipDownload: true, progressLogs: false, maxThreads: 1 })
const model = await llama.loadModel({ modelPath })
const context = await model.createContext({ contextSize: contextTokens, sequences, threads: 1, batchSize: 512 })
const all = Array.from({ length: sequences }, () => context.getSequence())
for (const sequence of all) await sequence.evaluateWithoutGeneratingNewTokens(prompt.slice(0, -1))

export interface BatchRequest {
  readonly opening: ReadonlyArray<Token>
  readonly maxTokens: number
}

const generate = async (sequence: (typeof all)[number], { maxTokens, opening }: BatchRequest) => {
  const out: Array<Token> = []
  for await (const token of sequence.evaluate([...prompt.slice(-1), ...opening], { yieldEogToken: true })) {
    if (model.isEogToken(token)) break
    out.push(token)
    if (out.length === maxTokens) break
  }
  const text = model.detokenize(out, true)
  await sequence.eraseContextTokenRanges([{ start: prompt.length - 1, end: sequence.nextTokenIndex }])
  return { tokens: out, text }
}

parentPort!.on("message", async (request: BatchRequest | "close") => {
  if (request === "close") {
    await context.dispose()
    await model.dispose()
    await llama.dispose()
    parentPort!.close()
    return
  }
  const said = await Promise.all(all.map((sequence) => generate(sequence, request)))
  parentPort!.postMessage({ said })
})
parentPort!.postMessage("ready")
