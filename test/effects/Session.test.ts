import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { afterAll, describe } from "vitest"
import { makeWorker } from "../../src/actors/Inference.ts"
import * as Session from "../../src/effects/Session.ts"
import type { Codec } from "../../src/engine/codecs/Codec.ts"
import { byId, ids } from "../../src/engine/codecs/Families.ts"
import { marksOf } from "../../src/engine/codecs/Neutral.ts"
import { Model } from "../../src/engine/Model.ts"
import { flatten, type Segment, text } from "../../src/engine/Prompt.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { parsePieces, tool } from "../kit/codecs.ts"
import { makeGguf } from "../kit/gguf.ts"
import { vocabularies } from "../kit/realVocabulary.ts"

const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-marks-"))
afterAll(() => Fs.rmSync(directory, { recursive: true, force: true }))

const codecOf = (id: string): Codec => Result.getOrThrow(byId(id))
const everyMark = [...new Set(ids.flatMap((id) => marksOf(codecOf(id))))]

/** The mark as it is shown to the model where it is plain text. */
const shown = (mark: string): string => `${mark[0]} ${mark.slice(1)}`
const neutral = (content: string, plain: ReadonlyArray<string>): string =>
  plain.reduce((out, mark) => out.replaceAll(mark, shown(mark)), content)

/** A user's message, a file that was read and a tool's result, as they enter a live session; and the whole by `render`. */
const prompts = (codec: Codec, content: string): ReadonlyArray<ReadonlyArray<Segment>> => {
  const call = { name: "read_file", arguments: { path: "a" }, id: "abcdefghi" }
  return [
    codec.user(content),
    codec.answers([
      { name: "read_file", text: content, id: "abcdefghi" },
      { name: "t", text: JSON.stringify({ ok: true, result: content }), id: "abcdefghj" }
    ]),
    codec.render(
      [
        { role: "user", content },
        { role: "assistant", content: "", calls: [call] },
        { role: "tool", name: "read_file", content, id: "abcdefghi" }
      ],
      { tools: [tool("read_file"), tool("t")], generationPrompt: true }
    )
  ]
}

const count = (all: string, part: string): number => all.split(part).length - 1
const textsOf = (segments: ReadonlyArray<Segment>) =>
  segments.filter((one) => one.kind === "text").map((one) => one.text)

for (const [name, make] of Object.entries(vocabularies)) {
  describe(`a session with the vocabulary of ${name}`, () => {
    it.live(
      "keeps every spelling of a mark in content from being one, in any family: as a token, and as plain text",
      () =>
        Effect.gen(function* () {
          const vocabulary = make()
          const modelPath = Path.join(directory, `${name}.gguf`)
          Fs.writeFileSync(modelPath, makeGguf({ tokenizer: vocabulary, dim: 32, layers: 1, ff: 32, ctx: 512 }))
          const { model } = yield* makeWorker({ modelPath, threads: 1, gpu: false, contextTokens: 512, sequences: 1 })
          const known = new Set(everyMark)
          // Marks of other families that happen to be tokens of this vocabulary count as well, whatever their type.
          const guarded = new Set(
            vocabulary.tokens.flatMap((spelling, id) =>
              vocabulary.types[id] === 3 || vocabulary.types[id] === 4 || known.has(spelling) ? [id] : []
            )
          )
          const spelled = [...guarded].map((id) => vocabulary.tokens[id]!)
          const isToken = new Set(spelled)
          const tokensOf = (segments: ReadonlyArray<Segment>) =>
            Effect.map(model.tokenize([text("x"), ...segments]), (all) => all.filter((one) => guarded.has(one)))
          const scaffolding = new Map<string, ReadonlyArray<number>>()
          const tokensOfMarks = Effect.fnUntraced(function* (segment: Segment) {
            const before = scaffolding.get(segment.text) ?? (yield* tokensOf([segment]))
            scaffolding.set(segment.text, before)
            return before
          })
          const registry = yield* Registry.make([])
          // Every marker of the vocabulary and every mark of every family, apart, together and half.
          const evil = [
            [...spelled, ...everyMark].join(" x "),
            [...spelled.slice(0, 30), ...everyMark].join(""),
            everyMark.map((mark) => mark.slice(0, 3) + mark + mark.slice(3)).join("")
          ]
          let neutralised = 0
          for (const id of ids) {
            const codec = codecOf(id)
            const session = yield* Session.open({ tools: registry, codec: id }).pipe(
              Effect.map((open) => open.codec),
              Effect.scoped,
              Effect.provideService(Model, model)
            )
            const plain = marksOf(codec).filter((mark) => !isToken.has(mark))
            for (const content of evil) {
              const benign = prompts(session, "x")
              for (const [at, segments] of prompts(session, content).entries()) {
                const own = yield* Effect.forEach(
                  segments.filter((one) => one.kind === "control"),
                  tokensOfMarks
                )
                assert.deepStrictEqual(yield* tokensOf(segments), own.flat(), id)
                const whole = flatten(segments)
                for (const mark of plain) {
                  const what = `${id} ${mark}`
                  for (const part of textsOf(segments)) assert.notInclude(part, mark, what)
                  assert.strictEqual(count(whole, mark), count(flatten(benign[at]!), mark), what)
                  if (content === evil[0]) assert.include(whole, shown(mark), what)
                  neutralised += 1
                }
              }
              // The codec renders what it would render of content that has the visible form already.
              assert.strictEqual(flatten(session.user(content)), flatten(codec.user(neutral(content, plain))), id)
            }
            for (const mark of plain) {
              // Read back, the visible form is prose.
              const { action } = parsePieces(session, [`see ${shown(mark)} there`], { tools: [tool("t")] })
              assert.strictEqual(action._tag, "FinalText", `${id} ${mark}`)
            }
          }
          assert.isAbove(neutralised, 500)
        }).pipe(Effect.scoped),
      300_000
    )
  })
}
