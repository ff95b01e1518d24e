import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { fileURLToPath } from "node:url"
import { assert, it } from "@effect/vitest"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { afterAll, beforeAll, describe } from "vitest"
import { layerWorker } from "../../../src/actors/Inference.ts"
import type { EngineError } from "../../../src/engine/EngineError.ts"
import { examples } from "../../kit/aiExamples.ts"
import { shippedModel } from "../../kit/codecs.ts"

const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-ai-"))
afterAll(() => Fs.rmSync(directory, { recursive: true, force: true }))

/** What the examples' services offer, as far as they are used here. */
interface Writer {
  readonly draftAnnouncement: (
    product: string
  ) => Effect.Effect<{ readonly provider: string; readonly text: string }, Error>
  readonly extractLaunchPlan: (notes: string) => Effect.Effect<Record<string, unknown>, Error>
  readonly streamReleaseHighlights: (version: string) => Stream.Stream<string, Error>
}
interface Products {
  readonly answer: (question: string) => Effect.Effect<{ readonly text: string; readonly toolCallCount: number }, Error>
}
interface Assistant {
  readonly chat: (message: string) => Effect.Effect<string, Error>
  readonly agent: (question: string) => Effect.Effect<string, Error>
}
type Service<A> = Context.Service<unknown, A> & { readonly layer: Layer.Layer<unknown, EngineError> }

let modules: Record<string, Record<string, unknown>> = {}
const service = <A>(file: string, name: string) => modules[file]![name] as Service<A>

describe("the library's own AI examples on the shipped model", () => {
  beforeAll(async () => {
    const engine = layerWorker({ modelPath: fileURLToPath(shippedModel), threads: 1, gpu: false, verify: true })
    // A small model may never end a text by itself, and the schemas of the examples bound none.
    modules = await examples(directory, engine, { maxTokens: 200, objectBounds: { characters: 40, items: 3 } })
  })

  it("are all there", () => {
    assert.deepStrictEqual(Object.keys(modules), ["10_language-model.ts", "20_tools.ts", "30_chat.ts"])
  })

  it.live(
    "write text, objects and streams",
    () => {
      const AiWriter = service<Writer>("10_language-model.ts", "AiWriter")
      return Effect.gen(function* () {
        const writer = yield* AiWriter
        const draft = yield* writer.draftAnnouncement("Effect Cloud")
        assert.strictEqual(draft.provider, "writ")
        assert.isAbove(draft.text.length, 0)
        const plan = yield* writer.extractLaunchPlan("For operators, by mail, on 3 May. The docs may be late.")
        assert.strictEqual(plan.constructor.name, "LaunchPlan")
        assert.include(["developers", "operators", "platform teams"], plan["audience"])
        assert.isArray(plan["channels"])
        assert.isString(plan["summary"])
        const deltas = yield* Stream.runCollect(writer.streamReleaseHighlights("4.1"))
        assert.isAbove(deltas.length, 1)
      }).pipe(Effect.provide(AiWriter.layer))
    },
    240_000
  )

  it.live(
    "call tools",
    () => {
      const ProductAssistant = service<Products>("20_tools.ts", "ProductAssistant")
      return Effect.gen(function* () {
        const assistant = yield* ProductAssistant
        assert.isAtLeast((yield* assistant.answer("Find wireless headphones")).toolCallCount, 1)
      }).pipe(Effect.provide(ProductAssistant.layer))
    },
    240_000
  )

  it.live(
    "chat, and loop over tools until there is an answer",
    () => {
      const AiAssistant = service<Assistant>("30_chat.ts", "AiAssistant")
      return Effect.gen(function* () {
        const assistant = yield* AiAssistant
        assert.isAbove((yield* assistant.chat("What is 17.5% of 240?")).length, 0)
        assert.isAbove((yield* assistant.chat("And of 100?")).length, 0)
        assert.isAbove((yield* assistant.agent("What can you do?")).length, 0)
      }).pipe(Effect.provide(AiAssistant.layer))
    },
    240_000
  )
})
