/** `writ run` with conversation files: scripts, directories, exit codes, and what a second run does. */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync
} from "node:fs"
import { basename, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ArtifactStore from "../../src/actors/ArtifactStore.ts"
import * as Ids from "../../src/actors/Ids.ts"
import * as ToolPool from "../../src/actors/ToolPool.ts"
import { type Provided, Provisions } from "../../src/cli/Provisions.ts"
import { Output } from "../../src/cli/Screen.ts"
import type { Conversation, Message } from "../../src/effects/conversation/Conversation.ts"
import * as ConversationText from "../../src/effects/conversation/ConversationText.ts"
import { validateFile } from "../../src/effects/trace/TraceValidator.ts"
import * as Wiring from "../../src/effects/Wiring.ts"
import { directory, invoke, unprivileged, writ } from "../kit/cli.ts"
import { addTool, blank, conversation, declared, shape, user } from "../kit/fillings.ts"
import { call } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

const services: Provided["services"] = (options) =>
  Layer.mergeAll(
    Wiring.layerModel(options),
    ToolPool.layerInline(),
    Wiring.layerTrace(options),
    ArtifactStore.layerDirectory((runId) => options.runDirectory!(runId).artifacts),
    Wiring.layerLedger(options),
    Ids.layer
  )

/** The command in this process, with the kit's tools; its records and ledger are in `cwd`. */
const run = Effect.fnUntraced(function* (cwd: string, ...args: ReadonlyArray<string>) {
  const { performed, registry } = yield* TestTools.make()
  let screen = ""
  const places = ["--run-dir", join(cwd, "records"), "--ledger", join(cwd, "ledger.sqlite"), "--workspace", cwd]
  const ran = yield* invoke(["run", ...args, ...places]).pipe(
    Effect.provideService(Provisions, { tools: Effect.succeed(registry), services }),
    Effect.provideService(Output, { isTTY: false, columns: 80, write: (text) => (screen += text) })
  )
  return { ...ran, screen, performed, registry }
})

const write = (path: string, file: Conversation): string => {
  writeFileSync(path, ConversationText.emit(file))
  return path
}

const script = (path: string, fixture: unknown): string => {
  writeFileSync(path, JSON.stringify(fixture))
  return path
}

const read = (path: string): Conversation => {
  const parsed = ConversationText.parse(readFileSync(path, "utf8"), path)
  if (parsed._tag === "Failure") throw parsed.failure
  return parsed.success
}

const task = user("What is 2 plus 3?")
const skeleton = (...more: ReadonlyArray<Message>) => conversation([addTool], task, blank, ...more)
const adds = { blocks: [{ type: "tool_use", name: "add", input: { a: 2, b: 3 } }] }
const answers = { engine: [{ raw: call("add", { a: 2, b: 3 }) }, "It is 5."], tools: { add: ["5"] } }

const filled = ["user", "assistant(add)", "tool(1)", "assistant"]

describe("writ run FILE", () => {
  it.effect(
    "turns a skeleton into the whole conversation with a script and nothing else, raw text through the codec",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const file = write(join(cwd, "a.yaml"), skeleton())
        const { code, performed, screen } = yield* run(cwd, file, "--script", script(join(cwd, "s.yaml"), answers))
        assert.strictEqual(code, 0, screen)
        assert.deepStrictEqual(shape(read(file)), filled)
        assert.deepStrictEqual(performed, [])
        const [record] = readdirSync(join(cwd, "records"))
        assert.match(record ?? "", /^a-[0-9a-f]{12}$/)
        const { complete, violations } = yield* validateFile(join(cwd, "records", record!, "trace.jsonl"))
        assert.deepStrictEqual([complete, violations], [true, []])
      })
  )

  it.effect("says in one document what it came to, or the answer alone", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const fixture = script(join(cwd, "s.yaml"), answers)
      const { code, out } = yield* run(cwd, write(join(cwd, "a.yaml"), skeleton()), "--script", fixture, "--json")
      assert.strictEqual(code, 0)
      const [one] = JSON.parse(out).conversations
      assert.deepInclude(one, { exit_code: 0, status: "completed", text: "It is 5.", turns: 2, tool_calls: 1 })
      const quiet = yield* run(cwd, write(join(cwd, "b.yaml"), skeleton()), "--script", fixture, "--quiet")
      assert.strictEqual(quiet.out, "It is 5.")
    })
  )

  it.effect("fails with 3 when the script has more than the conversation needs, of turns or of results", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const more = [
        { ...answers, engine: [...answers.engine, "and more"] },
        { ...answers, tools: { add: ["5", "6"] } }
      ]
      for (const [at, fixture] of more.entries()) {
        const file = write(join(cwd, `${at}.yaml`), skeleton())
        const { code, screen } = yield* run(cwd, file, "--script", script(join(cwd, "s.yaml"), fixture))
        assert.strictEqual(code, 3, screen)
        assert.include(screen, at === 0 ? "engine: 1 turn not played" : "tools.add: 1 result not used")
      }
    })
  )

  it.effect("fails when the script does not have what is needed, and goes on with one that has", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const file = write(join(cwd, "a.yaml"), skeleton())
      const less = yield* run(cwd, file, "--script", script(join(cwd, "s.yaml"), { ...answers, tools: { add: [] } }))
      assert.strictEqual(less.code, 1)
      assert.include(less.screen, "tools.add: call 0, counting from 0, has no result")
      assert.deepStrictEqual(shape(read(file)), ["user", "assistant(add)"])
      const enough = yield* run(cwd, file, "--script", script(join(cwd, "s.yaml"), answers))
      assert.strictEqual(enough.code, 0, enough.screen)
      const other = write(join(cwd, "b.yaml"), skeleton())
      yield* run(cwd, other, "--script", join(cwd, "s.yaml"))
      assert.strictEqual(readFileSync(file, "utf8"), readFileSync(other, "utf8"))
    })
  )

  it.effect("fails with 3 when a call comes with other arguments than the script expects", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const fixture = { ...answers, tools: { add: [{ content: "5", expect_input: { a: 2, b: 4 } }] } }
      const file = write(join(cwd, "a.yaml"), skeleton())
      const { code, screen } = yield* run(cwd, file, "--script", script(join(cwd, "s.yaml"), fixture))
      assert.strictEqual(code, 3)
      assert.include(screen, 'was expected with {"a":2,"b":4}')
    })
  )

  const faults = [
    ["the engine is lost", { engine: [adds, { fault: "lost" }], tools: { add: ["5"] } }, 1, undefined],
    [
      "the tool says it failed",
      { engine: [adds, "no"], tools: { add: [{ content: "boom", is_error: true }] } },
      0,
      "boom"
    ],
    [
      "the tool breaks",
      { engine: [adds, "no"], tools: { add: [{ throw: "boom" }] } },
      0,
      "the tool crashed: Error: boom"
    ],
    [
      "an argument is wrong",
      { engine: [{ raw: call("add", { a: 2, b: "3" }) }, "no"], tools: {} },
      0,
      "b: must be number"
    ],
    ["the text is no call", { engine: [{ raw: "<tool_call>\n{" }, "no"], tools: {} }, 0, undefined]
  ] as const

  it.effect.each(faults)(
    "%s: an abort for what the model cannot help, a result for what it can",
    ([, fixture, code, words]) =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const file = write(join(cwd, "a.yaml"), skeleton())
        const ran = yield* run(cwd, file, "--script", script(join(cwd, "s.yaml"), fixture))
        assert.strictEqual(ran.code, code, ran.screen)
        const results = read(file).session.filter(({ role }) => role === "tool")
        if (words === undefined) return
        const [block] = results[0]!.content as ReadonlyArray<{ content: string; is_error?: boolean }>
        assert.isTrue(block!.is_error)
        assert.include(block!.content.replace("expected number, got string", "must be number"), words)
      })
  )

  it.effect("plays a script of turns with the registered tools, as it does for a task", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const file = write(join(cwd, "a.yaml"), skeleton())
      const turns = { turns: [call("add", { a: 2, b: 3 }), { text: "5" }] }
      const { code, performed, screen } = yield* run(cwd, file, "--script", script(join(cwd, "s.yaml"), turns))
      assert.strictEqual(code, 0, screen)
      assert.deepStrictEqual(performed, ['add:{"a":2,"b":3}'])
    })
  )

  it.effect("refuses a tool that nobody registered before anything is asked, with 2, and leaves the file alone", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const file = write(join(cwd, "a.yaml"), conversation([{ ...addTool, name: "ad" }], task, blank))
      const before = readFileSync(file, "utf8")
      const { code, screen } = yield* run(cwd, file)
      assert.strictEqual(code, 2)
      assert.include(screen, "meta.tools[0]: there is no tool ad to run its calls; did you mean add?")
      assert.strictEqual(readFileSync(file, "utf8"), before)
      assert.isFalse(existsSync(join(cwd, "records")))
    })
  )

  it.effect("L0: a complete file, filled or written by hand, is left as it is, with its tools registered or not", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const path = join(cwd, "a.yaml")
      const text =
        "---\n{model: noop,   tools: [{name: gone, description: '', input_schema: {type: object}}]}\n---\nrole:  user\ncontent: 'hi'\n---\n# by hand\nrole: assistant\ncontent: \"ho\"\n"
      writeFileSync(path, text)
      const before = statSync(path, { bigint: true }).mtimeNs
      const { code, screen } = yield* run(cwd, path)
      assert.strictEqual(code, 0, screen)
      assert.include(screen, "nothing to do")
      assert.deepStrictEqual([readFileSync(path, "utf8"), statSync(path, { bigint: true }).mtimeNs], [text, before])
    })
  )

  it.live("a complete file that has searched the web asks for no search service", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const searched = { name: "web_search", description: "Searches.", input_schema: { type: "object" } }
      write(join(cwd, "a.yaml"), conversation([searched], task, { role: "assistant", content: "Nothing." }))
      const { code, err, out } = yield* writ(["run", "a.yaml"], { cwd })
      assert.deepStrictEqual([code, out.includes("nothing to do")], [0, true], out + err)
    })
  )

  it.effect("a model that the command line names is asked, also where the file says noop", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const file = write(join(cwd, "a.yaml"), skeleton())
      const before = readFileSync(file, "utf8")
      const { code, screen } = yield* run(cwd, file, "--model", join(cwd, "nowhere.gguf"))
      assert.strictEqual(code, 2, screen)
      assert.include(screen, "nowhere.gguf")
      assert.strictEqual(readFileSync(file, "utf8"), before)
    })
  )

  it.effect("stopped at a limit it says so with 5, and run again it comes to the file of one that was not", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const fixture = script(join(cwd, "s.yaml"), answers)
      const [file, whole] = [write(join(cwd, "a.yaml"), skeleton()), write(join(cwd, "b.yaml"), skeleton())]
      assert.strictEqual((yield* run(cwd, file, "--script", fixture, "--max-turns", "1")).code, 5)
      assert.deepStrictEqual(shape(read(file)), ["user", "assistant(add)", "tool(1)", "assistant()"])
      assert.strictEqual((yield* run(cwd, file, "--script", fixture)).code, 0)
      yield* run(cwd, whole, "--script", fixture)
      assert.strictEqual(readFileSync(file, "utf8"), readFileSync(whole, "utf8"))
      const [record] = readdirSync(join(cwd, "records"))
      assert.deepStrictEqual(readdirSync(join(cwd, "records", record!)), ["trace-r2.jsonl", "trace.jsonl"])
      const refused = yield* run(cwd, "--resume", join(cwd, "records", record!))
      assert.strictEqual(refused.code, 2)
    })
  )

  it.effect("the same input comes to the same bytes wherever it lies", () =>
    Effect.gen(function* () {
      const [one, two] = [yield* directory, yield* directory]
      const texts: Array<string> = []
      for (const [cwd, name] of [
        [one, "a.yaml"],
        [two, "another.yaml"]
      ] as const) {
        const file = write(join(cwd, name), skeleton(user("And?"), blank))
        const fixture = { ...answers, engine: [...answers.engine, "Still 5."] }
        yield* run(cwd, file, "--script", script(join(cwd, "s.yaml"), fixture))
        texts.push(readFileSync(file, "utf8"))
      }
      assert.strictEqual(texts[0], texts[1])
    })
  )

  it.effect(
    "L3 and L4: --replay comes to the same bytes, executes nothing and writes nothing; a changed file does not",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const { registry } = yield* TestTools.make()
        const start = conversation(declared(registry, "save", "add"), task, blank)
        const file = write(join(cwd, "a.yaml"), start)
        const turns = [call("save", { name: "a.txt", content: "abc" }), { text: "saved" }]
        const first = yield* run(cwd, file, "--script", script(join(cwd, "s.yaml"), { turns }))
        assert.strictEqual(first.code, 0, first.screen)
        assert.strictEqual(first.performed.length, 1)
        const before = [
          readFileSync(file, "utf8"),
          readdirSync(cwd),
          readdirSync(join(cwd, "records"), { recursive: true })
        ]
        const again = yield* run(cwd, file, "--replay")
        assert.strictEqual(again.code, 0, again.screen)
        assert.deepStrictEqual(again.performed, [])
        assert.deepStrictEqual(
          [readFileSync(file, "utf8"), readdirSync(cwd), readdirSync(join(cwd, "records"), { recursive: true })],
          before
        )
        writeFileSync(
          file,
          String(before[0])
            .replace("tool_use_id: call_1_0", "tool_use_id: call_9_9")
            .replace("id: call_1_0", "id: call_9_9")
        )
        const changed = yield* run(cwd, file, "--replay")
        assert.strictEqual(changed.code, 3, changed.screen)
        assert.include(changed.screen, "comes to something else: message 1 differs")
      })
  )

  it.effect("flags that a file answers itself, and flags of other runs, are refused", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const file = write(join(cwd, "a.yaml"), skeleton())
      const refused = [
        [[file, "--tools", "add"], "--tools: a conversation has its tools"],
        [[file, "--system", "x"], "--system"],
        [[file, "--dry-run"], "--dry-run"],
        [[file, "--parallel", "0"], "--parallel"],
        [["a task", "--parallel", "2"], "are for conversation files"],
        [[join(cwd, "missing.yaml")], "there is no such conversation"],
        [[join(cwd, "records")], undefined]
      ] as const
      mkdirSync(join(cwd, "records"))
      for (const [args, words] of refused) {
        const { code, err } = yield* run(cwd, ...args)
        assert.strictEqual(code, 2, args.join(" "))
        assert.include(err, words ?? "there is no conversation in it")
      }
    })
  )
})

describe("writ run FILE that no run can put before a model", () => {
  it.effect("is named once, as it was named on the command line", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const file = write(
        join(cwd, "a.yaml"),
        conversation([addTool], task, {
          role: "tool",
          content: [{ type: "tool_result", tool_use_id: "c", content: "" }]
        })
      )
      const { code, screen } = yield* run(cwd, file, "--script", script(join(cwd, "s.json"), answers))
      assert.strictEqual(code, 2)
      assert.include(screen, "a.yaml  message 1: it answers no calls")
    })
  )
})

describe("writ run DIR", () => {
  it.effect("a directory that may not be read is a mistake of the command line", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      chmodSync(cwd, 0o777)
      const closed = join(cwd, "closed")
      mkdirSync(closed, { mode: 0o000 })
      const { code, err } = yield* unprivileged(run(cwd, closed))
      assert.strictEqual(code, 2, err)
      assert.include(err, "it cannot be read: EACCES")
    })
  )

  it.effect(
    "fills all of it, each file with the script of its name; what is wrong with one does not stop the others",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const runs = join(cwd, "runs")
        const scripts = join(cwd, "scripts")
        for (const path of [runs, scripts]) mkdirSync(path)
        for (const name of ["a", "b", "c", "d", "e"]) {
          write(join(runs, `${name}.yaml`), skeleton())
          if (name !== "d") script(join(scripts, `${name}.script.yaml`), answers)
        }
        writeFileSync(join(runs, "b.yaml"), "---\nno model\n")
        script(join(scripts, "c.script.yaml"), { engine: [{ fault: "lost" }] })
        script(join(scripts, "e.script.yaml"), { ...answers, tools: { add: ["5", "5"] } })
        const { code, out } = yield* run(cwd, runs, "--script", scripts, "--json", "--parallel", "3")
        const codes = JSON.parse(out).conversations.map(({ exit_code, file }: { exit_code: number; file: string }) => [
          basename(file),
          exit_code
        ])
        assert.deepStrictEqual(codes, [
          ["a.yaml", 0],
          ["b.yaml", 2],
          ["c.yaml", 1],
          ["d.yaml", 2],
          ["e.yaml", 3]
        ])
        assert.strictEqual(code, 1)
        assert.deepStrictEqual(shape(read(join(runs, "a.yaml"))), filled)
      })
  )

  it.effect("never has more at work than it was told, says a line per file, and its exit code is the worst", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const files = ["a", "b", "c", "d"].map((name) => write(join(cwd, `${name}.yaml`), skeleton()))
      const fixture = script(join(cwd, "s.script.yaml"), answers)
      const { code, screen } = yield* run(cwd, ...files, "--script", fixture, "--parallel", "2")
      assert.strictEqual(code, 0, screen)
      for (const file of files) assert.include(screen, `✓ ${file}  done (2 turns, 1 call)`)
      assert.include(screen, "4 of 4 conversations done (8 turns, 4 calls)")
      // The script lies in the directory, and is none of its conversations.
      const again = yield* run(cwd, cwd)
      assert.strictEqual(again.code, 0, again.screen)
      assert.include(again.screen, "4 of 4 conversations done")
    })
  )

  it.live(
    "L2: a run's directory alone is enough: in another place, without the project around it, its skeletons are filled",
    () =>
      Effect.gen(function* () {
        const [project, elsewhere] = [yield* directory, yield* directory]
        for (const name of ["assemblies", "prompts", "context/tools"])
          mkdirSync(join(project, name), { recursive: true })
        writeFileSync(join(project, "prompts/ask.md"), "What is 17.5% of 240?\n")
        writeFileSync(
          join(project, "context/tools/calculate.json"),
          JSON.stringify({
            name: "calculate",
            description: "Evaluates an expression.",
            input_schema: { type: "object", properties: { expression: { type: "string" } }, required: ["expression"] }
          })
        )
        writeFileSync(
          join(project, "assemblies/sum.yaml"),
          "name: sum\nmodel: noop\nprefix:\n  - kind: tools\n    path: context/tools/*.json\nconversation:\n  - role: user\n    path: prompts/ask.md\n  - role: assistant\n"
        )
        const assembled = yield* writ(["assemble", "sum"], { cwd: project })
        assert.strictEqual(assembled.code, 0, assembled.err)
        const [assembledRun = ""] = readdirSync(join(project, "runs")).filter((name) => !name.startsWith("."))
        const from = join(project, "runs", assembledRun)
        mkdirSync(join(elsewhere, "only"))
        for (const name of readdirSync(from)) copyFileSync(join(from, name), join(elsewhere, "only", name))
        script(join(elsewhere, "s.json"), {
          turns: [call("calculate", { expression: "17.5% * 240" }), { text: "It is 42." }]
        })
        const ran = yield* writ(["run", "only", "--script", "s.json"], { cwd: elsewhere })
        assert.strictEqual(ran.code, 0, ran.out + ran.err)
        const [name] = readdirSync(join(elsewhere, "only"))
        assert.deepStrictEqual(shape(read(join(elsewhere, "only", name!))), [
          "user",
          "assistant(calculate)",
          "tool(1)",
          "assistant"
        ])
      }),
    { timeout: 240_000 }
  )
})
