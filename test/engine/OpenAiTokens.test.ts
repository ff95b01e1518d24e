/** Token ids from servers whose tokenisers have habits: something that begins every prompt, a space in front of texts. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { parseAddress } from "../../src/engine/OpenAiAddress.ts"
import type { Exchange } from "../../src/engine/OpenAiHttp.ts"
import { estimated, make } from "../../src/engine/OpenAiTokens.ts"
import { control, text } from "../../src/engine/Prompt.ts"

interface Question {
  readonly content: string
  readonly add_special: boolean
  readonly parse_special: boolean
}

/** A server that is only asked for tokens. */
const asking = (answer: (question: Question) => ReadonlyArray<number>) => {
  const asked: Array<Question> = []
  const exchange: Exchange = {
    address: Result.getOrThrow(parseAddress("http://127.0.0.1:1")),
    where: "S",
    ask: (_url, body) =>
      Effect.sync(() => {
        asked.push(body as Question)
        return { tokens: answer(body as Question) }
      }),
    attempt: () => Stream.empty,
    persistent: (attempt) => attempt()
  }
  return { asked, exchange }
}

const units = (content: string): ReadonlyArray<number> => [...content].map((one) => one.codePointAt(0)!)
const [bos, space] = [1, 9601]

describe("token ids", () => {
  it.effect("begin with what begins every prompt, once", () =>
    Effect.gen(function* () {
      const { exchange } = asking(({ add_special, content }) => [
        ...(add_special ? [bos] : []),
        ...(content.startsWith("<s>") ? [bos, ...units(content.slice(3))] : units(content))
      ])
      const { encode } = yield* make(exchange, "llama.cpp", "m")
      assert.deepStrictEqual(yield* encode([text("ab")], true), [bos, ...units("ab")])
      assert.deepStrictEqual(yield* encode([text("ab")], false), units("ab"))
      assert.deepStrictEqual(yield* encode([control("<s>"), text("a")], true), [bos, ...units("a")])
      assert.deepStrictEqual(yield* encode([], true), [])
    })
  )

  it.effect("of content have no space in front that nobody wrote", () =>
    Effect.gen(function* () {
      const { exchange } = asking(({ content }) => {
        const line = content.startsWith("\n")
        return [space, ...(line ? [10, ...units(content.slice(1))] : units(content))].flatMap((id, at, all) =>
          // A vocabulary of this kind has a word with its space as one token.
          id === space && !line ? [] : at === 1 && all[0] === space && !line ? [id + 1000] : [id]
        )
      })
      const { encode } = yield* make(exchange, "llama.cpp", "m")
      assert.deepStrictEqual(yield* encode([text("ab")], false), units("ab"))
    })
  )

  it.effect("are asked for content in parts that spell no token, and for ours as a whole, once each", () =>
    Effect.gen(function* () {
      const { asked, exchange } = asking(({ content }) => units(content))
      const { encode } = yield* make(exchange, "llama.cpp", "m")
      const before = asked.length
      const segments = [control("<|im_start|>"), control("user\n"), text("x<|im_end|>y")]
      const ids = yield* encode(segments, false)
      assert.deepStrictEqual(ids, units("<|im_start|>user\nx<|im_end|>y"))
      assert.deepStrictEqual(
        asked.slice(before).map(({ content, parse_special }) => [content, parse_special]),
        [
          ["<|im_start|>user\n", true],
          ["x<", false],
          ["|im_end|>y", false]
        ]
      )
      yield* encode(segments, false)
      assert.strictEqual(asked.length, before + 3)
    })
  )

  it.effect("that are none are the server's mistake", () =>
    Effect.gen(function* () {
      const { exchange } = asking(() => ["a"] as unknown as ReadonlyArray<number>)
      assert.strictEqual((yield* Effect.flip(make(exchange, "llama.cpp", "m"))).reason, "failed")
    })
  )

  it.effect("are estimated where nobody counts, the same for ours and theirs", () =>
    Effect.gen(function* () {
      assert.lengthOf(yield* estimated.encode([text("abcde"), control("a")], true), 3)
      assert.deepStrictEqual(
        yield* estimated.encode([control("<a>")], true),
        yield* estimated.encode([text("<a>")], true)
      )
    })
  )
})
