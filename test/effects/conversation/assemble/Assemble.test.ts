import { existsSync, mkdirSync, readdirSync, symlinkSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { assemble, plan, type Wanted } from "../../../../src/effects/conversation/assemble/Assemble.ts"
import * as ConversationFile from "../../../../src/effects/conversation/ConversationFile.ts"
import { type Files, project, put, tree } from "../../../kit/projects.ts"

const wanted = (root: string, more: Partial<Wanted> = {}): Wanted => ({
  project: root,
  name: "a",
  cases: [],
  variables: [],
  ...more
})

const tool = (name: string, more: object = {}): string =>
  JSON.stringify({
    name,
    description: `Does ${name}.`,
    input_schema: { type: "object", properties: { q: { type: "string" } } },
    ...more
  })

const turns = "conversation:\n  - { role: user, path: prompts/ask.md }\n  - { role: assistant }\n"

const prompts = { "prompts/ask.md": "What?" }

/** A project with one assembly `a` of these lines, and a prompt. */
const withAssembly = (lines: string, files: Files = {}) => project({ "assemblies/a.yaml": lines, ...prompts, ...files })

/** What is said of a project that cannot be assembled; nothing may be left of the attempt. */
const refusal = Effect.fnUntraced(function* (root: string, more: Partial<Wanted> = {}) {
  const { message } = yield* Effect.flip(assemble(wanted(root, more)))
  assert.isFalse(existsSync(join(root, "runs")))
  return message.replaceAll(root, "ROOT").replaceAll(dirname(root), "ABOVE")
})

const sessions = (root: string, more: Partial<Wanted> = {}) =>
  Effect.map(plan(wanted(root, more)), (all) => all.map(({ conversation }) => conversation))

describe("a project", () => {
  it.live("with assemblies and prompts alone is enough", () =>
    Effect.gen(function* () {
      const root = yield* withAssembly(`name: a\nmodel: noop\n${turns}`)
      const made = yield* assemble(wanted(root))
      assert.match(made.runId, /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ-[0-9a-f]{6}-a$/)
      assert.strictEqual(made.directory, join(root, "runs", made.runId))
      assert.deepStrictEqual(tree(made.directory), {
        "default.yaml": "---\nmodel: noop\nassembly: a\n---\nrole: user\ncontent: What?\n---\nrole: assistant\n"
      })
      assert.deepStrictEqual(Object.keys(tree(root)).sort(), [
        "assemblies/a.yaml",
        "prompts/ask.md",
        "runs/.gitignore",
        `runs/${made.runId}/default.yaml`
      ])
    })
  )

  it.live("keeps its generated folder out of version control, and leaves one alone that is there", () =>
    Effect.gen(function* () {
      const root = yield* withAssembly(`model: noop\n${turns}`)
      yield* assemble(wanted(root))
      assert.strictEqual(tree(root)["runs/.gitignore"], "*\n")
      const other = yield* withAssembly(`model: noop\n${turns}`)
      mkdirSync(join(other, "runs"))
      yield* assemble(wanted(other))
      assert.notProperty(tree(other), "runs/.gitignore")
    })
  )

  it.live("assembled twice gives two directories with the same bytes", () =>
    Effect.gen(function* () {
      const root = yield* withAssembly(`model: noop\nmatrix: { tone: [dry, warm], case: [x, y] }\n${turns}`)
      const [one, two] = [yield* assemble(wanted(root)), yield* assemble(wanted(root))]
      assert.notStrictEqual(one.runId, two.runId)
      assert.deepStrictEqual(tree(one.directory), tree(two.directory))
      assert.deepStrictEqual(readdirSync(one.directory), ["x-dry.yaml", "x-warm.yaml", "y-dry.yaml", "y-warm.yaml"])
    })
  )

  it.live("is found by a name without a directory in it, and other names are answered with those there are", () =>
    Effect.gen(function* () {
      const root = yield* withAssembly(`model: noop\n${turns}`, { "assemblies/research.yml": `model: noop\n${turns}` })
      assert.strictEqual((yield* plan(wanted(root, { name: "research" }))).length, 1)
      assert.strictEqual(
        yield* refusal(root, { name: "reserch" }),
        "there is no assembly reserch: did you mean research?"
      )
      assert.strictEqual(
        yield* refusal(root, { name: "zzzzzzzz" }),
        "there is no assembly zzzzzzzz: there are a, research"
      )
      assert.strictEqual(
        yield* refusal(root, { name: "../assemblies/a" }),
        "there is no assembly ../assemblies/a: did you mean a?"
      )
      assert.match(
        yield* refusal(join(root, "none")),
        /ROOT: there is no such directory: name the project with --project/
      )
      assert.match(yield* refusal(join(root, "prompts")), /assemblies: there is no such directory/)
    })
  )
})

describe("turns", () => {
  const cases: Record<string, readonly [string, RegExp]> = {
    "a user without path": [
      "conversation:\n  - role: user\n",
      /conversation\[0\] \(line 3\): a user turn needs a path/
    ],
    "an assistant with path": [
      "conversation:\n  - { role: user, path: prompts/ask.md }\n  - { role: assistant, path: x }\n",
      /conversation\[1\]\.path \(line 4\): an assistant turn has no path/
    ],
    "role tool": [
      "conversation:\n  - role: tool\n",
      /conversation\[0\]\.role \(line 3\): a template has turns with role user and assistant, not "tool": a run writes those/
    ],
    "role system": ["conversation:\n  - role: system\n", /not "system": put the text into the prefix/],
    "an unknown key": [
      "conversation:\n  - { role: user, paht: x }\n",
      /conversation\[0\]\.paht \(line 3\): unknown key; did you mean path\?/
    ],
    "no turns": ["prefix: []\n", /conversation is missing/],
    "an unknown field": [`matrx: {}\n${turns}`, /matrx \(line 2\): unknown key; did you mean matrix\?/],
    "a name that is not the file's": [`name: b\n${turns}`, /name \(line 2\): b is not what the file is called \(a\)/],
    "two documents": [`${turns}---\nmodel: x\n`, /line 5: an assembly is one document/]
  }
  for (const [name, [lines, reason]] of Object.entries(cases)) {
    it.live(`are refused by place: ${name}`, () =>
      Effect.gen(function* () {
        const root = yield* withAssembly(`model: noop\n${lines}`)
        assert.match(yield* refusal(root), reason)
        assert.match(yield* refusal(root), /^ROOT\/assemblies\/a\.yaml: /)
      })
    )
  }

  it.live("need a model from somewhere", () =>
    Effect.gen(function* () {
      assert.match(yield* refusal(yield* withAssembly(turns)), /a\.yaml: \(line 1\): model is missing/)
    })
  )
})

describe("a prefix", () => {
  const files: Files = {
    "AGENTS.md": "Never included by itself.\n",
    "context/system/b.md": "b {{ x }} {% %}\n",
    "context/system/a.md": "\ufeffa\r\n",
    "context/system/.c.md": "hidden",
    "context/system/d.txt": "other ending",
    "context/examples/2.md": "two",
    "context/examples/10.md": "ten",
    "context/knowledge/1.txt": "k1",
    "context/knowledge/2.txt": "k2",
    "context/knowledge/3.txt": "k3",
    "context/tools/z.json": tool("first"),
    "context/tools/y.json": tool("second"),
    "notes.md": "a note"
  }

  it.live("has one system message for each block that is text, in order, and the tools in the meta", () =>
    Effect.gen(function* () {
      const root = yield* withAssembly(
        `model: noop
prefix:
  - { kind: file, path: notes.md, cache: true }
  - { kind: tools, path: context/tools/*.json }
  - { kind: system, path: "context/system/*.md" }
  - { kind: examples, path: context/examples/*, cache: true }
  - { kind: context, source: context/knowledge, glob: "*.txt", count: 2 }
  - { kind: external, path: ../policy.md, cache: false }
${turns}`,
        files
      )
      put(dirname(root), { "policy.md": "Be fair.\n" })
      const [conversation] = yield* sessions(root)
      assert.deepStrictEqual(conversation!.session, [
        { role: "system", content: "a note", cache: true },
        { role: "system", content: "\ufeffa\r\n\nb {{ x }} {% %}\n" },
        { role: "system", content: "ten\ntwo", cache: true },
        { role: "system", content: "k1\nk2" },
        { role: "system", content: "Be fair.\n" },
        { role: "user", content: "What?" },
        { role: "assistant" }
      ])
      assert.deepStrictEqual(
        conversation!.meta.tools?.map(({ name }) => name),
        ["second", "first"]
      )
      const made = yield* assemble(wanted(root))
      assert.deepStrictEqual(yield* ConversationFile.load(made.files[0]!.file), conversation)
    })
  )

  it.live("includes all of a context where nothing else is said", () =>
    Effect.gen(function* () {
      const root = yield* withAssembly(
        `model: noop\nprefix:\n  - { kind: context, source: context/knowledge/ }\n${turns}`,
        files
      )
      assert.strictEqual((yield* sessions(root))[0]!.session[0]!.content, "k1\nk2\nk3")
    })
  )

  const cases: Record<string, readonly [string, RegExp]> = {
    "an unknown kind": [
      "{ kind: systm, path: x }",
      /prefix\[0\]\.kind \(line 3\): unknown kind "systm": there are file, system, examples, context, external, tools; did you mean system\?/
    ],
    "no kind": ["{ path: x }", /prefix\[0\] \(line 3\): kind is missing/],
    "no path": ["{ kind: file }", /prefix\[0\] \(line 3\): path is missing/],
    "a context with a path": ["{ kind: context, path: x }", /prefix\[0\]\.path.*: unknown key/],
    "a context without a source": ["{ kind: context }", /source is missing/],
    "a count of none": [
      "{ kind: context, source: context/knowledge, count: 0 }",
      /count.*: none of the files would be included/
    ],
    "a count that is no number": [
      "{ kind: context, source: context/knowledge, count: -1 }",
      /count.*: expected a whole number of at least 0/
    ],
    "a missing file": [
      "{ kind: file, path: none.md }",
      /a\.yaml: prefix\[0\]\.path \(line 3\): there is no file none\.md \(ROOT\/none\.md\)/
    ],
    "a directory for a file": ["{ kind: file, path: context }", /context \(ROOT\/context\) is not a file/],
    "a missing directory": [
      "{ kind: system, path: context/sytem/*.md }",
      /a\.yaml: prefix\[0\]\.path \(line 3\): there is no directory ROOT\/context\/sytem/
    ],
    "a missing source": [
      "{ kind: context, source: context/none }",
      /prefix\[0\]\.source \(line 3\): there is no directory ROOT\/context\/none/
    ],
    "a pattern that matches nothing": [
      "{ kind: system, path: context/system/*.rst }",
      /context\/system\/\*\.rst matches no file in ROOT\/context\/system/
    ],
    "a pattern over directories": ["{ kind: system, path: context/**/*.md }", /\*\* is not supported/],
    "a * before the last part": ["{ kind: system, path: con*/a.md }", /\* may stand in the last part only/],
    "two * in the last part": ['{ kind: system, path: "context/system/*a*" }', /at most one \* is supported/],
    "a * for one file": ["{ kind: file, path: context/system/*.md }", /this is one file/],
    "a path that leads out": ["{ kind: system, path: ../x.md }", /leads out of the project: use kind: external/],
    "a path that leads out at the end": ["{ kind: file, path: context/../../x.md }", /leads out of the project/],
    "an absolute path": ["{ kind: external, path: /etc/passwd }", /\/etc\/passwd is absolute/],
    "a drive": ["{ kind: external, path: 'C:/x' }", /C:\/x is absolute/],
    "a backslash": ["{ kind: file, path: 'context\\x' }", /write \/ between directories/],
    "a NUL": ['{ kind: file, path: "a\\0b" }', /a path has no NUL in it/],
    "bytes that are no text": ["{ kind: file, path: bytes.bin }", /bytes\.bin \(ROOT\/bytes\.bin\) is not UTF-8 text/],
    "an unknown variable": [
      "{ kind: file, path: 'none/{{ tpoic }}.md' }",
      /prefix\[0\]\.path \(line 3\): "none\/\{\{ tpoic \}\}\.md": unknown variable tpoic: did you mean topic\?/
    ],
    "an open variable": ["{ kind: file, path: 'none/{{ topic' }", /"none\/\{\{ topic": \{\{ without \}\}/]
  }
  for (const [name, [block, reason]] of Object.entries(cases)) {
    it.live(`is refused by place, and nothing is written: ${name}`, () =>
      Effect.gen(function* () {
        const root = yield* withAssembly(`model: noop\nprefix:\n  - ${block}\nmatrix: { topic: [t] }\n${turns}`, {
          ...files,
          "bytes.bin": Uint8Array.of(0xff, 0xfe, 0x00)
        })
        assert.match(yield* refusal(root), reason)
      })
    )
  }

  it.live("says which variable is unknown before it looks at any file", () =>
    Effect.gen(function* () {
      const root = yield* project({
        "assemblies/a.yaml":
          "model: noop\nprefix:\n  - { kind: file, path: missing.md }\nconversation:\n  - { role: user, path: 'missing/{{ x }}.md' }\n"
      })
      assert.match(
        yield* refusal(root),
        /conversation\[0\]\.path \(line 5\): "missing\/\{\{ x \}\}\.md": unknown variable x/
      )
    })
  )

  it.live("follows links inside the project, and none out of it but for an external file", () =>
    Effect.gen(function* () {
      const outside = yield* project({ "secret.md": "secret" })
      const of = (block: string) => `model: noop\nprefix:\n  - ${block}\n${turns}`
      const linked = (block: string) =>
        Effect.tap(withAssembly(of(block), { "context/system/a.md": "a" }), (root) =>
          Effect.sync(() => {
            symlinkSync("a.md", join(root, "context/system/b.md"))
            symlinkSync(join(outside, "secret.md"), join(root, "context/secret.md"))
            symlinkSync(outside, join(root, "elsewhere"))
          })
        )
      const inside = yield* sessions(yield* linked("{ kind: system, path: context/system/*.md }"))
      assert.strictEqual(inside[0]!.session[0]!.content, "a\na")
      for (const block of [
        "{ kind: file, path: context/secret.md }",
        "{ kind: system, path: context/*.md }",
        "{ kind: context, source: elsewhere }",
        "{ kind: tools, path: elsewhere/secret.md }"
      ]) {
        assert.match(yield* refusal(yield* linked(block)), /secret\.md leads out of the project, by a link/)
      }
      const external = yield* sessions(yield* linked("{ kind: external, path: context/secret.md }"))
      assert.strictEqual(external[0]!.session[0]!.content, "secret")
    })
  )

  it.live("waits for no pipe and reads no device", () =>
    Effect.gen(function* () {
      const root = yield* withAssembly(`model: noop\nprefix:\n  - { kind: system, path: context/system/* }\n${turns}`, {
        "context/system/a.md": "a"
      })
      symlinkSync("/dev/zero", join(root, "context/system/zero"))
      assert.strictEqual((yield* sessions(root))[0]!.session[0]!.content, "a")
    })
  )
})

describe("tools of a project", () => {
  const lines = `model: noop\nprefix:\n  - { kind: tools, path: context/tools/*.json }\n${turns}`

  it.live("are in the file as they are in theirs", () =>
    Effect.gen(function* () {
      const schema = {
        type: "object",
        $defs: {
          place: { type: "object", properties: { city: { type: "string", description: "With a\nsecond line." } } }
        },
        properties: {
          from: { $ref: "#/$defs/place" },
          n: { type: "integer", minimum: 0, maximum: 9007199254740991, default: 5 }
        },
        required: ["from"],
        additionalProperties: false
      }
      const root = yield* withAssembly(lines, { "context/tools/go.json": tool("go", { input_schema: schema }) })
      const made = yield* assemble(wanted(root))
      const { meta } = yield* ConversationFile.load(made.files[0]!.file)
      assert.deepStrictEqual(meta.tools, [{ name: "go", description: "Does go.", input_schema: schema }])
    })
  )

  const cases: Record<string, readonly [Files, RegExp]> = {
    "no JSON": [
      { "context/tools/a.json": '{\n  "name": }' },
      /^context\/tools\/a\.json: line 2, column 11: it is not JSON that can be used: expected a value/
    ],
    "a key twice": [{ "context/tools/a.json": '{"name":"a","name":"b"}' }, /duplicate key "name"/],
    "a name twice": [
      { "context/tools/a.json": tool("go"), "context/tools/b.json": tool("go") },
      /^context\/tools\/b\.json: name: go: context\/tools\/a\.json has a tool of this name, too/
    ],
    "a bad name": [
      { "context/tools/a.json": tool("go away") },
      /^context\/tools\/a\.json: name: "go away": a tool's name is 1 to 64 of/
    ],
    "an unknown key": [
      { "context/tools/a.json": tool("go", { parameters: {} }) },
      /^context\/tools\/a\.json: parameters: unknown key/
    ],
    "a list": [{ "context/tools/a.json": "[]" }, /^context\/tools\/a\.json: expected a map, found a list/],
    "no schema of an object": [
      { "context/tools/a.json": tool("go", { input_schema: { type: "string" } }) },
      /input_schema: the arguments of a tool are an object/
    ],
    "a reference that leads out": [
      {
        "context/tools/a.json": tool("go", {
          input_schema: { type: "object", properties: { a: { $ref: "https://x.test/s" } } }
        })
      },
      /^context\/tools\/a\.json: input_schema: it is refused: it refers to https:\/\/x\.test\/s/
    ],
    "a schema that is none": [
      {
        "context/tools/a.json": tool("go", {
          input_schema: { type: "object", properties: { a: { type: "nonsense" } } }
        })
      },
      /^context\/tools\/a\.json: input_schema: it is refused: /
    ]
  }
  for (const [name, [files, reason]] of Object.entries(cases)) {
    it.live(`are refused by file, and no run is left: ${name}`, () =>
      Effect.gen(function* () {
        assert.match(yield* refusal(yield* withAssembly(lines, files)), reason)
      })
    )
  }

  it.live("are refused when two blocks include one file", () =>
    Effect.gen(function* () {
      const both = lines.replace("conversation", "  - { kind: tools, path: context/tools/go.json }\nconversation")
      const root = yield* withAssembly(both, { "context/tools/go.json": tool("go") })
      assert.match(yield* refusal(root), /^context\/tools\/go\.json: name: go: the file is included twice/)
    })
  )

  it.live("may be large", () =>
    Effect.gen(function* () {
      const properties = Object.fromEntries(
        Array.from({ length: 2000 }, (_, n) => [`p${n}`, { type: "string", description: "x".repeat(200) }])
      )
      const root = yield* withAssembly(lines, {
        "context/tools/big.json": tool("big", { input_schema: { type: "object", properties } })
      })
      const made = yield* assemble(wanted(root))
      const { meta } = yield* ConversationFile.load(made.files[0]!.file)
      assert.deepStrictEqual(meta.tools![0]!.input_schema["properties"], properties)
    })
  )
})

describe("a run's directory", () => {
  it.live("is there whole or not at all: nothing is left when it cannot be written", () =>
    Effect.gen(function* () {
      const root = yield* withAssembly(`model: noop\n${turns}`, { runs: "a file where the directory should be" })
      const { message } = yield* Effect.flip(assemble(wanted(root)))
      assert.match(message, /runs: it cannot be written: /)
      assert.deepStrictEqual(Object.keys(tree(root)).sort(), ["assemblies/a.yaml", "prompts/ask.md", "runs"])
    })
  )

  it.live("is called after the assembly, and each conversation after its binding", () =>
    Effect.gen(function* () {
      const root = yield* withAssembly(`model: noop\nmatrix: { b: [x, 012], a: [1.0, yes] }\n${turns}`)
      const made = yield* assemble(wanted(root))
      assert.strictEqual(basename(made.directory), made.runId)
      assert.deepStrictEqual(
        made.files.map(({ composed, name }) => [name, composed.conversation.meta.binding]),
        [
          ["1.0-x", { a: "1.0", b: "x" }],
          ["1.0-012", { a: "1.0", b: "012" }],
          ["yes-x", { a: "yes", b: "x" }],
          ["yes-012", { a: "yes", b: "012" }]
        ]
      )
    })
  )
})
