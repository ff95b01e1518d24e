/** R-PHERON-1 to 7: what a prompt says, and what is heard in what a model writes. */
import { hash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Agent from "../../src/effects/Agent.ts"
import type { Codec } from "../../src/engine/codecs/Codec.ts"
import { byId, choose, ids } from "../../src/engine/codecs/Families.ts"
import type { Message } from "../../src/engine/Message.ts"
import { flatten } from "../../src/engine/Prompt.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import { execute } from "../../src/tools/Execution.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { firstDifference, parsePieces, tool } from "../kit/codecs.ts"
import { play } from "../kit/run.ts"
import { call, calls, type Line, lines } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

const codecOf = (id: string): Codec => Result.getOrThrow(byId(id))

const parameters = {
  type: "object",
  properties: { a: { type: "integer" }, exact: { type: "boolean" } },
  required: ["a"]
} as const
const calc = tool("calc", parameters, "Integer sum <é>.")

const conversation: ReadonlyArray<Message> = [
  { role: "system", content: "S" },
  { role: "user", content: "Q" },
  {
    role: "assistant",
    content: "T",
    reasoning: "why",
    calls: [
      { name: "calc", arguments: { a: 1, exact: true } },
      { name: "calc", arguments: {} }
    ]
  },
  { role: "tool", name: "calc", content: "R1" },
  { role: "tool", name: "calc", content: "R2" }
]

const count = (events: ReadonlyArray<Line>, ...types: ReadonlyArray<string>) =>
  events.filter(({ event_type: type }) => types.includes(type)).length

const [start, end] = ["<|im_start|>", "<|im_end|>"]
const question = `${start}user\nQ${end}\n${start}assistant\n`
const results = "<tool_response>\nR1\n</tool_response>\n<tool_response>\nR2\n</tool_response>"
const json = `<tool_call>\n{"name": "calc", "arguments": {"a": 1, "exact": true}}\n</tool_call>\n<tool_call>\n{"name": "calc", "arguments": {}}\n</tool_call>`
const xml = `<tool_call>\n<function=calc>\n<parameter=a>\n1\n</parameter>\n<parameter=exact>\nTrue\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=calc>\n</function>\n</tool_call>`
const reasoned = "<think>\nwhy\n</think>\n\n"

/** From the question on, with reasoning on where there is a switch. */
const conversations: Readonly<Record<string, string>> = {
  "qwen2.5": `${question}T\n${json}${end}\n${start}user\n${results}${end}\n${start}assistant\n`,
  qwen3: `${question}${reasoned}T\n${json}${end}\n${start}user\n${results}${end}\n${start}assistant\n`,
  "qwen3.5": `${question}${reasoned}T\n\n${xml}${end}\n${start}user\n${results}${end}\n${start}assistant\n<think>\n`,
  "qwen3-coder": `${question}T\n\n${xml}${end}\n${start}user\n${results}\n${end}\n${start}assistant\n`
}

/** A question and the beginning of its answer, with reasoning off. */
const exchanges: Readonly<Record<string, string>> = {
  "qwen2.5": question,
  hermes: question,
  "generic-json": question,
  llama3: "<|start_header_id|>user<|end_header_id|>\n\nQ<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
  mistral: "[INST]Q[/INST]",
  "mistral-7b": "[INST] Q[/INST]",
  "gpt-oss": "<|start|>user<|message|>Q<|end|><|start|>assistant",
  "deepseek-v3": "<｜User｜>Q<｜Assistant｜>",
  "deepseek-v3.1": "<｜User｜>Q<｜Assistant｜></think>",
  gemma3: "<start_of_turn>user\nQ<end_of_turn>\n<start_of_turn>model\n",
  gemma4: "<|turn>user\nQ<turn|>\n<|turn>model\n<|channel>thought\n<channel|>",
  functiongemma: "<start_of_turn>user\nQ<end_of_turn>\n<start_of_turn>model\n"
}

describe("golden renders per family", () => {
  for (const [id, golden] of Object.entries(conversations)) {
    it(`${id}: a conversation with two calls and their results, to the byte`, () => {
      const codec = codecOf(id)
      const out = flatten(codec.render(conversation, { tools: [calc], generationPrompt: true, thinking: true }))
      assert.strictEqual(firstDifference(out.slice(out.indexOf(`${start}user\nQ`)), golden), undefined)
    })
  }

  for (const [id, golden] of Object.entries(exchanges)) {
    it(`${id}: a question and the opening of its answer, to the byte`, () => {
      const codec = codecOf(id)
      const opening = codec.opening({ tools: [], thinking: false, after: "user" })
      assert.strictEqual(firstDifference(flatten([...codec.user("Q"), ...opening]), golden), undefined)
    })
  }
})

describe("R-PHERON-1: native syntax per family, chosen at load", () => {
  const jsonTemplate = `{{ '<|im_start|>' }} <tools></tools> <tool_call>{"name": <function-name>}</tool_call>`
  const table: ReadonlyArray<readonly [template: string, architecture: string, id: string | undefined]> = [
    ["<|im_start|>{{ role }}<tools></tools><tool_call><function=example><think>", "qwen35", "qwen3.5"],
    ["<|start_header_id|>{{ role }}ipython", "llama", "llama3"],
    // What the template says counts, whatever the architecture is called.
    ["<|im_start|>{{ role }}<tools></tools><tool_call><function=example><think>", "llama", "qwen3.5"],
    ["<|start_header_id|>{{ role }}ipython", "qwen2", "llama3"],
    [jsonTemplate, "qwen2", "qwen2.5"],
    [jsonTemplate, "llama", "qwen2.5"],
    [`${jsonTemplate} enable_thinking`, "qwen2", "qwen3"],
    [`${jsonTemplate} <think>`, "qwen2", "qwen3-thinking"],
    ["", "qwen2", undefined],
    ["no template anybody knows", "qwen2", undefined],
    ["no template anybody knows", "llama", undefined]
  ]
  for (const [template, architecture, id] of table) {
    it(`${JSON.stringify(template)} of ${architecture} is ${id ?? "refused, not guessed"}`, () => {
      const chosen = choose({ template, architecture, name: "Qwen2.5-7B-Instruct" })
      assert.strictEqual(Result.isSuccess(chosen) ? chosen.success.codec.id : undefined, id)
    })
  }

  it.effect("codec, reason and hash of the template are in provenance; an unknown template opens no session", () =>
    Effect.gen(function* () {
      const { registry } = yield* TestTools.make()
      const template = jsonTemplate
      const cases: ReadonlyArray<readonly [asked: string | undefined, id: string, reason: RegExp]> = [
        [undefined, "qwen2.5", /^Qwen2\.5: it asks for JSON/],
        ["llama3", "llama3", /^asked for by name; the template says otherwise/]
      ]
      for (const [codec, id, reason] of cases) {
        const asked = codec === undefined ? {} : { codec }
        const data = yield* Agent.run({ task: "t", tools: registry, ...asked }).pipe(
          Effect.andThen(Effect.map(MemoryTraces, (memory) => lines(memory.text("run-1"))[1]!.data)),
          Effect.provide(layerScripted({ turns: ["hi"], template }))
        )
        assert.strictEqual(data["codec"], id)
        assert.match(String(data["codec_reason"]), reason)
        const told = (data["model"] as Record<string, unknown>)["templateSha256"]
        assert.strictEqual(told, hash("sha256", template))
      }
      const error = yield* Effect.flip(
        Agent.run({ task: "t", tools: registry }).pipe(Effect.provide(layerScripted({ turns: ["hi"], template: "?" })))
      )
      assert.deepInclude(error, { _tag: "EngineError", reason: "unknown_template" })
    })
  )
})

describe("R-PHERON-2: Qwen3.5 reads either payload by how it begins, and nothing else", () => {
  const parsed = (payload: string) =>
    parsePieces(codecOf("qwen3.5"), [`<tool_call>\n${payload}\n</tool_call>`], { tools: [calc, tool("note")] }).action
  const read = (payload: string) => parsed(payload)._tag

  it("what looks like the other payload inside one is an argument, and in front of one it is no call at all", () => {
    const inside = "<function=calc>\n<parameter=a>\n1\n</parameter>\n</function>"
    const written = parsed(JSON.stringify({ name: "note", arguments: { text: inside } }))
    assert.deepInclude(written, { _tag: "ToolCalls" })
    assert.deepStrictEqual(
      written._tag === "ToolCalls" ? written.calls.map(({ arguments: args, name }) => [name, args]) : [],
      [["note", { text: inside }]]
    )
    const object = '{"name": "calc", "arguments": {"a": 1}}'
    const xml = parsed(`<function=note>\n<parameter=text>\n${object}\n</parameter>\n</function>`)
    assert.strictEqual(xml._tag === "ToolCalls" ? xml.calls[0]!.name : xml._tag, "note")
    for (const before of ["x ", "[1] ", "null\n"]) {
      assert.strictEqual(read(`${before}${inside}`), "Malformed", before)
      assert.strictEqual(read(`${before}${object}`), "Malformed", before)
    }
  })

  it("functions and JSON are calls; a wrapper inside a payload, or any other payload, is malformed", () => {
    assert.strictEqual(read("<function=calc>\n<parameter=a>\n1\n</parameter>\n</function>"), "ToolCalls")
    assert.strictEqual(read('{"name": "calc", "arguments": {"a": 1}}'), "ToolCalls")
    assert.strictEqual(read('call: {"name": "calc", "arguments": {"a": 1}}'), "Malformed")
    assert.strictEqual(read("calc(1)"), "Malformed")
  })
})

describe("R-PHERON-3: required-list test", () => {
  it("in every family that prints schemas, what is required is what the schema requires, not all there is", () => {
    let printed = 0
    for (const id of ids) {
      const codec = codecOf(id)
      const options = { tools: [calc], after: "user" } as const
      const prompt = flatten([...codec.system("S", options), ...codec.user("Q")])
      const list = /"required": ?\[([^\]]*)\]|<required>\[([^\]]*)\]|required:\[([^\]]*)\]/.exec(prompt)
      if (list === null) continue
      printed += 1
      const names = (list[1] ?? list[2] ?? list[3] ?? "").match(/\w+/g)?.filter((word) => word !== "escape")
      assert.deepStrictEqual(names, ["a"], `${id}: ${list[0]}`)
    }
    assert.isAbove(printed, 20)
  })

  it.effect("an argument that is optional can be left out", () =>
    Effect.gen(function* () {
      const given: Array<unknown> = []
      const tools = yield* Registry.fromDynamic([
        {
          name: "calc",
          description: "Sums.",
          schema: parameters,
          contract: { risk: "read" },
          run: (args) => Effect.sync(() => void given.push(args))
        }
      ])
      const turns = [call("calc", { a: 1 }), call("calc", { exact: true }), call("calc", { a: 1, exact: true }), "ok"]
      const { context, events } = yield* play(turns, { tools } as never)
      assert.include(context, '"required": ["a"]', "the prompt of the run says what the registered schema says")
      assert.deepStrictEqual(given, [{ a: 1 }, { a: 1, exact: true }])
      assert.strictEqual(count(events, "tool_call_rejected"), 1, "and one that is required cannot")
    })
  )
})

describe("R-PHERON-4: unknown-name", () => {
  it.effect("a call of a tool that is not there is rejected by name, and every call has its answer", () =>
    Effect.gen(function* () {
      const turn = calls(["nope", {}], ["add", { a: 1, b: 1 }], ["nada", { x: 1 }])
      const { context, events, outcome } = yield* play([turn, "sorry"])
      assert.strictEqual(outcome.stop._tag, "Completed")
      assert.include(context, '"kind":"unknown_tool"')
      const parsed = events.find(({ event_type: type }) => type === "assistant_action_parsed")!
      assert.strictEqual(parsed.data["count"], 3)
      assert.strictEqual(count(events, "tool_call_rejected"), 2)
      assert.strictEqual(count(events, "tool_execution_finished"), 1)
      assert.strictEqual(count(events, "tool_result_committed"), 3)
    })
  )
})

describe("R-PHERON-5: A/B/C batch", () => {
  it.effect("A runs, B throws, C runs: three answers in order, and B voids nothing", () =>
    Effect.gen(function* () {
      const turn = calls(["add", { a: 1, b: 1 }], ["broken", { how: "defect" }], ["add", { a: 2, b: 2 }])
      const { events, outcome, performed } = yield* play([turn, "done"])
      assert.strictEqual(outcome.text, "done")
      assert.deepStrictEqual(performed, ['add:{"a":1,"b":1}', 'add:{"a":2,"b":2}'])
      const answers = events.filter(({ event_type: type }) => type === "tool_result_committed")
      assert.deepStrictEqual(
        answers.map(({ data }) => [data["ordinal"], data["ok"]]),
        [
          [0, true],
          [1, false],
          [2, true]
        ]
      )
    })
  )
})

describe("R-PHERON-6: no raw dictionary reaches a tool", () => {
  it.effect("what does not fit the schema is not what the handler gets: it gets nothing", () =>
    Effect.gen(function* () {
      const wrong = [{ a: "1", b: 1 }, { a: 1 }, { a: 1, b: 1, c: 1 }, { a: null, b: 1 }]
      const { events, performed } = yield* play([...wrong.map((args) => call("add", args)), "sorry"], {
        limits: { repairs: 9 }
      })
      assert.deepStrictEqual(performed, [])
      assert.strictEqual(count(events, "tool_call_rejected"), wrong.length)
    })
  )

  it.effect(
    "nor can one be made to look checked: arguments come from the tool's own check, by type and at run time",
    () =>
      Effect.gen(function* () {
        const { performed, registry } = yield* TestTools.make()
        const add = registry.get("add")!
        const raw = { raw: { a: 1, b: 1 }, effective: { a: 1, b: 1 }, canonical: '{"a":1,"b":1}' }
        // @ts-expect-error A dictionary with the same fields is of another type.
        const forged: Registry.ValidatedArguments = raw
        const settings = { fixtures: {} }
        assert.deepInclude(yield* execute(add, forged, { settings }), { _tag: "Failed" })
        assert.deepStrictEqual(performed, [])
        const checked = Result.getOrThrow(add.check(raw.raw))
        assert.deepInclude(yield* execute(add, checked, { settings }), { _tag: "Succeeded", result: 2 })
      })
  )
})

describe("R-PHERON-7: legacy look-alike", () => {
  const legacy = 'CALL([calc]) WITH {"a": 1}'
  it("prose in the old syntax is text in every family but its own", () => {
    for (const id of ids) {
      const prose = id.startsWith("gpt-oss") ? `<|channel|>final<|message|>${legacy}` : legacy
      const reasoningOpen = false
      const { action } = parsePieces(codecOf(id), [prose], { tools: [calc], reasoningOpen })
      assert.strictEqual(action._tag, id === "ubid" ? "ToolCalls" : "FinalText", id)
    }
  })

  it.effect("and completes the run, with nothing executed", () =>
    Effect.gen(function* () {
      const { outcome, performed } = yield* play(['CALL([add]) WITH {"a": 1, "b": 1}'])
      assert.deepStrictEqual([outcome.stop._tag, performed.length], ["Completed", 0])
    })
  )
})
