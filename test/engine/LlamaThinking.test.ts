import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { afterAll, describe } from "vitest"
import { makeWorker } from "../../src/actors/Inference.ts"
import { gptOss } from "../../src/engine/codecs/GptOss.ts"
import { TokenClock } from "../../src/engine/LlamaThinking.ts"
import { control, text } from "../../src/engine/Prompt.ts"
import { makeGguf } from "../kit/gguf.ts"

const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-think-"))
afterAll(() => Fs.rmSync(directory, { recursive: true, force: true }))
const modelPath = Path.join(directory, "random.gguf")
Fs.writeFileSync(modelPath, makeGguf({ muteEog: true }))
const harmonyPath = Path.join(directory, "harmony.gguf")
const harmony = ["<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|call|>", "<|return|>"]
Fs.writeFileSync(harmonyPath, makeGguf({ muteEog: true, wellFormed: true, controls: harmony, vocabulary: 320 }))

const tags = { open: "<think>", close: "</think>" }

describe("a budget of reasoning over tokens", () => {
  it("is spent by the text of the tokens, and what closes it comes back as tokens", () => {
    const clock = new TokenClock(
      { ...tags, opened: true, maxTokens: 3 },
      {
        tokenizer: {
          guard: { find: () => -1, ids: new Set() },
          encode: (value) => Array.from(value, (one) => one.charCodeAt(0))
        },
        detokenize: (tokens) => String.fromCharCode(...tokens)
      },
      []
    )
    const written = Array.from("abcd", (one) => clock.take(one.charCodeAt(0)))
    assert.deepStrictEqual(
      written.map((close) => close && String.fromCharCode(...close)),
      [undefined, undefined, "\n</think>\n\n", undefined]
    )
    assert.strictEqual(clock.closed, 3)
  })

  it.live(
    "is kept by the engine: the block is closed in the model's place and the turn goes on",
    () =>
      Effect.gen(function* () {
        const { model } = yield* makeWorker({
          modelPath,
          threads: 1,
          gpu: false,
          verify: true,
          contextTokens: 512,
          sequences: 1
        })
        const session = yield* model.session
        yield* session.commit([control("<|im_start|>user\n"), text("Go."), control("<|im_end|>\n")])
        const request = {
          maxTokens: 40,
          sampling: { temperature: 1, topK: 40, topP: 0.95, seed: 5 },
          stops: [],
          thinking: { ...tags, opened: true, maxTokens: 10 }
        }
        const events = yield* Stream.runCollect(session.turn([control("<|im_start|>assistant\n<think>\n")], request))
        const written = events.flatMap((event) => (event._tag === "Piece" ? [event.text] : [])).join("")
        const ids = events.flatMap((event) => (event._tag === "Piece" ? event.tokens : []))
        const end = events.at(-1)
        assert.isTrue(end?._tag === "End")
        if (end?._tag !== "End") return
        assert.strictEqual(end.thinkClosed, 10)
        const close = yield* model.tokenize([control("\n</think>\n\n")])
        assert.deepStrictEqual(ids.slice(10, 10 + close.length), close)
        assert.isAtLeast(ids.length, 40)
        assert.include(written, "\n</think>\n\n")
        yield* session.keep([control("<|im_end|>\n")])
        assert.isAbove(yield* session.length, 40)
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "ends the reasoning of gpt-oss with its own tokens and begins the answer, which the reader reads as a legal turn",
    () =>
      Effect.gen(function* () {
        const { model } = yield* makeWorker({ modelPath: harmonyPath, threads: 1, gpu: false, contextTokens: 512 })
        const session = yield* model.session
        yield* session.commit(gptOss.user("Go."))
        const bounds = gptOss.thinking!({ tools: [] })
        const request = {
          maxTokens: 40,
          sampling: { temperature: 1, topK: 40, topP: 0.95, seed: 5 },
          stops: [],
          thinking: { ...bounds, opened: true, maxTokens: 10 }
        }
        const header = "<|channel|>analysis<|message|>"
        const events = yield* Stream.runCollect(
          session.turn([...gptOss.opening({ tools: [] }), control(header)], request)
        )
        const written = events.flatMap((event) => (event._tag === "Piece" ? [event.text] : [])).join("")
        const ids = events.flatMap((event) => (event._tag === "Piece" ? event.tokens : []))
        const end = events.at(-1)
        assert.strictEqual(end?._tag === "End" ? end.thinkClosed : undefined, 10)
        const close = yield* model.tokenize([control("<|end|><|start|>assistant<|channel|>final<|message|>")])
        for (const mark of harmony.slice(0, 4)) assert.lengthOf(yield* model.tokenize([control(mark)]), 1)
        assert.deepStrictEqual(ids.slice(10, 10 + close.length), close)
        const parser = gptOss.parser({ tools: [] })
        parser.push(header + written)
        const { action } = parser.end("length")
        assert.strictEqual(action._tag, "FinalText")
        if (action._tag !== "FinalText") return
        const [thought, answer] = written.split("<|end|><|start|>assistant<|channel|>final<|message|>")
        assert.strictEqual(action.reasoning, thought!.trim())
        assert.strictEqual(action.text, answer)
        yield* session.keep(gptOss.closing)
      }).pipe(Effect.scoped),
    120_000
  )
})
