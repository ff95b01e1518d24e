import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { afterAll, describe } from "vitest"
import { makeWorker } from "../../src/actors/Inference.ts"
import { ThinkClock } from "../../src/engine/LlamaThinking.ts"
import { control, text } from "../../src/engine/Prompt.ts"
import { makeGguf } from "../kit/gguf.ts"

const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-think-"))
afterAll(() => Fs.rmSync(directory, { recursive: true, force: true }))
const modelPath = Path.join(directory, "random.gguf")
Fs.writeFileSync(modelPath, makeGguf({ muteEog: true }))

const tags = { open: "<think>", close: "</think>" }

/** One token a character. */
const clockOver = (opened: boolean, maxTokens: number) => {
  const clock = new ThinkClock(
    { ...tags, opened, maxTokens },
    {
      tokenizer: {
        guard: { find: () => -1, ids: new Set() },
        encode: (value) => Array.from(value, (one) => one.charCodeAt(0))
      },
      detokenize: (tokens) => String.fromCharCode(...tokens)
    },
    []
  )
  return { clock, take: (written: string) => Array.from(written, (one) => clock.take(one.charCodeAt(0))) }
}

describe("a budget of reasoning", () => {
  it("counts from where the block begins, and closes it once", () => {
    const { clock, take } = clockOver(false, 3)
    assert.deepStrictEqual(new Set(take(" <think")), new Set([undefined]))
    // The tag's last character is inside the block already.
    assert.deepStrictEqual(
      take(">ab").map((close) => close && String.fromCharCode(...close)),
      [undefined, undefined, "\n</think>\n\n"]
    )
    assert.strictEqual(clock.closed, 3)
    assert.deepStrictEqual(new Set(take("and on and on")), new Set([undefined]))
  })

  it("is not touched by a turn that closes its block or begins none", () => {
    for (const [opened, written] of [
      [true, "a</think>and a long answer <think> that mentions the tag"],
      [false, "an answer <think> that mentions the tag"],
      [false, "<think></think>answer"]
    ] as const) {
      const { clock, take } = clockOver(opened, 16)
      take(written)
      assert.isUndefined(clock.closed, written)
    }
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
})
