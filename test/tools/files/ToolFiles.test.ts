import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { problemText } from "../../../src/tools/files/ToolFileForm.ts"
import { looking } from "../../../src/tools/Terms.ts"
import { directoryOf, opened, reads, scripted } from "../../kit/toolFiles.ts"

/** All problems of a directory, without its own path. */
const problemsOf = Effect.fnUntraced(function* (files: Readonly<Record<string, unknown>>) {
  const directory = yield* directoryOf(files)
  const { problems } = yield* opened(directory)
  return problems.map((problem) => problemText(problem).replaceAll(`${directory}/`, ""))
})

describe("a directory of tools", () => {
  it.effect("gives its tools by name, with their schemas as they are", () =>
    Effect.gen(function* () {
      const directory = yield* directoryOf({
        "b.tool.json": scripted("", reads),
        "a.tool.json": scripted("", { ...reads, name: "other_name" }),
        "notes.md": "not a tool",
        ".hidden.tool.json": "not a tool either"
      })
      const { problems, registry } = yield* opened(directory)
      assert.deepStrictEqual(problems, [])
      assert.deepStrictEqual(
        registry.tools.map(({ name }) => name),
        ["other_name", "b"]
      )
      assert.deepStrictEqual(registry.specs[1]?.parameters, scripted("").parameters)
    })
  )

  it.effect("waits for no pipe and reads no device, whatever they are called", () =>
    Effect.gen(function* () {
      if (process.platform === "win32") return
      const directory = yield* directoryOf({ "good.tool.json": scripted("", reads), "beside.tool.json": scripted("") })
      execFileSync("mkfifo", [join(directory, "pipe.tool.json"), join(directory, "beside.contract.json")])
      fs.symlinkSync("/dev/zero", join(directory, "zeros.tool.json"))
      fs.mkdirSync(join(directory, "directory.tool.json"))
      const { problems, registry } = yield* opened(directory)
      assert.deepStrictEqual(
        registry.tools.map(({ name }) => name),
        ["good"]
      )
      assert.deepStrictEqual(
        problems.map((problem) => problemText(problem).replaceAll(`${directory}/`, "")),
        [
          "beside.contract.json: it is no regular file",
          "directory.tool.json: it is no regular file",
          "pipe.tool.json: it is no regular file",
          "zeros.tool.json: it is no regular file"
        ]
      )
    })
  )

  it.effect("takes what a contract does not say for the worst", () =>
    Effect.gen(function* () {
      const directory = yield* directoryOf({ "a.tool.json": scripted("", { timeoutMillis: 1500 }) })
      const { registry } = yield* opened(directory)
      assert.deepInclude(registry.get("a")!.contract, {
        risk: "external",
        ledger: "none",
        retry: "never",
        reversible: false,
        stated: false,
        deadlineMillis: 1500
      })
    })
  )

  it.effect("takes a contract from the file or from beside it, touches by template", () =>
    Effect.gen(function* () {
      const contract = {
        risk: "local-write",
        ledger: "external",
        retry: "safe",
        reversible: true,
        evidence: { source: "sensor", describes: "the file in the workspace" },
        post: "result",
        touches: [{ verb: "write", resource: "workspace:{text}" }],
        cost: 2
      }
      const directory = yield* directoryOf({
        "in.tool.json": scripted("", { contract }),
        "beside.tool.json": scripted(""),
        "beside.contract.json": contract
      })
      const { problems, registry } = yield* opened(directory)
      assert.deepStrictEqual(problems, [])
      for (const name of ["in", "beside"]) {
        const tool = registry.get(name)!
        const checked = tool.check({ text: "a.md" })
        assert.isTrue(checked._tag === "Success")
        if (checked._tag !== "Success") continue
        assert.deepStrictEqual(tool.terms.touches(checked.success), [{ verb: "write", resource: "workspace:a.md" }])
        assert.strictEqual(tool.terms.cost(checked.success), 2)
        assert.deepInclude(tool.contract, { risk: "local-write", ledger: "external", retry: "safe", stated: true })
      }
    })
  )

  it.effect("does not begin a call whose touches lead out of the workspace", () =>
    Effect.gen(function* () {
      const contract = { risk: "read", touches: [{ verb: "read", resource: "workspace:{text}" }] }
      const directory = yield* directoryOf({ "a.tool.json": scripted("", { contract }) })
      const workspace = yield* directoryOf({ "notes.md": "x" })
      fs.mkdirSync(join(workspace, "sub"))
      fs.symlinkSync("..", join(workspace, "up"))
      const { registry } = yield* opened(directory)
      const tool = registry.get("a")!
      const unmet = Effect.fnUntraced(function* (
        text: string,
        settings: { readonly workspace?: string } = { workspace }
      ) {
        const args = Result.getOrThrow(tool.check({ text }))
        const found = yield* looking(tool.terms.pre!(args), { fixtures: {}, ...settings })
        return found.map(({ reason }) => reason).join()
      })
      for (const inside of ["notes.md", "new.md", "sub", "sub/", ".", "sub/deep/new.md", "*.md"]) {
        assert.strictEqual(yield* unmet(inside), "", inside)
      }
      const outside: ReadonlyArray<readonly [string, RegExp]> = [
        ["../x", /must not contain \.\./],
        ["/etc/passwd", /must be relative/],
        ["/", /must be relative/],
        ["up", /symbolic link/],
        ["up/x", /symbolic link/],
        ["notes.md/x", /not a directory/],
        ["", /^$/]
      ]
      for (const [path, reason] of outside) assert.match(yield* unmet(path), reason, path)
      assert.match(yield* unmet("notes.md", {}), /this run has no workspace/)
    })
  )

  it.effect("does not begin a call whose argument is absolute where its contract puts it into a directory", () =>
    Effect.gen(function* () {
      const contract = { risk: "read", touches: [{ verb: "read", resource: "workspace:notes/{text}" }] }
      const directory = yield* directoryOf({ "a.tool.json": scripted("", { contract }) })
      const workspace = yield* directoryOf({ "x.md": "x" })
      const tool = (yield* opened(directory)).registry.get("a")!
      const unmet = Effect.fnUntraced(function* (text: string) {
        const found = yield* looking(tool.terms.pre!(Result.getOrThrow(tool.check({ text }))), {
          fixtures: {},
          workspace
        })
        return found.map(({ reason }) => reason).join()
      })
      assert.strictEqual(yield* unmet("a.md"), "")
      assert.strictEqual(yield* unmet("sub/"), "")
      // A program that joins paths as many libraries do forgets the directory before such a one.
      for (const path of ["/etc/passwd", "//etc/passwd", "sub//etc"]) assert.match(yield* unmet(path), /slashes/, path)
    })
  )

  it.effect("is another tool when it starts another program", () =>
    Effect.gen(function* () {
      const hashOf = Effect.fnUntraced(function* (source: string, more: Readonly<Record<string, unknown>>) {
        const directory = yield* directoryOf({ "a.tool.json": scripted(source, more) })
        return (yield* opened(directory)).registry.hash
      })
      assert.strictEqual(yield* hashOf("1", reads), yield* hashOf("1", reads))
      assert.notStrictEqual(yield* hashOf("1", reads), yield* hashOf("2", reads))
      assert.notStrictEqual(yield* hashOf("1", reads), yield* hashOf("1", { ...reads, env: ["HOME"] }))
      assert.notStrictEqual(yield* hashOf("1", reads), yield* hashOf("1", {}))
    })
  )

  it.effect("says all that is wrong in a file at once, with place and remedy", () =>
    Effect.gen(function* () {
      const said = yield* problemsOf({
        "a.tool.json": {
          name: "a tool",
          description: " ",
          inputSchema: {},
          comand: ["x"],
          env: ["A=1", "WRIT_IDEMPOTENCY_KEY", 3],
          timeoutMillis: 0.5,
          cwd: "home",
          output: "xml",
          maxOutputBytes: 1e9
        }
      })
      assert.deepStrictEqual(said, [
        'a.tool.json: inputSchema: there is no such key; did you mean "parameters"?',
        'a.tool.json: comand: there is no such key; did you mean "command"?',
        'a.tool.json: name: "a tool" is not the name of a tool: 1 to 64 letters, digits, underscores or hyphens',
        "a.tool.json: description: it is empty: one sentence that tells the model what it does",
        'a.tool.json: parameters: it is missing: the JSON Schema of its arguments, {"type":"object"} for none',
        'a.tool.json: it does not say what to start: give "command" (a program and its arguments as a list) or "module" (a file)',
        "a.tool.json: env[2]: expected a text, got a number",
        'a.tool.json: env[0]: "A=1" is not the name of a variable: names only, values come from the environment',
        "a.tool.json: env[1]: WRIT_IDEMPOTENCY_KEY is set by the runtime",
        "a.tool.json: timeoutMillis: expected a whole number from 1 to 86400000, got 0.5",
        'a.tool.json: cwd: expected "tool" or "workspace", got "home"',
        'a.tool.json: output: expected "json" or "text", got "xml"',
        "a.tool.json: maxOutputBytes: expected a whole number from 1 to 8388608, got 1000000000"
      ])
    })
  )

  it.effect("says what is wrong in every file, in contracts too, and keeps the tools that are in order", () =>
    Effect.gen(function* () {
      const files = {
        "broken.tool.json": '{\n  "description": "x",\n  "description": "y"\n}',
        "list.tool.json": [],
        "foreign.tool.json": scripted("", { parameters: { type: "dict" }, ...reads }),
        "gone.tool.json": scripted("", { command: ["./gone.sh", "x"] }),
        "shell.tool.json": scripted("", { command: ["cat notes.md | wc"] }),
        "module.tool.json": scripted("", { command: undefined, module: "gone.mjs" }),
        "both.tool.json": scripted("", { module: "a.mjs" }),
        "half.tool.json": scripted("", { contract: { risk: "local-write", ledger: "external" } }),
        "word.tool.json": scripted(""),
        "word.contract.json": { risk: "writes", tuches: [], touches: [{ verb: "read", resource: "workspace:{path}" }] },
        "template.tool.json": scripted("", {
          contract: { risk: "read", touches: [{ verb: "read", resource: "workspace:{path}" }] }
        }),
        "two.tool.json": scripted("", reads),
        "two.contract.json": { risk: "read" },
        "orphan.contract.json": { risk: "read" },
        "schema.tool.json": scripted("", { ...reads, outputSchema: { $ref: "http://a.test/x" } }),
        "good.tool.json": scripted("", reads)
      }
      const directory = yield* directoryOf(files)
      const { problems, registry } = yield* opened(directory)
      assert.deepStrictEqual(
        registry.tools.map(({ name }) => name),
        ["good"]
      )
      const said = new Set(problems.map((problem) => problemText(problem).replaceAll(`${directory}/`, "")))
      const expected = [
        /^broken\.tool\.json: line 3: .*description/,
        /^list\.tool\.json: expected an object, got an array$/,
        /^foreign\.tool\.json: parameters: its schema is refused: .*"dict": write "object"$/,
        /^gone\.tool\.json: command\[0\]: there is no program "\.\/gone\.sh" that can be run; it is looked for beside this file$/,
        /^shell\.tool\.json: command\[0\]: .*no shell is used: write each argument as a text of its own$/,
        /^module\.tool\.json: module: there is no file "gone\.mjs"/,
        /^both\.tool\.json: module: give "command" or "module", not both$/,
        /^half\.tool\.json: contract: its contract says risk "local-write" and lacks retry, reversible, evidence, post$/,
        /^word\.contract\.json: risk: expected "read" or "local-write" or "external"/,
        /^word\.contract\.json: tuches: .*did you mean "touches"\?$/,
        /^template\.tool\.json: contract\.touches\[0\]\.resource: the tool has no parameter "path"; .*text/,
        /^two\.tool\.json: contract: there is two\.contract\.json beside it as well/,
        /^orphan\.contract\.json: there is no orphan\.tool\.json beside it$/,
        /^schema\.tool\.json: outputSchema: it refers to http:\/\/a\.test\/x/
      ]
      for (const one of expected)
        assert.isTrue(
          [...said].some((text) => one.test(text)),
          `${one}\n${[...said].join("\n")}`
        )
      assert.strictEqual(said.size, expected.length, [...said].join("\n"))
    })
  )

  it.effect("is refused where it is none, or has none", () =>
    Effect.gen(function* () {
      const directory = yield* directoryOf({ "notes.md": "x" })
      const said = Effect.fnUntraced(function* (path: string) {
        return (yield* opened(path)).problems.map(({ message }) => message)
      })
      assert.deepStrictEqual(yield* said(directory), ["there is no tool in it: a tool is a file NAME.tool.json"])
      assert.deepStrictEqual(yield* said(join(directory, "gone")), ["there is no such directory"])
      assert.deepStrictEqual(yield* said(join(directory, "notes.md")), ["it is not a directory"])
      fs.writeFileSync(join(directory, "a.tool.json"), " ".repeat(300_000))
      assert.match((yield* said(directory))[0]!, /has 300000 bytes, at most 262144 are read/)
    })
  )

  it.effect("has no tool of a name that two of its files give", () =>
    Effect.gen(function* () {
      const same = scripted("", { ...reads, name: "same" })
      const said = yield* problemsOf({ "a.tool.json": same, "b.tool.json": same })
      assert.deepStrictEqual(said, [
        "a.tool.json: name: b.tool.json has a tool same as well",
        "b.tool.json: name: a.tool.json has a tool same as well"
      ])
    })
  )
})
