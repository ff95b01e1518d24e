import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { getDefaultEnvironment, StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import * as Effect from "effect/Effect"
import { connect } from "../../src/actors/McpConnection.ts"
import { quoted } from "../../src/cli/Continuing.ts"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import { directory, entry, invoke, newestTrace, runsIn, start, traceOf, until, writ } from "../kit/cli.ts"
import { everything, filesystem, hostile, lives, node, patient } from "../kit/mcp.ts"
import { call, types } from "../kit/script.ts"
import { directoryOf, reads, scripted } from "../kit/toolFiles.ts"

const patience = { timeout: 240_000 }

/** A server as it is named on the command line. */
const named = ({ name, transport }: ReturnType<typeof hostile>): string => {
  assert(transport._tag === "Stdio")
  return `${name}=${[transport.command, ...transport.args].map(quoted).join(" ")}`
}

const mcp = (...servers: ReadonlyArray<ReturnType<typeof hostile>>) => servers.flatMap((one) => ["--mcp", named(one)])

const script = (cwd: string, ...turns: ReadonlyArray<readonly [string, unknown]>): ReadonlyArray<string> => {
  const texts = [...turns.map(([name, args]) => call(name, args)), "done"]
  writeFileSync(join(cwd, "script.json"), JSON.stringify({ turns: texts }))
  return ["run", "the task", "--script", "script.json", "--trace-content"]
}

const contracts = (cwd: string, text: string): ReadonlyArray<string> => {
  writeFileSync(join(cwd, "contracts.yaml"), text)
  return ["--mcp-contracts", join(cwd, "contracts.yaml")]
}

const assertValid = (run: string) => {
  const { complete, ok, violations } = validateText(traceOf(run))
  assert.deepStrictEqual({ complete, ok, violations }, { complete: true, ok: true, violations: [] })
}

const reading = `
version: 1
servers:
  files: { hints: trust }
  all: { default: { risk: read } }
  h: { default: { risk: read } }
`

describe("writ mcp list", () => {
  it.live(
    "shows both public servers' tools with the contract each has, and what is refused",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const servers = mcp(everything, filesystem(cwd))
        const { code, err, out } = yield* invoke(["mcp", "list", "--json", ...servers])
        assert.strictEqual(code, 0, err)
        const document = JSON.parse(out)
        assert.deepStrictEqual(
          document.servers.map(({ name }: { name: string }) => name),
          ["all", "files"]
        )
        const tools = document.servers.flatMap((server: { tools: ReadonlyArray<unknown> }) => server.tools)
        assert.isAbove(tools.length, 20)
        for (const tool of tools) {
          assert.match(tool.name, /^(all|files)__[A-Za-z0-9_-]+$/)
          assert.deepInclude(tool.contract, { risk: "external", ledger: "none", retry: "never", reversible: false })
          assert.strictEqual(tool.said_by, "nobody")
        }
        assert.strictEqual(document.servers[0].refused[0].name, "simulate-research-query")
        const shown = yield* writ(["mcp", "list", ...servers, ...contracts(cwd, reading)], {
          cwd,
          env: { COLUMNS: "200" }
        })
        assert.match(shown.out, /^files__write_file +external +none +never +no +self +nobody +destructive,idempotent$/m)
        assert.match(shown.out, /^files__read_text_file +read +- +- +- +- +hints +read-only$/m)
        assert.match(shown.out, /^all__echo +read +- +- +- +- +file default/m)
        assert.include(shown.out, "not offered: simulate-research-query: it can only be called as a task")
      }),
    patience
  )

  it.live(
    "names what is wrong in a contract file with file, line, place and remedy",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const wrong =
          "version: 1\nservers:\n  h:\n    tools:\n      ecko: { risk: read }\n      echo:\n        risk: external\n"
        const { code, err } = yield* invoke(["mcp", "list", ...mcp(hostile()), ...contracts(cwd, wrong)])
        assert.strictEqual(code, 2)
        assert.include(err, 'contracts.yaml:5: servers.h.tools.ecko: the server has no such tool; did you mean "echo"?')
        assert.match(
          err,
          /contracts\.yaml:7: servers\.h\.tools\.echo: its contract says risk "external" and lacks ledger/
        )
        const form = yield* invoke([
          "mcp",
          "list",
          ...mcp(hostile()),
          ...contracts(cwd, "version: 1\nservers: {h: {tool: {}}}")
        ])
        assert.include(form.err, 'contracts.yaml:2: servers.h.tool: there is no "tool" here; did you mean "tools"?')
        const none = yield* invoke(["mcp", "list", ...mcp(hostile()), "--mcp-contracts", "no.yaml"])
        assert.include(none.err, "--mcp-contracts no.yaml: there is no such file")
      }),
    patience
  )

  it.live(
    "says which server cannot be reached, and asks for one where there is none",
    () =>
      Effect.gen(function* () {
        const gone = yield* invoke(["mcp", "list", "--mcp", "x=no-such-program-here"])
        assert.deepInclude(gone, { code: 1, out: "" })
        assert.match(gone.err, /^writ: the MCP server "x" cannot be reached/)
        const died = yield* invoke(["mcp", "list", "--json", ...mcp(hostile("die-on-init"))])
        assert.match(JSON.parse(died.out).error.message, /the MCP server "h" went away.*it said: no licence found/)
        const nothing = yield* invoke(["mcp", "list"])
        assert.strictEqual(nothing.code, 2)
        const stray = yield* invoke(["mcp", "list", "--mcp-env", "a:B"])
        assert.include(stray.err, "name one with --mcp")
      }),
    patience
  )
})

describe("writ run --mcp", () => {
  it.live(
    "uses the tools of both public servers in one run, on a record that holds",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        writeFileSync(join(cwd, "a.txt"), "forty-two")
        const args = script(
          cwd,
          ["files__read_text_file", { path: "a.txt" }],
          ["all__get-sum", { a: 40, b: 2 }],
          ["all__get-tiny-image", {}]
        )
        const { code, err, out } = yield* writ(
          [...args, ...mcp(filesystem("."), everything), ...contracts(cwd, reading)],
          { cwd }
        )
        assert.strictEqual(code, 0, err)
        assert.include(out, "forty-two")
        const [run] = runsIn(cwd)
        assertValid(run!)
        const answers = newestTrace(cwd).filter((line) => line.event_type === "tool_result_committed")
        assert.deepStrictEqual(
          answers.map(({ data }) => data["ok"]),
          [true, true, true]
        )
        assert.strictEqual(types(traceOf(run!)).filter((type) => type === "artifact_written").length, 1)
      }),
    patience
  )

  it.live(
    "does not call an unstated tool when nobody can be asked",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const path = join(cwd, "new.txt")
        const { err } = yield* writ(
          [...script(cwd, ["files__write_file", { path, content: "x" }]), ...mcp(filesystem(cwd))],
          { cwd }
        )
        assert.include(err, "files__write_file (call-0-0) was not allowed")
        assert.isFalse(existsSync(path))
      }),
    patience
  )

  it.live(
    "takes the tools that are named, a server's whole as NAME__*, and says which are near",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const args = [...script(cwd), ...mcp(hostile()), "--json"]
        const tools = (out: string) => JSON.parse(out).tools as ReadonlyArray<string>
        const one = yield* writ([...args, "--tools", "h__echo,calculate"], { cwd })
        assert.deepStrictEqual(tools(one.out), ["h__echo", "calculate"])
        const all = yield* writ([...args, "--tools", "h__*"], { cwd })
        assert.isTrue(
          tools(all.out).every((name) => name.startsWith("h__")),
          all.out
        )
        const near = yield* writ([...args, "--tools", "h__ecko"], { cwd })
        assert.match(JSON.parse(near.out).error.message, /did you mean h__echo\?/)
      }),
    patience
  )

  it.live(
    "ends the server when it is stopped in the middle of a call",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const args = script(cwd, ["h__env", {}], ["h__hangs", {}])
        const running = start([...args, ...mcp(hostile("stays", "child")), ...contracts(cwd, reading)], { cwd })
        yield* until(
          running,
          () => newestTrace(cwd).filter((line) => line.event_type === "tool_execution_started").length === 2
        )
        running.child.kill("SIGINT")
        const { code, err } = yield* Effect.promise(() => running.ended)
        assert.strictEqual(code, 4, err)
        const answer = newestTrace(cwd).find((line) => line.event_type === "tool_result_committed")
        const grandchild = Number(JSON.parse(String(answer?.data["answer"])).result.GRANDCHILD)
        assert.isAbove(grandchild, 1)
        assert.isFalse(lives(grandchild))
      }),
    patience
  )

  it.live(
    "takes no server from a settings file, which may lie in somebody else's directory",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        writeFileSync(join(cwd, "writ.config.json"), JSON.stringify({ mcp: ["touch started"] }))
        const { code, err } = yield* writ(["run", "hi"], { cwd })
        assert.strictEqual(code, 2)
        assert.include(err, "has to be said on the command line or in WRIT_MCP")
        assert.isFalse(existsSync(join(cwd, "started")))
      }),
    patience
  )
})

/** The official client, speaking to us. */
const official = (cwd: string, args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Client({ name: "official", version: "1" })
      const transport = new StdioClientTransport({
        command: process.execPath,
        args: [entry, "mcp", "serve", ...args],
        env: { ...getDefaultEnvironment(), GREETING: "hi" },
        cwd,
        stderr: "ignore"
      })
      await client.connect(transport)
      return { client, pid: transport.pid! }
    }),
    ({ client }) => Effect.promise(() => client.close())
  )

type Told = {
  readonly isError?: boolean
  readonly structuredContent?: Record<string, unknown>
  readonly content: ReadonlyArray<{ text: string }>
}

const ask = (client: Client, name: string, args: Record<string, unknown>) =>
  Effect.promise(() => client.callTool({ name, arguments: args }) as Promise<unknown> as Promise<Told>)

describe("writ mcp serve", () => {
  it.live(
    "answers the official client through every gate, and leaves a record that holds",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        writeFileSync(join(cwd, "a.txt"), "forty-two")
        const pid = yield* Effect.scoped(
          Effect.gen(function* () {
            const { client, pid } = yield* official(cwd, ["--trace-content"])
            assert.strictEqual(client.getServerVersion()?.name, "writ")
            const { tools } = yield* Effect.promise(() => client.listTools())
            assert.deepStrictEqual(
              tools.map(({ annotations, name }) => `${name} ${annotations?.readOnlyHint}`),
              [
                "list_files true",
                "read_text_file true",
                "search_text true",
                "calculate true",
                "lookup true",
                "write_artifact false"
              ]
            )
            const right = yield* ask(client, "calculate", { expression: "6*7" })
            assert.deepStrictEqual([right.isError, right.content[0]!.text], [false, "42"])
            const read = yield* ask(client, "read_text_file", { path: "a.txt" })
            assert.include(JSON.stringify(read), "forty-two")
            const wrong = yield* ask(client, "calculate", { expresion: "6*7" })
            assert.isTrue(wrong.isError)
            assert.deepInclude(wrong.structuredContent, { ok: false, kind: "invalid_arguments" })
            const outside = yield* ask(client, "read_text_file", { path: "../a.txt" })
            assert.isTrue(outside.isError)
            const unknown = yield* Effect.promise(() => client.callTool({ name: "no", arguments: {} }).catch(String))
            assert.include(String(unknown), "-32602")
            return pid
          })
        )
        assert.isFalse(lives(pid))
        const [run, ...others] = runsIn(cwd)
        assert.deepStrictEqual(others, [])
        assertValid(run!)
        const seen = types(traceOf(run!))
        assert.strictEqual(seen.filter((type) => type === "legality_checked").length, 4)
        assert.strictEqual(seen.at(-1), "run_completed")
        assert.strictEqual(newestTrace(cwd)[1]?.data["policy"], "nobody")
      }),
    patience
  )

  it.live(
    "offers the tools of a directory as well, behind the same gates and with what they are granted",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const dir = yield* directoryOf({
          "up.tool.json": scripted(`console.log(JSON.stringify(process.env.GREETING ?? null))`, reads),
          "unsaid.tool.json": scripted(`require("node:fs").writeFileSync("done", "")`)
        })
        const { client } = yield* official(cwd, ["--tools-dir", dir, "--tool-env", "GREETING"])
        const { tools } = yield* Effect.promise(() => client.listTools())
        assert.includeMembers(
          tools.map(({ name }) => name),
          ["list_files", "up", "unsaid"]
        )
        assert.strictEqual((yield* ask(client, "up", {})).content[0]!.text, "hi")
        const refused = yield* ask(client, "unsaid", {})
        assert.deepInclude(refused.structuredContent, { ok: false, kind: "refused" })
        assert.isFalse(existsSync(join(dir, "done")))
      }),
    patience
  )

  it.live(
    "puts another server behind the gates: what is not allowed never reaches it",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const files = mcp(filesystem(cwd))
        const path = join(cwd, "new.txt")
        const write = (args: ReadonlyArray<string>) =>
          Effect.scoped(
            Effect.gen(function* () {
              const { client } = yield* official(cwd, [...files, "--tools", "files__*", ...args])
              const { tools } = yield* Effect.promise(() => client.listTools())
              assert.isTrue(tools.every(({ name }) => name.startsWith("files__")))
              return yield* ask(client, "files__write_file", { path, content: "x" })
            })
          )
        const refused = yield* write([])
        assert.deepInclude(refused.structuredContent, { ok: false, kind: "refused" })
        const denied = yield* write(["--approve", "all", "--deny", "execute:tool:files__write_file"])
        assert.deepInclude(denied.structuredContent, { ok: false, kind: "unauthorized" })
        assert.isFalse(existsSync(path))
        const allowed = yield* write(["--approve", "all"])
        assert.isFalse(allowed.isError)
        assert.strictEqual(readFileSync(path, "utf8"), "x")
        for (const run of runsIn(cwd)) assertValid(run)
      }),
    patience
  )

  it.live(
    "cancels a call that the client cancels, and answers the next",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        yield* Effect.scoped(
          Effect.gen(function* () {
            const { client } = yield* official(cwd, [...mcp(hostile()), ...contracts(cwd, reading), "--tools", "h__*"])
            const controller = new AbortController()
            const options = { signal: controller.signal }
            const hanging = client.callTool({ name: "h__hangs", arguments: {} }, undefined, options).catch(String)
            yield* Effect.promise(async () => {
              const started = () => newestTrace(cwd).some((line) => line.event_type === "tool_execution_started")
              while (!started()) await new Promise((resolve) => setTimeout(resolve, 5))
              controller.abort()
              await hanging
            })
            const next = yield* ask(client, "h__echo", { message: "hi" })
            assert.strictEqual(next.content[0]!.text, "hi")
          })
        )
        const runs = runsIn(cwd)
        // Both began in the same second, so their names have no order.
        assert.sameMembers(
          runs.map((run) => types(traceOf(run)).at(-1)),
          ["run_cancelled", "run_completed"]
        )
        for (const run of runs) assertValid(run)
      }),
    patience
  )

  it.live(
    "is understood by our own client, which knows its tools by their contracts' hints",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const cwd = yield* directory
          const transport = { ...node(entry, "mcp", "serve", "--tools", "calculate,write_artifact"), cwd }
          const connection = yield* connect({ name: "self", transport }, { version: "0", limits: patient })
          const { refused, tools } = yield* connection.list
          assert.deepStrictEqual(refused, [])
          assert.deepStrictEqual(
            tools.map(({ hints, name }) => [name, hints.readOnly]),
            [
              ["calculate", true],
              ["write_artifact", false]
            ]
          )
          const result = yield* connection.call(tools[0]!, { expression: "6*7" })
          assert.strictEqual(JSON.stringify(result.content[0]).includes("42"), true)
        })
      ).pipe(Effect.provide(NodeServices.layer)),
    patience
  )

  it.live(
    "says nothing on standard output but the protocol, and ends well when its input does",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } }
        const input = [
          "this is no message",
          "{}",
          "[1]",
          '{"jsonrpc":"2.0","id":7,"result":{}}',
          "[".repeat(100_000),
          JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }),
          JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" }),
          JSON.stringify({ jsonrpc: "2.0", id: 2, method: "tools/list" })
        ].join("\n")
        const { code, err, out } = yield* writ(["mcp", "serve", "--tools", "none"], { cwd, input: `${input}\n` })
        assert.strictEqual(code, 0, err)
        const told = out
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line))
        assert.deepStrictEqual(
          told.map(({ id, jsonrpc, result }) => [jsonrpc, id, Object.keys(result)[0]]),
          [
            ["2.0", 1, "protocolVersion"],
            ["2.0", 2, "tools"]
          ]
        )
        const asking = yield* writ(["mcp", "serve", "--tools", "clarify"], { cwd, input: "" })
        assert.strictEqual(asking.code, 2)
        assert.include(asking.err, "--tools clarify: it asks the user")
      }),
    patience
  )
})
