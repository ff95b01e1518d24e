/** The yardstick of `conversation.bench.ts`: the library's own chat session with a function, in a worker thread. */
import { parentPort, workerData } from "node:worker_threads"
import { defineChatSessionFunction, getLlama, LlamaChatSession } from "node-llama-cpp"

const { contextTokens, modelPath, system } = workerData as {
  readonly modelPath: string
  readonly contextTokens: number
  readonly system: string
}
const llama = await getLlama({ gpu: false, build: "never", skipDownload: true, progressLogs: false, maxThreads: 1 })
const model = await llama.loadModel({ modelPath })
const context = await model.createContext({ contextSize: contextTokens, sequences: 1, threads: 1, batchSize: 512 })
const sequence = context.getSequence()

export interface ChatRequest {
  readonly tasks: ReadonlyArray<string>
  readonly maxTokens: number
}

/** What a conversation came to. */
export interface ChatAnswer {
  readonly millis: number
  readonly generated: number
  readonly evaluated: number
  readonly calls: number
}

const talk = async ({ maxTokens, tasks }: ChatRequest): Promise<ChatAnswer> => {
  await sequence.clearHistory()
  const session = new LlamaChatSession({ contextSequence: sequence, systemPrompt: system, autoDisposeSequence: false })
  let calls = 0
  const calculate = defineChatSessionFunction({
    description: "Evaluates an arithmetic expression.",
    params: { type: "object", properties: { expression: { type: "string", maxLength: 24 } } },
    handler: () => {
      calls++
      return { value: 42 }
    }
  })
  const before = sequence.tokenMeter.getState()
  const start = performance.now()
  for (const task of tasks) await session.prompt(task, { functions: { calculate }, maxTokens, temperature: 0 })
  const millis = performance.now() - start
  session.dispose()
  const used = sequence.tokenMeter.diff(before)
  return { millis, generated: used.usedOutputTokens, evaluated: used.usedInputTokens, calls }
}

parentPort!.on("message", async (request: ChatRequest | "close") => {
  if (request === "close") {
    await context.dispose()
    await model.dispose()
    await llama.dispose()
    parentPort!.close()
    return
  }
  parentPort!.postMessage(await talk(request))
})
parentPort!.postMessage("ready")
