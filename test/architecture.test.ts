/** Keeps the source tree as docs/architecture.md says it is, and shows of each rule that it bites. */
import { globSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, it } from "vitest"
import * as Rules from "./kit/architecture.ts"
import { parse } from "./kit/sources.ts"

const root = dirname(import.meta.dirname)

const read = (...patterns: ReadonlyArray<string>): Rules.Files =>
  new Map(
    globSync([...patterns], { cwd: root })
      .map((file) => file.replaceAll("\\", "/"))
      .map((file) => [file, parse(file, readFileSync(join(root, file), "utf8"))] as const)
  )

/** A tree that exists only here. */
const tree = (texts: Record<string, string>): Rules.Files =>
  new Map(Object.entries(texts).map(([file, text]) => [file, parse(file, text)]))

const src = read("src/**/*.ts")
const all = read("{src,test,bench,examples,scripts}/**/*.ts")
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
const declared = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })

describe("the source tree", () => {
  it("is found where it is looked for", () => {
    expect(src.has("src/tools/ToolCall.ts")).toBe(true)
    expect(all.has("test/architecture.test.ts")).toBe(true)
  })
  it("imports to the left only", () => expect(Rules.importOrder(src)).toEqual([]))
  it("has no cycles", () => expect(Rules.noCycles(src)).toEqual([]))
  it("has no way out of a folder of effects and back into it", () => expect(Rules.foldersApart(src)).toEqual([]))
  it("keeps each reserved package in its file", () => expect(Rules.reservedPackages(src)).toEqual([]))
  it("imports no package that is not declared", () => expect(Rules.declaredPackages(declared)(src)).toEqual([]))
  it("keeps the states apart", () => expect(Rules.statesApart(src)).toEqual([]))
  it("keeps reading a record apart from running", () => expect(Rules.traceAlone(src)).toEqual([]))
  it("keeps the actors' services apart", () => expect(Rules.actorsApart(src)).toEqual([]))
  it("keeps files and functions short", () => expect(Rules.sizes(all)).toEqual([]))
  it("has no file named after nothing", () => expect(Rules.names(all)).toEqual([]))
  it("says at the top of each file what it is for", () => expect(Rules.headers(src)).toEqual([]))
  it("loads neither model nor pool nor parsers to print help", () => expect(Rules.lightStart(src)).toEqual([]))
})

describe("the import rules", () => {
  it("report an import to the right, type or value, static or dynamic", () => {
    const files = tree({
      "src/actors/A.ts": `import type { B } from "../effects/B.ts"\nexport * from "../effects/B.ts"`,
      "src/tools/T.ts": `const a = () => import("../actors/A.ts")\ntype X = import("../engine/E.ts").E`,
      "src/effects/B.ts": `import "../actors/A.ts"`,
      "src/engine/E.ts": ""
    })
    expect(Rules.importOrder(files)).toEqual([
      "src/actors/A.ts: must not import src/effects/B.ts",
      "src/actors/A.ts: must not import src/effects/B.ts",
      "src/tools/T.ts: must not import src/actors/A.ts",
      "src/tools/T.ts: must not import src/engine/E.ts"
    ])
  })

  it("report a missing file, an unknown folder, and anything but cli.ts that imports a subcommand", () => {
    const files = tree({
      "src/index.ts": `import "./cli/run.ts"\nimport "./gone.ts"`,
      "src/cli.ts": `import "./cli/run.ts"`,
      "src/cli/run.ts": "",
      "src/misc/M.ts": `import "node:fs"`
    })
    expect(Rules.importOrder(files)).toEqual([
      "src/index.ts: must not import src/cli/run.ts",
      "src/index.ts: imports src/gone.ts, which does not exist",
      "src/misc/M.ts: lies in a folder that has no place in the order"
    ])
  })

  it("let the engine see what a tool is, not run one", () => {
    const files = tree({
      "src/engine/E.ts": `import "../tools/ToolCall.ts"\nimport "../tools/Execution.ts"\nimport "../tools/builtin/echo.ts"`,
      "src/tools/ToolCall.ts": "",
      "src/tools/Execution.ts": "",
      "src/tools/builtin/echo.ts": ""
    })
    expect(Rules.importOrder(files)).toEqual([
      "src/engine/E.ts: must not import src/tools/Execution.ts: engine runs no tools",
      "src/engine/E.ts: must not import src/tools/builtin/echo.ts: engine runs no tools"
    ])
  })

  it("report a cycle once, with its way round", () => {
    const files = tree({
      "src/tools/A.ts": `import "./B.ts"`,
      "src/tools/B.ts": `export type { C } from "./C.ts"`,
      "src/tools/C.ts": `import "./A.ts"`
    })
    expect(Rules.noCycles(files)).toEqual([
      "src/tools/A.ts: cycle src/tools/A.ts > src/tools/B.ts > src/tools/C.ts > src/tools/A.ts"
    ])
  })

  it("report a way out of a folder of effects and back into it, though no file is in a cycle", () => {
    const files = tree({
      "src/effects/legality/Choice.ts": `import "./Refusal.ts"\nimport type { RunContext } from "../RunContext.ts"`,
      "src/effects/legality/Memory.ts": `import "../../tools/Terms.ts"`,
      "src/effects/legality/Refusal.ts": "",
      "src/effects/states/Admitting.ts": `import "../legality/Choice.ts"\nimport "../RunContext.ts"`,
      "src/effects/RunContext.ts": `const a = () => import("./legality/Memory.ts")`,
      "src/tools/Terms.ts": ""
    })
    expect(Rules.noCycles(files)).toEqual([])
    expect(Rules.foldersApart(files)).toEqual([
      "src/effects/legality/: cycle src/effects/legality/ > src/effects/RunContext.ts > src/effects/legality/"
    ])
  })

  it("are not fooled by comments and strings", () => {
    const files = tree({ "src/tools/A.ts": `// import "../engine/E.ts"\nconst a = 'import "../engine/E.ts"'` })
    expect(Rules.importOrder(files)).toEqual([])
  })
})

describe("the package rules", () => {
  const packages = [
    "piscina",
    "node-llama-cpp",
    "node:worker_threads",
    "effect/workers/Worker",
    "effect/rpc/Rpc",
    "@effect/platform-node/NodeWorker",
    "effect/cli/Command",
    "@effect/platform-node/NodeServices",
    "effect",
    "@effect/platform-node",
    "@effect/sql-pg/PgConnection",
    "effect/sql/SqlError",
    "node:https",
    "html-to-text",
    "node:child_process",
    "node:http",
    "@effect/platform-node/NodeHttpServer"
  ]
  const everything = packages.map((name) => `import "${name}"`).join("\n")
  const refused = (file: string) => Rules.reservedPackages(tree({ [file]: everything })).length
  const allowed = (file: string) =>
    packages.filter((name) => Rules.reservedPackages(tree({ [file]: `import "${name}"` })).length === 0)

  it("refuse every reserved package where it has no business", () => {
    expect(refused("src/effects/AgentLoop.ts")).toBe(packages.length)
    expect(refused("src/index.ts")).toBe(packages.length)
  })

  it("allow each in the files that own it", () => {
    expect(allowed("src/actors/ToolPool.ts")).toEqual(["piscina"])
    expect(allowed("src/actors/EffectLedgerPostgres.ts")).toEqual(packages.slice(10, 12))
    expect(allowed("src/actors/EffectLedgerPostgresTables.ts")).toEqual(packages.slice(10, 12))
    expect(allowed("src/actors/EffectLedgerSqlite.ts")).toEqual([])
    expect(allowed("src/tools/web/Exchange.ts")).toEqual(["node:https", "html-to-text", "node:http"])
    expect(allowed("src/effects/serve/HttpListener.ts")).toEqual(["node:http", "@effect/platform-node/NodeHttpServer"])
    expect(allowed("src/tools/builtin/web_fetch.ts")).toEqual([])
    expect(allowed("src/engine/LlamaModel.ts")).toEqual(["node-llama-cpp"])
    expect(allowed("src/actors/Inference.ts")).toEqual(packages.slice(2, 6))
    expect(allowed("src/actors/InferenceThread.ts")).toEqual(packages.slice(2, 6))
    expect(allowed("src/actors/InferenceProcess.ts")).toEqual([...packages.slice(2, 6), "node:child_process"])
    expect(allowed("src/engine/Wire.ts")).toEqual(packages.slice(2, 6))
    expect(allowed("src/engine/worker.ts")).toEqual([...packages.slice(2, 6), "@effect/platform-node/NodeServices"])
    expect(allowed("src/cli/run.ts")).toEqual(["effect/cli/Command"])
    expect(allowed("src/cli.ts")).toEqual(["effect/cli/Command", "@effect/platform-node/NodeServices"])
    expect(allowed("src/effects/Wiring.ts")).toEqual(["@effect/platform-node/NodeServices"])
  })

  it("report a package that is not declared", () => {
    const files = tree({ "src/tools/A.ts": `import "node:fs"\nimport "yaml/x"\nimport "@effect/vitest"` })
    expect(Rules.declaredPackages(["yaml"])(files)).toEqual([
      "src/tools/A.ts: imports @effect/vitest, which package.json does not declare"
    ])
  })
})

describe("the rules of neighbours", () => {
  it("report a state that imports another", () => {
    const files = tree({
      "src/effects/states/Acting.ts": `import "./Committing.ts"\nimport "../Limits.ts"`,
      "src/effects/states/Committing.ts": "",
      "src/effects/Limits.ts": `import "./states/Acting.ts"`
    })
    expect(Rules.statesApart(files)).toEqual([
      "src/effects/states/Acting.ts: is a state and must not import the state src/effects/states/Committing.ts"
    ])
  })

  it("report a reader of records that imports the run, but not the rules that both go by", () => {
    const files = tree({
      "src/effects/trace/TraceReader.ts": `import type { Past } from "../Past.ts"\nimport "../../actors/TraceEvent.ts"`,
      "src/effects/trace/invariants/Choices.ts": `import "../../Governor.ts"\nimport "../TraceReader.ts"`,
      "src/effects/trace/invariants/Turns.ts": `const a = () => import("../../states/Acting.ts")\nexport * from "../../legality/Choice.ts"`,
      "src/effects/Past.ts": `import "./trace/TraceReader.ts"`,
      "src/effects/trace/Replay.ts": `import "./TraceReader.ts"\nimport "../Run.ts"`
    })
    expect(Rules.traceAlone(files)).toEqual([
      "src/effects/trace/TraceReader.ts: reads what was recorded and must not import src/effects/Past.ts",
      "src/effects/trace/invariants/Turns.ts: reads what was recorded and must not import src/effects/states/Acting.ts",
      "src/effects/trace/invariants/Turns.ts: reads what was recorded and must not import src/effects/legality/Choice.ts"
    ])
  })

  it("report an actor that imports another's service, but not its schemas, its own parts, Mailbox and Ids", () => {
    const service = `import * as Context from "effect/Context"\nexport class A extends Context.Service<A, {}>()("a") {}`
    const files = tree({
      "src/actors/Ledger.ts": `${service}\nimport "./Mailbox.ts"\nimport "./Ids.ts"\nimport "./TraceEvent.ts"`,
      "src/actors/LedgerSqlite.ts": `import "./Ledger.ts"\nimport type { T } from "./TraceWriter.ts"`,
      "src/actors/TraceWriter.ts": service,
      "src/actors/Mailbox.ts": service,
      "src/actors/Ids.ts": service,
      "src/actors/TraceEvent.ts": ""
    })
    expect(Rules.actorsApart(files)).toEqual([
      "src/actors/LedgerSqlite.ts: must not import the service of src/actors/TraceWriter.ts"
    ])
  })
})

describe("the rules of form", () => {
  const lines = (count: number) => "const a = 1\n".repeat(count)
  const body = (count: number) => `export const f = () => {\n${lines(count - 2)}}\n`

  it("count code, not comments and blank lines, and hold tests to 500 lines", () => {
    expect(Rules.sizes(tree({ "src/tools/A.ts": `/**\n * Doc\n */\n\n${lines(350)}// end\n` }))).toEqual([])
    const files = tree({ "src/tools/A.ts": lines(351), "test/A.test.ts": lines(500), "test/B.test.ts": lines(501) })
    expect(Rules.sizes(files)).toEqual([
      "src/tools/A.ts: 351 lines of code, the limit is 350",
      "test/B.test.ts: 501 lines of code, the limit is 500"
    ])
  })

  it("hold functions to 60 lines outside tests", () => {
    const files = tree({ "src/A.ts": `\n${body(61)}`, "src/B.ts": body(60), "test/A.test.ts": body(61) })
    expect(Rules.sizes(files)).toEqual(["src/A.ts:2: a function of 61 lines of code, the limit is 60"])
  })

  it("refuse names without meaning and files without a header", () => {
    const files = tree({
      "src/tools/utils.ts": "/** Bits. */",
      "src/tools/Unit.ts": "export {}",
      "src/cli.ts": "#!/x\n/** C. */"
    })
    expect(Rules.names(files)).toEqual(["src/tools/utils.ts: says nothing about what is in it"])
    expect(Rules.headers(files)).toEqual(["src/tools/Unit.ts: does not begin with a comment that says what it is for"])
  })

  it("report what help would load, by which way, but nothing behind import() or a type", () => {
    const files = tree({
      "src/cli.ts": `import "./cli/run.ts"`,
      "src/cli/run.ts": `import type { A } from "ajv"\nconst go = () => import("../engine/LlamaModel.ts")\nimport "../tools/J.ts"`,
      "src/tools/J.ts": `import { parse } from "yaml"`,
      "src/engine/LlamaModel.ts": `import "node-llama-cpp"`
    })
    expect(Rules.lightStart(files)).toEqual(["yaml: loaded at start by src/cli.ts > src/cli/run.ts > src/tools/J.ts"])
  })
})
