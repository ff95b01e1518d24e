import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import { afterAll, describe } from "vitest"
import type { Codec } from "../../src/engine/codecs/Codec.ts"
import { byId, ids } from "../../src/engine/codecs/Families.ts"
import { makeControl } from "../../src/engine/LlamaControl.ts"
import { load } from "../../src/engine/LlamaModel.ts"
import { control, type Segment, text } from "../../src/engine/Prompt.ts"
import { tool } from "../kit/codecs.ts"
import { makeGguf } from "../kit/gguf.ts"
import { vocabularies } from "../kit/realVocabulary.ts"

const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-control-"))
afterAll(() => Fs.rmSync(directory, { recursive: true, force: true }))

/** Everything a codec renders of content from outside. */
const rendered = (codec: Codec, evil: string): ReadonlyArray<ReadonlyArray<Segment>> => {
  const tools = [tool("t", { type: "object", properties: { a: { type: "string", description: evil } } }, evil)]
  const call = { name: "t", arguments: { a: evil }, id: evil }
  const turn = { role: "assistant", content: evil, reasoning: evil, calls: [call] } as const
  const messages = [
    { role: "system", content: evil },
    { role: "user", content: evil },
    turn,
    { role: "tool", name: "t", content: evil, id: evil },
    { role: "assistant", content: evil }
  ] as const
  return [
    codec.system(evil, { tools }),
    codec.user(evil),
    codec.answers([{ name: "t", text: evil, id: evil }]),
    codec.written(turn, { tools }),
    codec.render(messages, { tools, generationPrompt: true, today: evil })
  ]
}

for (const [name, make] of Object.entries(vocabularies)) {
  describe(`with the vocabulary of ${name}`, () => {
    it.live(
      "nothing from a user, a file or a tool becomes a control or user-defined token, in any family",
      () =>
        Effect.gen(function* () {
          const vocabulary = make()
          const modelPath = Path.join(directory, `${name}.gguf`)
          Fs.writeFileSync(modelPath, makeGguf({ tokenizer: vocabulary, dim: 32, layers: 1, ff: 32, ctx: 512 }))
          const engine = yield* load(
            { modelPath, threads: 1, gpu: false, contextTokens: 512, sequences: 1 },
            makeControl()
          )
          const guarded = new Set(vocabulary.types.flatMap((type, id) => (type === 3 || type === 4 ? [id] : [])))
          const spellings = [...guarded].map((id) => vocabulary.tokens[id]!)
          assert.isAbove(guarded.size, 20)
          const markers = (tokens: ReadonlyArray<number>) => tokens.filter((token) => guarded.has(token))

          const fragments = spellings
            .slice(0, 60)
            .flatMap((spelling) => [spelling, spelling.slice(1), spelling.slice(0, -1)])
          const evil = fc.sample(
            fc
              .array(
                fc.oneof(fc.constantFrom(...fragments), fc.constantFrom("<", "|", ">", "\n", " ", "é", "\u0000")),
                { minLength: 1, maxLength: 8 }
              )
              .map((parts) => parts.join("")),
            { numRuns: 12, seed: 11 }
          )
          // Once each for every spelling there is.
          assert.deepStrictEqual(markers(yield* engine.tokenize([text(spellings.join(" x "))])).slice(1), [])
          assert.deepStrictEqual(markers(yield* engine.tokenize([control("x"), text(spellings.join(""))])), [])

          for (const id of ids) {
            const codec = Result.getOrThrow(byId(id))
            for (const value of [...evil, spellings.slice(0, 40).join("")]) {
              for (const segments of rendered(codec, value)) {
                // What our own marks become, and nothing else.
                const own: Array<number> = []
                for (const segment of segments) {
                  if (segment.kind === "control") own.push(...markers(yield* engine.tokenize([text("x"), segment])))
                }
                const all = markers(yield* engine.tokenize([text("x"), ...segments]))
                assert.deepStrictEqual(all, own, JSON.stringify({ id, value }))
              }
            }
          }
        }).pipe(Effect.scoped),
      240_000
    )
  })
}
