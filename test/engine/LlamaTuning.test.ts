import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { afterAll, describe } from "vitest"
import { makeControl } from "../../src/engine/LlamaControl.ts"
import { type LlamaOptions, load } from "../../src/engine/LlamaModel.ts"
import { control, text } from "../../src/engine/Prompt.ts"
import { makeGguf } from "../kit/gguf.ts"
import { makeAdapter } from "../kit/lora.ts"

const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-tuning-"))
afterAll(() => Fs.rmSync(directory, { recursive: true, force: true }))
const modelPath = Path.join(directory, "random.gguf")
Fs.writeFileSync(modelPath, makeGguf({ muteEog: true }))
/** Heads of 32, which a cache in fewer bits needs. */
const wide = Path.join(directory, "wide.gguf")
Fs.writeFileSync(wide, makeGguf({ dim: 128, muteEog: true }))
const adapter = Path.join(directory, "adapter.gguf")
Fs.writeFileSync(adapter, makeAdapter())
const tiny = Path.resolve(import.meta.dirname, "../../models/tiny-tool-agent/tiny-tool-agent-q8_0.gguf")

const request = { maxTokens: 24, sampling: { temperature: 0, topK: 1, topP: 1, seed: 0 }, stops: [] }

/** What a model writes after a prompt, before and after the same turn was rolled back, and what it is on record with. */
const written = (options: Partial<LlamaOptions>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const all = {
        modelPath,
        threads: 1,
        gpu: false,
        verify: true,
        contextTokens: 512,
        sequences: 1,
        ...options
      } as const
      const { identity, session } = yield* load(all, makeControl())
      const one = yield* session
      yield* one.commit([control("<|im_start|>"), text("user\nHello there, and how are you?"), control("<|im_end|>")])
      const turn = Stream.runFold(
        one.turn([control("<|im_start|>"), text("assistant\n")], request),
        () => "",
        (said, event) => (event._tag === "Piece" ? said + event.text : said)
      )
      const first = yield* turn
      yield* one.rollback
      const second = yield* turn
      assert.strictEqual(second, first)
      return { text: first, build: identity.build ?? {} }
    })
  )

describe("tuning", () => {
  it.live(
    "flash attention is as it was asked for, and on record",
    () =>
      Effect.gen(function* () {
        for (const modelPath of [tiny, Path.join(directory, "random.gguf")]) {
          const on = yield* written({ modelPath, flashAttention: true })
          const off = yield* written({ modelPath, flashAttention: false })
          assert.strictEqual(on.build["flashAttention"], true)
          assert.strictEqual(off.build["flashAttention"], false)
          assert.isAbove(on.text.length, 0)
        }
      }),
    240_000
  )

  it.live(
    "a cache in fewer bits holds turns and rollbacks as another does, is on record, and is refused without flash attention",
    () =>
      Effect.gen(function* () {
        const plain = yield* written({ modelPath: wide })
        assert.notProperty(plain.build, "cacheType")
        const texts = new Set<string>()
        for (const cacheType of ["q8_0", "q4_0"] as const) {
          const { build, text } = yield* written({ modelPath: wide, cacheType })
          assert.strictEqual(build["cacheType"], cacheType)
          texts.add(text)
        }
        // Four bits are few enough to be seen in what random weights write.
        assert.isTrue([...texts].some((one) => one !== plain.text))
        const error = yield* Effect.flip(written({ cacheType: "q8_0", flashAttention: false }))
        assert.strictEqual(error.reason, "bad_request")
        assert.match(error.message, /needs flash attention/)
        const narrow = yield* Effect.flip(written({ cacheType: "q8_0" }))
        assert.strictEqual(narrow.reason, "bad_request")
        assert.match(narrow.message, /random\.gguf cannot keep its context in q8_0/)
      }),
    240_000
  )

  it.live(
    "an adapter changes what the model writes, with the weight it was given, and is on record",
    () =>
      Effect.gen(function* () {
        const plain = yield* written({})
        const adapted = yield* written({ lora: [{ path: adapter }] })
        assert.notStrictEqual(adapted.text, plain.text)
        const hash = createHash("sha256").update(Fs.readFileSync(adapter)).digest("hex")
        assert.strictEqual(adapted.build["lora"], `adapter.gguf=1 sha256:${hash}`)
        assert.strictEqual((yield* written({ lora: [{ path: adapter, scale: 0 }] })).text, plain.text)
      }),
    240_000
  )

  it.live(
    "an adapter that is missing, damaged or made for another model is a typed failure that names it",
    () =>
      Effect.gen(function* () {
        const missing = Path.join(directory, "none.gguf")
        assert.strictEqual((yield* Effect.flip(written({ lora: [{ path: missing }] }))).reason, "missing_file")
        const cut = Path.join(directory, "cut.gguf")
        Fs.writeFileSync(cut, makeAdapter().subarray(0, 600))
        assert.match((yield* Effect.flip(written({ lora: [{ path: cut }] }))).message, /cut\.gguf cannot be used/)
        const other = Path.join(directory, "other.gguf")
        Fs.writeFileSync(other, makeAdapter(128))
        const error = yield* Effect.flip(written({ lora: [{ path: other }] }))
        assert.strictEqual(error.reason, "bad_file")
        assert.include(error.message, "other.gguf")
      }),
    240_000
  )

  it.live(
    "a GPU that was named and is not there is not replaced by the processor without a word",
    () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(written({ gpu: "metal" }))
        assert.strictEqual(error.reason, "unavailable")
      }),
    { timeout: 240_000, skip: process.platform === "darwin" }
  )
})
