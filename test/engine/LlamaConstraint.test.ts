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
import type { Codec } from "../../src/engine/codecs/Codec.ts"
import { byId, ids } from "../../src/engine/codecs/Families.ts"
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
import { parsePieces } from "../kit/codecs.ts"
import { makeGguf, userTokens } from "../kit/gguf.ts"
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

const codecOf = (id: string): Codec => Result.getOrThrow(byId(id))
const all = ids.map((id) => {
  const codec = codecOf(id)
  const cases = Object.entries(schemas).flatMap(([name, parameters]) => {
    const tools = [{ name, description: "", parameters }]
    const made = codec.grammar!(tools)!
    return made.notCarried.length > 0 ? [] : [{ name, parameters, tools, grammar: made.grammar }]
  })
  return { codec, cases }
})
type Case = (typeof all)[number]["cases"][number]

/** Codecs whose calls are written by the same grammars: what is written once is read by each of them. */
const compiled = [...Map.groupBy(all, ({ cases }) => JSON.stringify(cases)).values()].map((group) => ({
  codecs: group.map(({ codec }) => codec),
  name: group.map(({ codec }) => codec.id).join(", "),
  cases: group[0]!.cases
}))

/** Bytes that the beginning of a call may have to be seen at the end of a prompt. */
const longest = 16
const shortOpeners = (grammar: CallGrammar) =>
  grammar.openers.filter(({ text }) => userTokens.includes(text) || text.length <= longest)

/** Every mark and every beginning of a call as one token, as the families' own vocabularies have their marks. */
const marksPath = Path.join(directory, "marks.gguf")
const grammars = compiled.flatMap(({ cases }) => cases.map(({ grammar }) => grammar))
const controls = [...new Set(grammars.flatMap(({ marks }) => Object.values(marks)))].filter(
  (mark) => !userTokens.includes(mark)
)
const openers = new Set(grammars.flatMap((grammar) => grammar.openers.map(({ text }) => text)))
const users = [...openers].filter((text) => text.length > 4 && ![...userTokens, ...controls].includes(text))
Fs.writeFileSync(marksPath, makeGguf({ words, wellFormed: true, controls: [...controls, "<|return|>"], users }))

const open = (path: string) =>
  load({ modelPath: path, threads: 1, gpu: false, verify: false, contextTokens: 1024 }, makeControl())

/** How many constrained calls are tried of each family, and of which; a thousand of each take minutes. */
const wanted = new RegExp(process.env["WRIT_CONSTRAINED_FAMILIES"] ?? "")
const calls = Number(process.env["WRIT_CONSTRAINED_CALLS"] ?? 20)

/** One turn up to the end of its call, or to its limit. */
const speak = Effect.fnUntraced(function* (session: LlamaSession, seed: number, held: CallGrammar) {
  // The prompt ends with the opener, wherever it may stand otherwise.
  const { atLine: _line, atStart: _start, ...opener } = held.openers[seed % held.openers.length]!
  const grammar = { ...held, openers: [opener] }
  let written = opener.text
  const watch = new CallWatch(grammar, written)
  const request = { maxTokens: 220, sampling: { temperature: 1.2, topK: 40, topP: 0.95, seed }, stops: [], grammar }
  let ended = false
  yield* Stream.runForEachWhile(session.turn([control(`<|im_start|>${opener.text}`)], request), (event) =>
    Effect.sync(() => {
      // An end token inside a call is the grammar's: the call is complete.
      if (event._tag === "End" && event.reason === "eog") ended = true
      if (event._tag !== "Piece") return true
      for (const unit of event.text) {
        if (ended) break
        written += unit
        ended = watch.take(unit)._tag === "released"
      }
      return !ended
    })
  )
  yield* session.rollback
  return ended ? written : undefined
})

/** Calls of one family until enough are complete; how many were cut by their limit. */
const speakOften = Effect.fnUntraced(function* (
  session: LlamaSession,
  codecs: ReadonlyArray<Codec>,
  cases: ReadonlyArray<Case>
) {
  let [complete, cut] = [0, 0]
  for (let seed = 1; complete < calls; seed++) {
    const { grammar, name, parameters, tools } = cases[seed % cases.length]!
    const written = yield* speak(session, seed, grammar)
    if (written === undefined) {
      cut += 1
      assert.isBelow(cut, 20 * calls + 50, `${codecs[0]!.id} does not end its calls`)
      continue
    }
    complete += 1
    const checker = yield* JsonSchema.compile(parameters)
    for (const codec of codecs) {
      const { action } = parsePieces(codec, [written], { tools })
      assert.strictEqual(action._tag, "ToolCalls", JSON.stringify({ codec: codec.id, name, written, action }))
      if (action._tag !== "ToolCalls") continue
      const checked = checker.check(action.calls[0]!.arguments)
      if (Result.isFailure(checked))
        assert.fail(JSON.stringify({ codec: codec.id, name, written, problems: checked.failure }))
    }
  }
  return cut
})

/** The same with beginnings of calls that can be seen in pieces. */
const short = (one: (typeof compiled)[number]): ReadonlyArray<typeof one> => {
  const cases = one.cases.map((it) => ({ ...it, grammar: { ...it.grammar, openers: shortOpeners(it.grammar) } }))
  return cases.some(({ grammar }) => grammar.openers.length === 0) ? [] : [{ ...one, cases }]
}

describe("constrained calls of a model with random weights", () => {
  for (const [what, path, families] of [
    ["whose vocabulary has every mark", marksPath, compiled],
    ["whose vocabulary has the marks of Qwen only", modelPath, compiled.flatMap(short)]
  ] as const) {
    it.live(
      `and ${what} all parse and validate, whatever the family and the schema`,
      () =>
        Effect.gen(function* () {
          const engine: LlamaEngine = yield* open(path)
          const session = yield* engine.session
          yield* session.commit([control("<|im_start|>user\n"), text("Go."), control("<|im_end|>\n")])
          for (const { cases, codecs, name } of families.filter((one) => wanted.test(one.name))) {
            const cut = yield* speakOften(session, codecs, cases)
            yield* Effect.logInfo(`${name}: ${calls} constrained calls, ${cut} cut by the token limit`)
          }
        }).pipe(Effect.scoped),
      7_200_000
    )
  }
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

describe("a call over the thread boundary", () => {
  // A closing mark inside a string is not the end of the call.
  const held = { a: { type: "string", maxLength: 12 }, b: { enum: ["x<tool_call|>y"] } }
  const tools = [{ name: "t", description: "", parameters: { type: "object", properties: held, required: ["a", "b"] } }]

  for (const id of ["gpt-oss", "gemma4"]) {
    it.live(
      `is held to its end for ${id}${id === "gpt-oss" ? ", where the closing mark ends the turn" : ", whose strings have marks of their own"}`,
      () =>
        Effect.gen(function* () {
          const codec = codecOf(id)
          const { model } = yield* makeWorker({ modelPath: marksPath, threads: 1, gpu: false, contextTokens: 1024 })
          const session = yield* model.session
          yield* session.commit([control("<|im_start|>user\n"), text("Go."), control("<|im_end|>\n")])
          const { grammar } = codec.grammar!(tools)!
          for (let seed = 1; seed <= 12; seed++) {
            const opener = grammar.openers.find((one) => one.atStart !== true)!.text
            const request = {
              maxTokens: 120,
              sampling: { temperature: 1, topK: 40, topP: 0.95, seed },
              stops: [],
              grammar
            }
            const events = yield* Stream.runCollect(session.turn([control(opener)], request))
            yield* session.rollback
            const written = events.flatMap((event) => (event._tag === "Piece" ? [event.text] : [])).join("")
            const end = events.at(-1)
            if (id === "gpt-oss") {
              assert.deepInclude(end, { _tag: "End", reason: "eog" })
              assert.match(written, /"b": ?"x<tool_call\|>y" ?\}$/)
            }
            // Free text follows a call whose closing mark is not the turn's end; the first call is what was held.
            const behind = written.indexOf("<tool_call|>", written.indexOf("<tool_call|>y") + 12) + 12
            const call = id === "gpt-oss" ? written : written.slice(0, behind)
            const { action } = parsePieces(codec, [opener + call], { tools })
            assert.strictEqual(action._tag, "ToolCalls", JSON.stringify({ written, action }))
          }
        }).pipe(Effect.scoped),
      120_000
    )
  }
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
