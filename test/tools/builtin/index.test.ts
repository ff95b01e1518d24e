import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { crc32, inflateSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { registry } from "../../../src/tools/builtin/index.ts"
import { execute } from "../../../src/tools/Execution.ts"
import type { JsonObject } from "../../../src/tools/JsonText.ts"
import { looking } from "../../../src/tools/Terms.ts"
import { admitted } from "../../kit/toolCalls.ts"

const workspace = Effect.acquireRelease(
  Effect.sync(() => {
    const root = fs.mkdtempSync(join(tmpdir(), "writ-builtin-"))
    fs.mkdirSync(join(root, "docs"))
    fs.writeFileSync(join(root, "notes.md"), "One line\nTwo Lines\r\nthree (x*)\n")
    fs.writeFileSync(join(root, "docs", "plan.txt"), "line of a plan")
    fs.writeFileSync(join(root, "binary.bin"), Uint8Array.of(0xff, 0xfe))
    return root
  }),
  (root) => Effect.sync(() => fs.rmSync(root, { recursive: true }))
)

const call = Effect.fnUntraced(function* (
  name: string,
  args: JsonObject = {},
  root?: string,
  fixtures: Record<string, string> = {}
) {
  const settings = { fixtures, ...(root === undefined ? {} : { workspace: root }) }
  const one = admitted(yield* Effect.orDie(registry), name, args, { settings })
  return yield* execute(one.tool, one.arguments, { settings })
})

describe("the tools that come with the package", () => {
  it.effect("are shown to the model in exactly the words it was trained on", () =>
    Effect.gen(function* () {
      const specs = (yield* registry).specs.slice(0, 7)
      const spec = (name: string, description: string, properties: Record<string, string>) => ({
        name,
        description,
        parameters: {
          type: "object",
          properties: Object.fromEntries(
            Object.entries(properties).map(([key, text]) => [key, { type: "string", description: text }])
          ),
          required: Object.keys(properties)
        }
      })
      // As text: the order of the keys is part of what was trained.
      assert.strictEqual(
        JSON.stringify(specs),
        JSON.stringify([
          spec("list_files", "List the names of the files in the workspace.", {}),
          spec("read_text_file", "Read one text file from the workspace.", { path: "File name, for example notes.md" }),
          spec("search_text", "Search all files for a text and return the matching lines.", {
            query: "Text to search for"
          }),
          spec("calculate", "Evaluate an arithmetic expression with + - * / and parentheses.", {
            expression: "For example (3 + 4) * 2"
          }),
          spec("lookup", "Look up a fact by its key.", { key: "For example temperature in riyadh" }),
          spec("write_artifact", "Write a text file.", { name: "File name", content: "Full text of the file" }),
          spec("clarify", "Ask the user for missing information.", { question: "The question" })
        ])
      )
    })
  )

  it.effect("declare what they do to the world", () =>
    Effect.gen(function* () {
      const { tools } = yield* registry
      for (const { contract, name } of tools) {
        assert.strictEqual(
          contract.risk,
          ["write_artifact", "image_fixture"].includes(name) ? "local-write" : "read",
          name
        )
        assert.strictEqual(
          contract.ledger,
          ["write_artifact", "image_fixture"].includes(name) ? "atomic" : "none",
          name
        )
        assert.strictEqual(contract.asksUser, name === "clarify", name)
      }
    })
  )

  it.effect("say what they touch, in a form that permissions can be compared with", () =>
    Effect.gen(function* () {
      const tools = yield* registry
      const touched = (name: string, args: JsonObject) => {
        const { arguments: checked, tool } = admitted(tools, name, args, { settings: { fixtures: {} } })
        return tool.terms.touches(checked)
      }
      assert.deepStrictEqual(touched("read_text_file", { path: "docs/a.md" }), [
        { verb: "read", resource: "workspace:docs/a.md" }
      ])
      for (const [name, args] of [
        ["list_files", {}],
        ["search_text", { query: "a" }]
      ] as const) {
        assert.deepStrictEqual(touched(name, args), [{ verb: "read", resource: "workspace:**" }], name)
      }
      assert.deepStrictEqual(touched("lookup", { key: " price " }), [{ verb: "read", resource: "fact:price" }])
      const content = { name: "a.md", content: "x" }
      assert.deepStrictEqual(touched("write_artifact", content), [{ verb: "write", resource: "artifact:a.md" }])
      assert.deepStrictEqual(touched("calculate", { expression: "1" }), [])
      for (const { contract, name } of tools.tools) assert.include(contract.functions, "touches", name)
    })
  )

  it.effect(
    "write_artifact and image_fixture show what they would write, and are held to what they were asked for",
    () =>
      Effect.gen(function* () {
        const tools = yield* registry
        const settings = { fixtures: {} }
        const termsOf = (name: string, args: JsonObject) => {
          const { arguments: checked, tool } = admitted(tools, name, args, { settings })
          return {
            preview: looking(tool.terms.preview!(checked), settings),
            post: (said: JsonObject) =>
              Effect.map(looking(tool.terms.post!(checked, said), settings), ({ _tag }) => _tag)
          }
        }
        const text = `${Array.from({ length: 42 }, (_, at) => `line ${at}`).join("\n")}\n`
        const file = termsOf("write_artifact", { name: "a.md", content: text })
        const lines = (yield* file.preview).split("\n")
        assert.deepStrictEqual(
          [lines[0], lines[1], lines[40], lines[41], lines.length],
          [`new file a.md, ${text.length} bytes`, "+ line 0", "+ line 39", "… (2 more lines)", 42]
        )
        const wide = yield* termsOf("write_artifact", { name: "a.md", content: "\u{1d11e}".repeat(1000) }).preview
        assert.isTrue(wide.isWellFormed())
        assert.include(wide, "… (1600 more characters)")
        assert.strictEqual(yield* file.post({ name: "a.md", bytes: text.length }), "Holds")
        assert.strictEqual(yield* file.post({ name: "b.md", bytes: text.length }), "Broken")
        assert.strictEqual(yield* file.post({ name: "a.md", bytes: 1 }), "Broken")
        const image = termsOf("image_fixture", { name: "a.png", seed: 7 })
        assert.match(yield* image.preview, /^new file a\.png, \d+ bytes\n\+ a PNG of 8 × 8 pixels from seed 7$/)
        const said = yield* call("image_fixture", { name: "a.png", seed: 7 })
        assert.strictEqual(yield* image.post((said as { readonly result: JsonObject }).result), "Holds")
      })
  )

  it.effect("calculate answers with a number, and says whether the expression or its value is at fault", () =>
    Effect.gen(function* () {
      assert.deepInclude(yield* call("calculate", { expression: "17.5*240/100" }), { _tag: "Succeeded", result: 42 })
      assert.deepInclude(yield* call("calculate", { expression: "1+" }), { kind: "invalid_arguments", effect: "none" })
      assert.deepInclude(yield* call("calculate", { expression: "1/0" }), {
        kind: "execution_failed",
        errors: [{ path: "expression", reason: "division by zero at character 2" }]
      })
    })
  )

  it.effect("lookup compares trimmed keys exactly and lists at most twenty where it finds none", () =>
    Effect.gen(function* () {
      const facts = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`key ${index}`, `value ${index}`]))
      assert.deepInclude(yield* call("lookup", { key: "  key 3 " }, undefined, facts), { result: "value 3" })
      const missing = yield* call("lookup", { key: "Key 3" }, undefined, facts)
      assert.isTrue(missing._tag === "Failed" && missing.kind === "not_found")
      assert.match(
        missing._tag === "Failed" ? missing.errors[0]!.reason : "",
        /known keys: key 0, .*key 19, … \(30 in all\)$/
      )
      assert.deepInclude(yield* call("lookup", { key: "toString" }, undefined, facts), { kind: "not_found" })
    })
  )

  it.effect("list_files, read_text_file and search_text see the workspace and nothing else", () =>
    Effect.gen(function* () {
      const root = yield* workspace
      assert.deepInclude(yield* call("list_files", {}, root), { result: ["binary.bin", "docs/plan.txt", "notes.md"] })
      assert.deepInclude(yield* call("read_text_file", { path: "docs/plan.txt" }, root), { result: "line of a plan" })
      assert.deepInclude(yield* call("read_text_file", { path: "note.md" }, root), {
        kind: "not_found",
        errors: [{ path: "path", reason: `cannot read "note.md": there is no such file; did you mean notes.md?` }]
      })
      assert.deepInclude(yield* call("read_text_file", { path: "binary.bin" }, root), { kind: "execution_failed" })
      assert.deepInclude(yield* call("search_text", { query: "line" }, root), {
        result: [
          { path: "docs/plan.txt", line: 1, text: "line of a plan" },
          { path: "notes.md", line: 1, text: "One line" },
          { path: "notes.md", line: 2, text: "Two Lines" }
        ]
      })
      assert.deepInclude(yield* call("search_text", { query: "(x*)" }, root), {
        result: [{ path: "notes.md", line: 3, text: "three (x*)" }]
      })
      assert.deepInclude(yield* call("search_text", { query: "Line" }, root), {
        result: [{ path: "notes.md", line: 2, text: "Two Lines" }]
      })
      assert.deepInclude(yield* call("search_text", { query: " " }, root), { kind: "invalid_arguments" })
      for (const [name, args] of [
        ["list_files", {}],
        ["search_text", { query: "x" }],
        ["read_text_file", { path: "x" }]
      ] as const) {
        assert.deepInclude(yield* call(name, args), { kind: "refused" }, name)
      }
    })
  )

  it.effect("search_text returns at most fifty lines", () =>
    Effect.gen(function* () {
      const root = yield* workspace
      fs.writeFileSync(join(root, "many"), "hit\n".repeat(500))
      const outcome = yield* call("search_text", { query: "hit" }, root)
      assert.strictEqual(outcome._tag === "Succeeded" ? (outcome.result as ReadonlyArray<unknown>).length : 0, 50)
    })
  )

  it.effect("write_artifact hands bytes over under a safe name", () =>
    Effect.gen(function* () {
      const outcome = yield* call("write_artifact", { name: "report.md", content: "# Été\n" })
      assert.deepInclude(outcome, { _tag: "Succeeded", result: { name: "report.md", bytes: 8 } })
      const artifacts = outcome._tag === "Succeeded" ? outcome.artifacts : []
      assert.deepStrictEqual(
        artifacts.map(({ mediaType, name }) => [name, mediaType]),
        [["report.md", "text/markdown"]]
      )
      assert.strictEqual(new TextDecoder().decode(artifacts[0]!.bytes), "# Été\n")
      for (const name of ["../x", "a/b", "", ".", "..", ".hidden", "a\0b", "é.md", "x".repeat(129), "a b"]) {
        assert.deepInclude(
          yield* call("write_artifact", { name, content: "x" }),
          { kind: "invalid_arguments", effect: "none" },
          name
        )
      }
      assert.deepInclude(yield* call("write_artifact", { name: "x".repeat(128), content: "x" }), { _tag: "Succeeded" })
      assert.deepInclude(yield* call("write_artifact", { name: "a.md", content: "" }), { kind: "invalid_arguments" })
    })
  )

  it.effect("image_fixture publishes a real PNG whose pixels depend on the seed alone", () =>
    Effect.gen(function* () {
      const bytesOf = Effect.fnUntraced(function* (seed?: number) {
        const outcome = yield* call("image_fixture", { name: "a.png", ...(seed === undefined ? {} : { seed }) })
        assert.strictEqual(outcome._tag, "Succeeded")
        const [artifact] = outcome._tag === "Succeeded" ? outcome.artifacts : []
        assert.strictEqual(artifact?.mediaType, "image/png")
        return Buffer.from(artifact!.bytes)
      })
      const first = yield* bytesOf()
      assert.deepStrictEqual(first, yield* bytesOf(0))
      assert.notDeepEqual(first, yield* bytesOf(7))
      assert.strictEqual(first.subarray(1, 4).toString(), "PNG")
      assert.deepStrictEqual([first.readUInt32BE(16), first.readUInt32BE(20)], [8, 8])
      const length = first.readUInt32BE(33)
      // A row is its filter byte and eight pixels of three bytes.
      assert.strictEqual(inflateSync(first.subarray(41, 41 + length)).length, 8 * 25)
      assert.strictEqual(first.readUInt32BE(41 + length), crc32(first.subarray(37, 41 + length)))
    })
  )

  it.effect("image_fixture refuses a name that is not a PNG's", () =>
    Effect.gen(function* () {
      for (const name of ["a.jpg", "png", "../a.png", ".png"]) {
        assert.deepInclude(yield* call("image_fixture", { name }), { kind: "invalid_arguments" })
      }
    })
  )

  it.effect("clarify cannot be executed, echo echoes, fail fails", () =>
    Effect.gen(function* () {
      assert.deepInclude(yield* call("clarify", { question: "Which?" }), { kind: "crashed" })
      assert.deepInclude(yield* call("echo", { text: "{}" }), { result: "{}" })
      assert.deepInclude(yield* call("fail", { message: "no" }), {
        kind: "execution_failed",
        errors: [{ path: "", reason: "no" }]
      })
    })
  )

  it.effect("slow waits as long as it was told, ten minutes at most", () =>
    Effect.gen(function* () {
      const waiting = yield* Effect.forkChild(call("slow", { milliseconds: 5000 }), { startImmediately: true })
      yield* TestClock.adjust(4999)
      assert.isUndefined(waiting.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.deepInclude(yield* Fiber.join(waiting), { result: "waited 5000 ms", millis: 5000 })
      const { tools } = yield* registry
      const slow = tools.find(({ name }) => name === "slow")!
      for (const milliseconds of [-1, 600_001, 0.5]) assert.strictEqual(slow.check({ milliseconds })._tag, "Failure")
    })
  )
})
