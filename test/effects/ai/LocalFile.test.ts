import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { fileURLToPath } from "node:url"
import { assert, it } from "@effect/vitest"
import * as Chat from "effect/ai/Chat"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { afterAll, describe } from "vitest"
import { LlamaLanguageModel } from "../../../src/effects/ai/index.ts"
import { shippedModel } from "../../kit/codecs.ts"
import { makeGguf } from "../../kit/gguf.ts"

const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-ai-file-"))
afterAll(() => Fs.rmSync(directory, { recursive: true, force: true }))
const random = Path.join(directory, "random.gguf")
Fs.writeFileSync(random, makeGguf({ wellFormed: true, words: ['{"', '": ', '", "', '"}', "}}\n"], vocabulary: 300 }))
const shipped = fileURLToPath(shippedModel)

const file = (modelPath: string) =>
  ({ modelPath, threads: 1, gpu: false, verify: true, contextTokens: 2048, sequences: 1 }) as const

/** Every call of it fits its schema: the handler fails where one does not. */
const Book = Tool.make("book", {
  description: "Books a table",
  parameters: Schema.Struct({
    day: Schema.Literals(["mon", "tue", "wed"]),
    seats: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 12 })),
    notes: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(12)))
  }),
  success: Schema.String
})
const Cancel = Tool.make("cancel", {
  description: "Cancels",
  parameters: Schema.Struct({ code: Schema.String.check(Schema.isMaxLength(6)) }),
  success: Schema.String
})
const toolkit = Toolkit.make(Book, Cancel)
const handlers = toolkit.toLayer({
  book: ({ day, seats }) => Effect.succeed(`${day} ${seats}`),
  cancel: ({ code }) => Effect.succeed(code)
})

class Order extends Schema.Class<Order>("Order")({
  size: Schema.Literals(["small", "large"]),
  count: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 99 })),
  lines: Schema.Array(Schema.Struct({ item: Schema.String, gift: Schema.Boolean })),
  day: Schema.NullOr(Schema.Literals(["mon", "tue"]))
}) {}

describe("LlamaLanguageModel on random weights, at a high temperature", () => {
  const model = LlamaLanguageModel.layerFile(file(random), {
    codec: "qwen2.5",
    temperature: 1.2,
    maxTokens: 400,
    objectBounds: { characters: 8, items: 2 }
  })

  it.live(
    "a required call is a call of the toolkit that validates, whatever the weights are",
    () =>
      Effect.gen(function* () {
        let ran = 0
        for (let seed = 1; seed <= 12; seed++) {
          const response = yield* LanguageModel.generateText({
            prompt: "Book",
            toolkit,
            toolChoice: seed % 2 === 0 ? "required" : { tool: "book" }
          }).pipe(
            LlamaLanguageModel.withSettings({ seed }),
            // Behind the call the turn is free, and random weights write anything there.
            Effect.catchReason("AiError", "InvalidOutputError", () => Effect.succeed(undefined))
          )
          if (response === undefined || response.finishReason === "length") continue
          assert.isAbove(response.toolCalls.length, 0)
          if (seed % 2 === 1) assert.strictEqual(response.toolCalls[0]!.name, "book")
          ran += response.toolResults.length
        }
        assert.isAbove(ran, 3)
      }).pipe(Effect.provide([model, handlers])),
    240_000
  )

  it.live(
    "an object is one of its schema, whatever the weights are",
    () =>
      Effect.gen(function* () {
        for (let seed = 1; seed <= 12; seed++) {
          const { finishReason, value } = yield* LanguageModel.generateObject({ prompt: "Order", schema: Order }).pipe(
            LlamaLanguageModel.withSettings({ seed })
          )
          assert.instanceOf(value, Order)
          assert.isAtMost(value.lines.length, 2)
          assert.strictEqual(finishReason, "stop")
        }
      }).pipe(Effect.provide(model)),
    240_000
  )
})

describe("LlamaLanguageModel on the shipped model", () => {
  const model = LlamaLanguageModel.layerFile(file(shipped))

  const Calculate = Tool.make("calculate", {
    description: "Evaluate an arithmetic expression",
    parameters: Schema.Struct({ expression: Schema.String }),
    success: Schema.Struct({ result: Schema.Finite })
  })
  const calculator = Toolkit.make(Calculate)
  const handler = calculator.toLayer({ calculate: () => Effect.succeed({ result: 42 }) })

  it.live(
    "a chat with a tool comes to an answer, and each turn evaluates only what is new",
    () =>
      Effect.gen(function* () {
        const chat = yield* Chat.fromPrompt("What is 17.5% of 240?")
        const first = yield* chat.generateText({ prompt: [], toolkit: calculator })
        assert.deepStrictEqual(
          first.toolCalls.map(({ name, params }) => [name, params]),
          [["calculate", { expression: "17.5 / 100 * 240" }]]
        )
        const second = yield* chat.generateText({ prompt: [], toolkit: calculator })
        assert.strictEqual(second.text, "17.5% of 240 is 42.")
        const { inputTokens } = second.usage
        // The opening, call and closing of the first turn are in the session.
        assert.isAtLeast(inputTokens.cacheRead!, first.usage.inputTokens.total! + first.usage.outputTokens.total!)
        assert.isBelow(inputTokens.uncached!, 60)
        const streamed = yield* Stream.runCollect(
          chat.streamText({ prompt: "What is 17.5% of 240?", toolkit: calculator })
        )
        assert.include(
          streamed.map(({ type }) => type),
          "tool-result"
        )
      }).pipe(Effect.provide([model, handler])),
    240_000
  )

  it.live(
    "a stream that is left puts its session back to the boundary before the turn",
    () =>
      Effect.gen(function* () {
        const ask = LanguageModel.generateText({ prompt: "What is 17.5% of 240?", toolkit: calculator })
        const whole = yield* ask
        yield* Stream.runDrain(
          LanguageModel.streamText({ prompt: "What can you do?", toolkit: calculator }).pipe(
            Stream.filter(({ type }) => type === "text-delta"),
            Stream.take(1)
          )
        )
        const again = yield* LanguageModel.generateText({ prompt: "What can you do?", toolkit: calculator })
        assert.isAbove(again.text.length, 10)
        // The prompt was there already; only the opening of the turn is new.
        assert.isBelow(again.usage.inputTokens.uncached!, 8)
        assert.isAbove(again.usage.inputTokens.cacheRead!, 100)
        const once = yield* ask
        assert.deepStrictEqual(
          once.toolCalls.map(({ params }) => params),
          whole.toolCalls.map(({ params }) => params)
        )
      }).pipe(Effect.provide([model, handler])),
    240_000
  )

  it.live("a file that is no model is refused by name when the layer is built", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        LanguageModel.generateText({ prompt: "q" }).pipe(
          Effect.provide(LlamaLanguageModel.layerFile({ modelPath: Path.join(directory, "none.gguf") }))
        )
      )
      assert.strictEqual(error._tag, "EngineError")
    })
  )
})
