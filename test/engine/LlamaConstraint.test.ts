import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { Token } from "node-llama-cpp"
import { afterAll, describe } from "vitest"
import { makeWorker } from "../../src/actors/Inference.ts"
import type { Action, Codec } from "../../src/engine/codecs/Codec.ts"
import { byId } from "../../src/engine/codecs/Families.ts"
import type { EngineError } from "../../src/engine/EngineError.ts"
import type { CallGrammar } from "../../src/engine/Grammar.ts"
import { CallWatch } from "../../src/engine/grammar/CallWatch.ts"
import { Constraints } from "../../src/engine/LlamaConstraint.ts"
import { makeControl } from "../../src/engine/LlamaControl.ts"
import { importLibrary } from "../../src/engine/LlamaLibrary.ts"
import { type LlamaEngine, load } from "../../src/engine/LlamaModel.ts"
import type { LlamaSession } from "../../src/engine/LlamaSession.ts"
import { markers } from "../../src/engine/LlamaTokenizer.ts"
import { control, text } from "../../src/engine/Prompt.ts"
import * as JsonSchema from "../../src/tools/JsonSchema.ts"
import { makeGguf } from "../kit/gguf.ts"
import { schemas } from "../kit/schemas.ts"

const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-grammar-"))
afterAll(() => Fs.rmSync(directory, { recursive: true, force: true }))

const words = [
  '{"',
  '": ',
  '", "',
  '"}',
  '"}}\n',
  "}}\n</",
  "}\n<",
  "\n</parameter>",
  "é",
  "日本",
  "ing ",
  "name",
  "null",
  "</s"
]
const modelPath = Path.join(directory, "random.gguf")
Fs.writeFileSync(modelPath, makeGguf({ words, wellFormed: true, vocabulary: 320 }))

const open = load({ modelPath, threads: 1, gpu: false, verify: false, contextTokens: 2048 }, makeControl())
const codecOf = (id: string): Codec => Result.getOrThrow(byId(id))

/** How many constrained calls are tried; the whole thousand takes minutes on a busy machine. */
const calls = Number(process.env["WRIT_CONSTRAINED_CALLS"] ?? 150)

/** One turn up to the end of its call, or to its limit. */
const speak = Effect.fnUntraced(function* (
  session: LlamaSession,
  seed: number,
  grammar: CallGrammar,
  maxTokens: number
) {
  let written = "<tool_call>"
  const watch = new CallWatch(grammar, written)
  const request = { maxTokens, sampling: { temperature: 1.2, topK: 40, topP: 0.95, seed }, stops: [], grammar }
  const opening = [control("<|im_start|>assistant\n<tool_call>")]
  const ended: boolean[] = []
  yield* Stream.runForEachWhile(session.turn(opening, request), (event) =>
    Effect.sync(() => {
      if (event._tag !== "Piece") return true
      for (const unit of event.text) {
        if (ended.length > 0) break
        written += unit
        if (watch.take(unit)._tag === "released") ended.push(true)
      }
      return ended.length === 0
    })
  )
  yield* session.rollback
  return { written, whole: ended.length > 0 }
})

const parse = (codec: Codec, tools: Parameters<Codec["parser"]>[0]["tools"], written: string): Action => {
  const parser = codec.parser({ tools })
  parser.push(written)
  return parser.end("eog").action
}

describe("constrained calls of a model with random weights", () => {
  it.live(
    "all parse and validate, whatever the schema",
    () =>
      Effect.gen(function* () {
        const engine: LlamaEngine = yield* open
        const session = yield* engine.session
        yield* session.commit([control("<|im_start|>user\n"), text("Go."), control("<|im_end|>\n")])
        let [complete, cut] = [0, 0]
        const names = Object.keys(schemas)
        for (let seed = 1; complete < calls; seed++) {
          const name = names[seed % names.length]!
          const codec = codecOf(seed % 4 === 3 ? "qwen3-coder" : "qwen2.5")
          const tools = [{ name, description: "", parameters: schemas[name]! }]
          const { grammar, notCarried } = codec.grammar!(tools)!
          if (notCarried.length > 0) continue
          const { whole, written } = yield* speak(session, seed, grammar, 220)
          if (!whole) {
            cut += 1
            continue
          }
          complete += 1
          const action = parse(codec, tools, written)
          assert.strictEqual(action._tag, "ToolCalls", JSON.stringify({ codec: codec.id, name, written, action }))
          if (action._tag !== "ToolCalls") continue
          const checker = yield* JsonSchema.compile(schemas[name]!)
          const checked = checker.check(action.calls[0]!.arguments)
          if (Result.isFailure(checked))
            assert.fail(JSON.stringify({ codec: codec.id, name, written, problems: checked.failure }))
        }
        yield* Effect.logInfo(`${complete} constrained calls, ${cut} cut by the token limit`)
      }).pipe(Effect.scoped),
    900_000
  )
})

/** Takes tokens as a model would have chosen them, without one. */
const constraintOf = (before: string, grammar: Partial<CallGrammar>) =>
  Effect.gen(function* () {
    const library = yield* importLibrary
    const llama = yield* Effect.promise(() =>
      library.getLlama({ gpu: false, build: "never", maxThreads: 1, progressLogs: false })
    )
    const model = yield* Effect.promise(() => llama.loadModel({ modelPath, vocabOnly: true }))
    yield* Effect.addFinalizer(() => Effect.promise(() => model.dispose()))
    const vocabulary = model.fileInfo.metadata.tokenizer.ggml
    const constraints = new Constraints({
      library,
      model,
      detokenize: (tokens) => model.detokenize(tokens as Array<Token>, true),
      tokenizer: {
        guard: markers(vocabulary.tokens as ReadonlyArray<string>, vocabulary.token_type as ReadonlyArray<number>),
        encode: (value, special) => model.tokenize(value, special)
      }
    })
    const made = constraints.make(
      {
        openers: [{ text: "[CALL]", root: "root" }],
        rules: 'root ::= "{}"\n',
        marks: {},
        closer: "",
        bracket: "{",
        ...grammar
      },
      model.tokenize(before)
    )
    return { made, model, idOf: (word: string) => 265 + 3 + words.indexOf(word) }
  })

describe("a constraint", () => {
  it.live("writes a token again that ran past the beginning of a call", () =>
    Effect.gen(function* () {
      const { idOf, made, model } = yield* constraintOf("", {
        openers: [
          { text: '{"', root: "root" },
          { text: "}\n", root: "root" }
        ]
      })
      // `}}\n</` begins a call behind its first line end.
      const kept = made.take(idOf("}}\n</"))
      assert.strictEqual(model.detokenize((kept ?? []) as Array<Token>), "}}\n")
      assert.isFalse(made.armed)
      yield* Effect.promise(() => made.ready())
      assert.isTrue(made.armed)
      assert.isDefined(made.state())
    }).pipe(Effect.scoped)
  )

  it.live("is armed where the text of an opener is complete, and no longer than the call", () =>
    Effect.gen(function* () {
      const { made, model } = yield* constraintOf("", {})
      const states: Array<boolean> = []
      for (const token of model.tokenize("a [CALL]{} b")) {
        assert.isUndefined(made.take(token))
        if (made.waits) yield* Effect.promise(() => made.ready())
        states.push(made.armed)
      }
      assert.deepStrictEqual(states.indexOf(true), 7)
      assert.deepStrictEqual(states.lastIndexOf(true), 8)
    }).pipe(Effect.scoped)
  )

  it.live("fails typed for a grammar that cannot be read", () =>
    Effect.gen(function* () {
      const { made } = yield* constraintOf("[CALL]", { rules: "root ::= (" })
      const failure = yield* Effect.flip(
        Effect.tryPromise({ try: () => made.ready(), catch: (cause) => cause as EngineError })
      )
      assert.strictEqual(failure.reason, "failed")
      assert.include(failure.message, "grammar")
    }).pipe(Effect.scoped)
  )
})

describe("a sampler that fails inside a call", () => {
  it.live(
    "fails the turn by name, and the session goes on where it was",
    () =>
      Effect.gen(function* () {
        const { model, snapshot } = yield* makeWorker({
          modelPath,
          threads: 1,
          gpu: false,
          verify: true,
          contextTokens: 512,
          sequences: 1
        })
        const session = yield* model.session
        yield* session.commit([control("<|im_start|>user\n"), text("Go."), control("<|im_end|>\n")])
        const before = yield* snapshot(session)
        const opening = [control("<|im_start|>assistant\n<tool_call>")]
        const request = { maxTokens: 8, sampling: { temperature: 1, topK: 40, topP: 0.95, seed: 3 }, stops: [] }
        // No token of this vocabulary begins the character, so there is nothing to choose from.
        const broken: CallGrammar = {
          openers: [{ text: "<tool_call>", root: "root" }],
          rules: 'root ::= "x" "\\U0010ffff"\n',
          marks: {},
          closer: ""
        }
        const error = yield* Effect.flip(Stream.runDrain(session.turn(opening, { ...request, grammar: broken })))
        assert.strictEqual(error._tag, "EngineError")
        assert.include(error.message, "could not choose a token inside a call")
        assert.deepStrictEqual(yield* snapshot(session), before)
        const free = yield* Stream.runCollect(session.turn(opening, request))
        assert.strictEqual(free.at(-1)?._tag, "End")
        yield* session.keep([control("<|im_end|>\n")])
      }).pipe(Effect.scoped),
    120_000
  )
})
