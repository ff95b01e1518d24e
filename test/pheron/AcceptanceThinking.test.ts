/** R-PHERON-8 to 13: reasoning, who sees what, and whether a run talks or works. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Agent from "../../src/effects/Agent.ts"
import type { AgentEvent } from "../../src/effects/AgentEvent.ts"
import { streamAll } from "../../src/effects/Phases.ts"
import * as Router from "../../src/effects/Router.ts"
import type { RunOptions } from "../../src/effects/Run.ts"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import type { Codec } from "../../src/engine/codecs/Codec.ts"
import { byId } from "../../src/engine/codecs/Families.ts"
import { opensReasoning } from "../../src/engine/codecs/Thinking.ts"
import { TurnText } from "../../src/engine/LlamaText.ts"
import { flatten } from "../../src/engine/Prompt.ts"
import type { Script } from "../../src/engine/ScriptedModel.ts"
import { wordsGrammar } from "../../src/engine/WholeTurn.ts"
import { layerScripted } from "../../src/testing.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { pairs, parsePieces, splits, tool, units } from "../kit/codecs.ts"
import { routed } from "../kit/routes.ts"
import { play } from "../kit/run.ts"
import { call } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

const codecOf = (id: string): Codec => Result.getOrThrow(byId(id))
const add = call("add", { a: 2, b: 3 })

/** Everything a subscriber is given of a run. */
const subscribed = (turns: Script["turns"], options: RunOptions & { readonly codec?: string } = {}, tools = true) =>
  Effect.gen(function* () {
    const { performed, registry } = yield* TestTools.make()
    const seen: Array<AgentEvent> = []
    const stream = Agent.stream({ task: "t", tools: tools ? registry : Registry.none, ...options })
    yield* Stream.runForEach(stream, (event) => Effect.sync(() => void seen.push(event)))
    const texts = (tag: "Text" | "Reasoning") => seen.flatMap((event) => (event._tag === tag ? [event.text] : []))
    return { performed, text: texts("Text"), reasoning: texts("Reasoning"), stop: seen.at(-1) }
  }).pipe(Effect.provide(layerScripted({ turns })))

describe("R-PHERON-8: think polarity", () => {
  const tails: ReadonlyArray<readonly [id: string, on: string, off: string]> = [
    ["qwen2.5", "assistant\n", "assistant\n"],
    ["qwen3-coder", "assistant\n", "assistant\n"],
    ["qwen3", "assistant\n", "assistant\n<think>\n\n</think>\n\n"],
    ["qwen3.5", "assistant\n<think>\n", "assistant\n<think>\n\n</think>\n\n"],
    ["qwen3.8", "assistant\n<think>\n", "assistant\n<think>\n\n</think>\n\n"],
    ["deepseek-v3.1", "<｜Assistant｜><think>", "<｜Assistant｜></think>"],
    ["gemma4", "<|turn>model\n", "<|turn>model\n<|channel>thought\n<channel|>"]
  ]
  for (const [id, on, off] of tails) {
    it.effect(`${id}: the prompt of a run ends in the family's exact tail, on and off`, () =>
      Effect.gen(function* () {
        const opening = (thinking: boolean) => flatten(codecOf(id).opening({ tools: [], thinking, after: "user" }))
        assert.isTrue(opening(true).endsWith(on) && opening(false).endsWith(off))
        for (const thinking of [true, false]) {
          const { context } = yield* play(["Fine.", "Fine."], { codec: id, thinking, limits: { repairs: 0 } })
          assert.include(context, `${thinking ? on : off}Fine.`)
        }
      })
    )
  }

  it.effect("on for planning and off after it, if the run says so; chat and classification are off by themselves", () =>
    Effect.gen(function* () {
      const phases = { plan: { thinking: true }, tool: { thinking: false } }
      const { context } = yield* play([`plan\n</think>\n\n${xmlAdd}`, "It is 5."], { codec: "qwen3.5", phases })
      assert.include(context, "assistant\n<think>\nplan")
      assert.include(context, "assistant\n<think>\n\n</think>\n\nIt is 5.")
      const off = "assistant\n<think>\n\n</think>\n\n"
      for (const codec of ["qwen3", "qwen3.5"]) {
        const { asked, contexts } = yield* routed(["chat", "Hello!"], { codec })
        assert.lengthOf(asked, 2)
        for (const { opening } of asked) assert.isTrue(opening.endsWith(off), JSON.stringify(opening))
        assert.include(contexts[2], `${off}Hello!`)
        // What the run says of its task does not reach the decision.
        const thinking = yield* routed(["task", "Hello!"], { codec, thinking: true })
        assert.isTrue(thinking.asked[0]!.opening.endsWith(off))
        assert.isFalse(thinking.asked[1]!.opening.endsWith(off))
      }
    })
  )
})

const xmlAdd =
  "<tool_call>\n<function=add>\n<parameter=a>\n2\n</parameter>\n<parameter=b>\n3\n</parameter>\n</function>\n</tool_call>"

describe("R-PHERON-8: think-ignores-switch", () => {
  const thought = "I was told not to, and I wonder all the same. ".repeat(6)
  it.effect("a model that reasons anyway leaks nothing of it, and its answer arrives", () =>
    Effect.gen(function* () {
      const { stop, text } = yield* subscribed(
        [`<think>\n${thought}\n</think>\n\nIt is 5.`],
        { codec: "qwen3", thinking: false },
        false
      )
      assert.deepInclude(stop, { stop: { _tag: "Completed", text: "It is 5." } })
      assert.strictEqual(text.join(""), "It is 5.")
    })
  )

  it.effect("and starves it of nothing: reasoning has a budget of its own, is closed once, and the turn goes on", () =>
    Effect.gen(function* () {
      const turn = `<think>\n${thought}\n</think>\n\nIt is 5.`
      const { events, outcome, text } = yield* play([turn], {
        codec: "qwen3",
        thinking: false,
        limits: { thinkTokens: 6 }
      })
      assert.strictEqual(outcome.text, "It is 5.")
      const closed = events.flatMap(({ data }) => (data["think_closed"] === undefined ? [] : [data["think_closed"]]))
      assert.deepStrictEqual(closed, [6])
      assert.deepStrictEqual(validateText(text).violations, [])
    })
  )
})

describe("R-PHERON-9: call inside think", () => {
  it.effect("a call in closed reasoning is not executed; nor is one in reasoning that never closes", () =>
    Effect.gen(function* () {
      const closed = yield* play([`<think>\n${add}\n</think>\n\nIt is 5.`], { codec: "qwen3" })
      assert.deepStrictEqual([closed.performed, closed.outcome.text], [[], "It is 5."])
      const open = yield* play([`<think>\n${add}`, "sorry"], { codec: "qwen3" })
      assert.deepStrictEqual([open.performed, open.outcome.rejected], [[], 1])
    })
  )

  it.effect("reasoning is kept apart in transcript and trace", () =>
    Effect.gen(function* () {
      const { events, outcome } = yield* play(["<think>\nwhy\n</think>\n\nIt is 5."], { codec: "qwen3" })
      assert.deepInclude(outcome.transcript.at(-1), { reasoning: "why", content: "It is 5." })
      const parsed = events.find(({ event_type: type }) => type === "assistant_action_parsed")!
      assert.strictEqual(parsed.data["reasoning"], "why")
    })
  )
})

describe("R-PHERON-10: every-split streaming corpus", () => {
  const secret = "XQZ"
  const corpus: Readonly<Record<string, ReadonlyArray<readonly [raw: string, shown: string]>>> = {
    qwen3: [
      [`<think>\n${secret}\n</think>\n\nSo é.`, "So é."],
      [`<think>${secret}</think>A`, "A"],
      [`<think>\n\n</think>\n\n<think>${secret}</think>B`, "B"],
      ["The tag <think> is quoted, and </think> too.", "The tag <think> is quoted, and </think> too."],
      [`<think>${secret} <think> nested</think>C </think> d`, "C </think> d"],
      [`<think>${secret} never closed`, ""],
      [`<think>${secret}</think>Let me.\n<tool_call>\n{"name": "t", "arguments": {}}\n</tool_call>`, "Let me.\n"]
    ],
    "qwen3.5": [
      [`${secret}\n</think>\n\nSo.`, "So."],
      [`<think>\n${secret}</think>So <think> it is.`, "So <think> it is."],
      [`${secret} </thi </think>D`, "D"]
    ],
    gemma4: [[`<|channel>thought\n${secret}\n<channel|>So.`, "So."]],
    "gpt-oss": [
      [`<|channel|>analysis<|message|>${secret}<|end|><|start|>assistant<|channel|>final<|message|>So.`, "So."]
    ],
    mistral: [[`[THINK]${secret}[/THINK]So.`, "So."]]
  }
  for (const [id, outputs] of Object.entries(corpus)) {
    it(`${id}: however it is cut, the user is shown the same, and no reasoning`, () => {
      const codec = codecOf(id)
      const tools = [tool("t")]
      const thinking = true
      const reasoningOpen = opensReasoning(codec, { tools, thinking, after: "user" })
      for (const [raw, shown] of outputs) {
        const whole = parsePieces(codec, [raw], { tools, reasoningOpen })
        assert.strictEqual(whole.text, shown, raw)
        for (const pieces of [...splits(raw), ...pairs(raw), units(raw)]) {
          const cut = parsePieces(codec, pieces, { tools, reasoningOpen })
          assert.strictEqual(cut.text, shown, JSON.stringify(pieces))
          assert.notInclude(cut.text, secret)
          assert.deepStrictEqual(cut.action, whole.action)
        }
      }
    })
  }

  it("at every byte too, also inside a character: what the engine tells of it comes to the same", () => {
    /** What a parser is told where the tokens of a turn are these bytes; a piece is told after each. */
    const told = (tokens: ReadonlyArray<Uint8Array>): ReadonlyArray<string> => {
      const pieces: Array<string> = []
      let now = 0
      const text = new TurnText(
        (ids) => Buffer.concat(ids.map((id) => tokens[id]!)).toString("utf8"),
        [],
        [],
        (piece) => void pieces.push(piece),
        { now: () => (now += 1_000) }
      )
      for (const id of tokens.keys()) text.push(id)
      text.end()
      return pieces
    }
    const codec = codecOf("qwen3")
    const tools = [tool("t")]
    const called = '<tool_call>\n{"name": "t", "arguments": {}}\n</tool_call>'
    const raw = `<think>\n${secret} é𝄞\n</think>\n\nSo é, 𝄞 and مرحبا.\n${called}`
    const bytes = Buffer.from(raw)
    const whole = parsePieces(codec, [raw], { tools })
    assert.strictEqual(whole.text, "So é, 𝄞 and مرحبا.\n")
    assert.strictEqual(whole.action._tag, "ToolCalls")
    const cuts = Array.from(bytes.keys(), (at) => [bytes.subarray(0, at), bytes.subarray(at)])
    for (const tokens of [...cuts, Array.from(bytes, (byte) => Uint8Array.of(byte))]) {
      assert.deepStrictEqual(parsePieces(codec, told(tokens), { tools }), whole)
    }
  })

  it("(d) where the prompt opened the block, the parser begins in it; (e) a quoted tag silences nothing", () => {
    const opened = parsePieces(codecOf("qwen3.5"), ["hidden</think>shown"], { tools: [], reasoningOpen: true })
    assert.deepStrictEqual([opened.text, opened.reasoning], ["shown", "hidden"])
    const quoted = parsePieces(codecOf("qwen3"), ["A <think> tag."], { tools: [] })
    assert.deepStrictEqual([quoted.text, quoted.reasoning], ["A <think> tag.", ""])
  })
})

describe("R-PHERON-11: token callback only for chat and report", () => {
  const pieces = (text: string) => ({ text: text.split(/(?=[ \n])/) })

  it.effect("plan and tool turns give a subscriber no chunk, of prose, of reasoning or of a call", () =>
    Effect.gen(function* () {
      const turn = pieces(`<think>\nhm hm\n</think>\n\nLet me add that.\n${add}`)
      const { reasoning, text } = yield* subscribed([turn, turn, pieces("It is 5 then.")], { codec: "qwen3" })
      assert.deepStrictEqual([text, reasoning], [["It is 5 then."], []])
    })
  )

  it.effect("nor does classification, whatever it says and whatever comes of it", () =>
    Effect.gen(function* () {
      const said = pieces("<think>\nhm hm\n</think>\n\nchat")
      const cases: ReadonlyArray<readonly [decision: Script["turns"][number], rest: Script["turns"]]> = [
        [said, ["Hello!"]],
        ["task", ["Hello!"]],
        [pieces("I think it is a chat"), ["Hello!"]],
        ["chat", ["TASK()", "Hello!"]]
      ]
      for (const [decision, rest] of cases) {
        const { registry } = yield* TestTools.make()
        const seen: Array<AgentEvent> = []
        yield* Effect.gen(function* () {
          const handle = yield* Router.start({ task: "t", tools: registry, codec: "qwen3", phases: streamAll })
          yield* Stream.runForEach(handle.events, (event) => Effect.sync(() => void seen.push(event)))
        }).pipe(Effect.scoped, Effect.provide(layerScripted({ turns: [decision, ...rest] })))
        const shown = seen.flatMap((event) =>
          event._tag === "Text" || event._tag === "Reasoning" || event._tag === "Retracted" ? [event] : []
        )
        assert.deepStrictEqual(
          shown.map((event) => (event._tag === "Text" ? event.text : event._tag)),
          ["Hello!"]
        )
      }
    })
  )

  it.effect("report and chat turns stream", () =>
    Effect.gen(function* () {
      const report = yield* subscribed([pieces("It is 5 then.")], {}, false)
      assert.deepStrictEqual(report.text, ["It", " is", " 5", " then."])
      const chat = yield* subscribed([pieces("It is 5 then.")], { phase: "chat" })
      assert.strictEqual(chat.text.length, 4)
    })
  )

  it.effect("a call that is cut at any token is never shown as chat, even where such turns are streamed", () =>
    Effect.gen(function* () {
      const phases = { plan: { stream: true } }
      for (let length = 1; length <= add.length; length++) {
        const cut = add.slice(0, length)
        if ("<tool_call>".startsWith(cut)) continue
        const { text } = yield* subscribed([{ text: [...cut] }, "x"], { phases, limits: { modelTurns: 1 } })
        assert.deepStrictEqual(text, [], JSON.stringify(cut))
      }
    })
  )
})

describe("R-PHERON-12: classifier garbage", () => {
  const cases: ReadonlyArray<readonly [said: Script["turns"][number], reason: string]> = [
    ["banana", "garbage"],
    ["", "empty"],
    ["chat task", "both"],
    [{ text: Array.from({ length: 65 }, () => "a") }, "overrun"]
  ]
  for (const [said, reason] of cases) {
    it.effect(`${reason} is a task, with the decision, its time and the raw text on record`, () =>
      Effect.gen(function* () {
        const written = typeof said === "string" ? said : [said.text].flat().join("")
        const slowly = { ...(typeof said === "string" ? { text: said } : said), prefillMillis: 250 }
        const running = yield* Effect.forkChild(routed([slowly, add, "It is 5."]), { startImmediately: true })
        yield* TestClock.adjust(250)
        const { events, outcome, performed } = yield* Fiber.join(running)
        assert.deepStrictEqual([outcome.text, performed.length], ["It is 5.", 1])
        const { data } = events.find(({ event_type: type }) => type === "routed")!
        assert.deepInclude(data, { route: "task", by: "model", reason, duration_ms: 250 })
        assert.strictEqual(data["text"], written.slice(0, 64))
      })
    )
  }

  it.effect("is asked without reasoning, greedily, for 64 tokens at most; either way can be forced", () =>
    Effect.gen(function* () {
      const { asked } = yield* routed(["task", "x"], { codec: "qwen3", sampling: { temperature: 1, seed: 9 } })
      const { opening, request } = asked[0]!
      assert.isTrue(opening.endsWith("<think>\n\n</think>\n\n"))
      assert.deepStrictEqual([request.maxTokens, request.sampling.temperature], [64, 0])
      assert.deepStrictEqual(request.grammar, wordsGrammar(["chat", "task"]))
      for (const route of ["chat", "task"] as const) {
        const forced = yield* routed(["x"], { route })
        assert.lengthOf(forced.asked, 1, "nobody is asked which it is")
        assert.strictEqual(forced.contexts.at(-1)!.includes("<tools>"), route === "task")
        const { data } = forced.events.find(({ event_type: type }) => type === "routed")!
        assert.deepInclude(data, { route, by: "caller" })
      }
      const about = (yield* play(["x"])).events[1]!.data["phases"] as Record<string, unknown>
      assert.deepInclude(about["classify"], { thinking: false, max_tokens: 64, temperature: 0 })
    })
  )
})

describe("R-PHERON-13: a chat has no tools and a minimal system prompt, a task advertises the run's", () => {
  it.effect("rendered, for a chat and a task of one text", () =>
    Effect.gen(function* () {
      const { contexts } = yield* routed(["chat", "TASK()", "done"], { system: "You are a builder." })
      const [, task, chat] = contexts
      assert.include(chat, Router.chatSystem)
      assert.notMatch(chat!, /<tools>|"function"|builder/)
      assert.include(task, "<tools>")
      assert.include(task, "You are a builder.")
      for (const name of ["add", "save", "send", "clarify"]) assert.include(task, `"name": "${name}"`)
    })
  )
})
