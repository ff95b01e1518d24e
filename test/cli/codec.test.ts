import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, invoke, writ } from "../kit/cli.ts"
import { makeGguf } from "../kit/gguf.ts"

const patience = { timeout: 240_000 }
const messages = JSON.stringify([
  { role: "system", content: "S" },
  { role: "user", content: "Hé?" },
  {
    role: "assistant",
    content: "",
    tool_calls: [{ id: "1", type: "function", function: { name: "add", arguments: '{"a":1}' } }]
  },
  { role: "tool", tool_call_id: "1", name: "add", content: "2" }
])
const tools = JSON.stringify([
  { type: "function", function: { name: "add", description: "d", parameters: { type: "object" } } }
])

const files = Effect.gen(function* () {
  const cwd = yield* directory
  const write = (name: string, text: string): string => {
    writeFileSync(join(cwd, name), text)
    return join(cwd, name)
  }
  return { cwd, write }
})

describe("writ codec render", () => {
  it.live(
    "prints the bytes and nothing else",
    () =>
      Effect.gen(function* () {
        const { cwd, write } = yield* files
        const flags = ["--family", "qwen-hermes", "--tools", write("t.json", tools)]
        const ran = yield* writ(["codec", "render", ...flags, "--messages", "-"], { cwd, input: messages })
        assert.strictEqual(ran.code, 0, ran.err)
        assert.isTrue(ran.out.startsWith("<|im_start|>system\nS\n\n# Tools"))
        assert.isTrue(
          ran.out.endsWith(
            "<|im_start|>user\nHé?<|im_end|>\n<|im_start|>assistant\n<tool_call>\n" +
              '{"name": "add", "arguments": {"a": 1}}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\n2\n' +
              "</tool_response><|im_end|>\n<|im_start|>assistant\n"
          ),
          ran.out
        )
      }),
    patience
  )

  it.effect("shows segments, renders as a live session would, and by the model's own template", () =>
    Effect.gen(function* () {
      const { write } = yield* files
      const given = ["--messages", write("m.json", messages), "--json"]
      const template = JSON.parse(
        (yield* invoke(["codec", "render", "--family", "qwen3", "--thinking", "off", ...given])).out
      )
      const verbatim = JSON.parse(
        (yield* invoke(["codec", "render", "--family", "qwen3", "--thinking", "off", "--mode", "verbatim", ...given]))
          .out
      )
      assert.strictEqual(template.codec, "qwen3")
      assert.strictEqual(template.bytes, Buffer.byteLength(template.text))
      assert.deepInclude(template.segments, { kind: "control", text: "<|im_start|>" })
      assert.notStrictEqual(template.text, verbatim.text, "a live session keeps what was generated")
      const ends = yield* invoke(["codec", "render", "--family", "qwen3", "--no-generation-prompt", ...given])
      assert.isTrue(JSON.parse(ends.out).text.endsWith("<|im_end|>\n"))
    })
  )

  it.effect("says which message is none, and which codec may be meant", () =>
    Effect.gen(function* () {
      const { write } = yield* files
      const wrong = yield* invoke([
        "codec",
        "render",
        "--family",
        "qwen3",
        "--messages",
        write("w.json", '[{"role":"x"}]')
      ])
      assert.deepStrictEqual([wrong.code, wrong.err.includes("message 1 is none")], [2, true])
      const text = yield* invoke(["codec", "render", "--family", "qwen3", "--messages", write("x.json", "[1,]")])
      assert.deepStrictEqual([text.code, text.err.includes("it is not JSON")], [2, true])
      const family = yield* invoke(["codec", "render", "--family", "qwen33", "--messages", write("m.json", "[]")])
      assert.deepStrictEqual([family.code, family.err.includes("Did you mean")], [2, true])
      assert.include((yield* invoke(["codec", "render"])).err, "--family")
    })
  )
})

describe("writ codec parse", () => {
  const parse = (text: string, ...flags: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const { write } = yield* files
      const { code, out } = yield* invoke(["codec", "parse", write("turn.txt", text), "--family", "qwen2.5", ...flags])
      return { code, ...JSON.parse(out) }
    })

  it.effect("prints calls, answers and faults, whatever the size of the pieces", () =>
    Effect.gen(function* () {
      const call = 'So: <tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
      for (const flags of [[], ["--chunk", "1"], ["--chunk", "7"]]) {
        assert.deepStrictEqual(yield* parse(call, ...flags), {
          code: 0,
          action: "tool_calls",
          text: "So: ",
          calls: [{ name: "add", arguments: { a: 1 } }]
        })
      }
      assert.deepStrictEqual(yield* parse("<think>hm</think>Four."), {
        code: 0,
        action: "final_text",
        text: "Four.",
        reasoning: "hm"
      })
      const cut = yield* parse(call.slice(0, 40), "--stop", "length")
      assert.deepStrictEqual([cut.code, cut.action, cut.errors[0].code], [3, "malformed", "truncated"])
      const inside = yield* parse("hm</think>Four.", "--reasoning-open")
      assert.deepStrictEqual([inside.text, inside.reasoning], ["Four.", "hm"])
    })
  )

  it.effect("sees no calls where a list without tools is given", () =>
    Effect.gen(function* () {
      const { write } = yield* files
      const text = '<tool_call>{"name": "add"}</tool_call>'
      assert.strictEqual((yield* parse(text, "--tools", write("none.json", "[]"))).action, "final_text")
      assert.strictEqual((yield* parse(text, "--tools", write("some.json", tools))).action, "tool_calls")
    })
  )

  it.live(
    "reads standard input",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const ran = yield* writ(["codec", "parse", "--family", "generic-json", "--json"], { cwd, input: "Hello." })
        assert.deepStrictEqual([ran.code, ran.out], [0, '{"action":"final_text","text":"Hello."}\n'])
      }),
    patience
  )
})

describe("writ codec check", () => {
  it.effect("finds that the demo model's template and its codec agree, and names where another codec parts", () =>
    Effect.gen(function* () {
      const own = yield* invoke(["codec", "check", "--json"])
      const report = JSON.parse(own.out)
      assert.deepStrictEqual([own.code, report.agrees, report.codec], [0, true, "qwen2.5"])
      assert.isAbove(report.compared, 20)
      const other = yield* invoke(["codec", "check", "--family", "hermes"])
      assert.strictEqual(other.code, 3)
      assert.match(other.out, /differs at byte \d+/)
    })
  )

  it.effect("says so where a file has a template of its own that no codec knows", () =>
    Effect.gen(function* () {
      const { write } = yield* files
      const path = write("m.gguf", "")
      writeFileSync(path, makeGguf())
      const unknown = yield* invoke(["codec", "check", "--model", path])
      assert.strictEqual(unknown.code, 2)
      assert.include(unknown.err, "--family")
      const forced = yield* invoke(["codec", "check", "--model", path, "--family", "qwen2.5", "--json"])
      assert.strictEqual(forced.code, 3)
      assert.isNotEmpty(JSON.parse(forced.out).differences)
    })
  )
})

describe("a model file that is not there", () => {
  for (const command of ["codec check --model", "codec render --model", "codec parse --model", "models inspect"]) {
    it.effect(`is a mistake of the command line for writ ${command}, and so is a directory`, () =>
      Effect.gen(function* () {
        const { cwd } = yield* files
        const missing = yield* invoke([...command.split(" "), join(cwd, "no.gguf")])
        assert.deepStrictEqual([missing.code, missing.out], [2, ""])
        assert.include(missing.err, "no.gguf: there is no such file")
        const json = yield* invoke([...command.split(" "), cwd, "--json"])
        assert.strictEqual(json.code, 2)
        assert.deepInclude(JSON.parse(json.out).error, { exit_code: 2 })
        assert.include(json.err, "it is not a file")
      })
    )
  }
})

describe("writ codec list", () => {
  it.effect("lists every codec and what it can do", () =>
    Effect.gen(function* () {
      const codecs = JSON.parse((yield* invoke(["codec", "list", "--json"])).out)
      assert.deepInclude(codecs, { id: "qwen3", reasoning: true, constrained: true })
      assert.deepInclude(codecs, { id: "gpt-oss", reasoning: true, constrained: true })
      assert.include((yield* invoke(["codec", "list"])).out, "functiongemma")
    })
  )
})

describe("writ tools validate", () => {
  const schema = JSON.stringify({
    type: "object",
    properties: {
      a: { type: "integer" },
      rows: { type: "array", items: { type: "object", properties: { id: { type: "string" } } } }
    },
    required: ["a"]
  })

  it.effect("lists every problem by its place, in the words a model is told", () =>
    Effect.gen(function* () {
      const { write } = yield* files
      const flags = ["tools", "validate", "--schema", write("s.json", schema)]
      const bad = ["--args", write("a.json", '{"a": "5", "rows": [{"id": 1}], "b": 0}')]
      const ran = yield* invoke([...flags, ...bad, "--json"])
      assert.strictEqual(ran.code, 3)
      assert.deepStrictEqual(
        JSON.parse(ran.out).errors.map(({ path, code }: { readonly path: string; readonly code: string }) => [
          path,
          code
        ]),
        [
          ["a", "wrong_type"],
          ["b", "unknown_field"],
          ["rows[0].id", "wrong_type"]
        ]
      )
      assert.include((yield* invoke([...flags, ...bad])).out, "a: expected integer, got string")
      const good = yield* invoke([...flags, "--args", write("g.json", '{"a": 5}'), "--json"])
      assert.deepStrictEqual([good.code, JSON.parse(good.out)], [0, { valid: true, errors: [], effective: { a: 5 } }])
    })
  )

  it.effect(
    "takes text that is no call's arguments for invalid, and a schema that is none for a mistake of the caller",
    () =>
      Effect.gen(function* () {
        const { write } = yield* files
        const flags = ["tools", "validate", "--schema", write("s.json", schema), "--json", "--args"]
        for (const [text, code] of [
          ['{"a": 1, "a": 2}', "duplicate_key"],
          ["[1]", "arguments_not_object"],
          ['{"a": 9007199254740993}', "unsafe_integer"]
        ] as const) {
          const ran = yield* invoke([...flags, write("a.json", text)])
          assert.deepStrictEqual([ran.code, JSON.parse(ran.out).errors[0].code], [3, code])
        }
        const refused = yield* invoke(["tools", "validate", "--schema", write("r.json", '{"type":"array"}')])
        assert.deepStrictEqual([refused.code, refused.err.includes("it is refused")], [2, true])
      })
  )
})
