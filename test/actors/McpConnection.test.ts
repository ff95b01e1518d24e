import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Scope from "effect/Scope"
import { connect } from "../../src/actors/McpConnection.ts"
import type { McpLimits, McpServer } from "../../src/actors/McpServer.ts"
import type { Descriptor } from "../../src/tools/mcp/McpDescriptor.ts"
import { everything, filesystem, hostile, lives, patient } from "../kit/mcp.ts"

const to = (server: McpServer, limits: Partial<McpLimits> = {}) =>
  connect(server, { version: "0.0.0", limits: { ...patient, ...limits } })

const live = (name: string, test: () => Effect.Effect<unknown, unknown, Scope.Scope | ChildProcessSpawner>) =>
  it.live(name, () => Effect.provide(Effect.scoped(test()), NodeServices.layer), 120_000)

/** As it would have been listed. */
const tool = (name: string): Descriptor => ({ name, description: "", inputSchema: {}, hints: {}, hash: "" })

const refusal = (server: McpServer, limits: Partial<McpLimits> = {}) => Effect.flip(to(server, limits))

const listRefusal = (server: McpServer, limits: Partial<McpLimits> = {}) =>
  Effect.flatMap(to(server, limits), (connection) => Effect.flip(connection.list))

const callRefusal = Effect.fnUntraced(function* (name: string, limits: Partial<McpLimits> = {}) {
  const connection = yield* to(hostile(), limits)
  return { connection, failure: yield* Effect.flip(connection.call(tool(name), {})) }
})

describe("public servers", () => {
  live("server-everything lists and answers", () =>
    Effect.gen(function* () {
      const connection = yield* to(everything)
      assert.strictEqual(connection.protocolVersion, "2025-11-25")
      const { refused, tools } = yield* connection.list
      assert.includeMembers(
        tools.map(({ name }) => name),
        ["echo", "get-sum", "get-tiny-image", "get-structured-content"]
      )
      assert.deepStrictEqual(
        refused.map(({ name }) => name),
        ["simulate-research-query"]
      )
      const result = yield* connection.call(tool("get-sum"), { a: 2, b: 3 })
      assert.include(JSON.stringify(result.content), "5")
    })
  )

  live("server-filesystem answers and keeps to its directory", () =>
    Effect.gen(function* () {
      const connection = yield* to(filesystem(import.meta.dirname))
      const path = `${import.meta.dirname}/Ids.test.ts`
      const result = yield* connection.call(tool("read_text_file"), { path })
      assert.include(JSON.stringify(result.structuredContent), "Ids.ts")
      const outside = yield* connection.call(tool("read_text_file"), { path: "/etc/hostname" })
      assert.isTrue(outside.isError)
    })
  )
})

describe("an older server", () => {
  for (const version of ["2025-06-18", "2025-03-26", "2024-11-05"]) {
    live(`of ${version} is spoken to in its own revision`, () =>
      Effect.gen(function* () {
        const connection = yield* to(hostile(`version=${version}`))
        assert.strictEqual(connection.protocolVersion, version)
        assert.isAbove((yield* connection.list).tools.length, 5)
        const { content } = yield* connection.call(tool("echo"), { message: "hi" })
        assert.deepStrictEqual(JSON.parse(JSON.stringify(content)), [{ type: "text", text: "hi" }])
      })
    )
  }

  live("of a revision nobody knows is refused", () =>
    Effect.map(refusal(hostile("version=1999-01-01")), ({ message, reason }) => {
      assert.strictEqual(reason, "unsupported")
      assert.include(message, 'the MCP server "h"')
    })
  )
})

describe("a server that does not start", () => {
  live("because there is no such program, says which server", () =>
    Effect.map(
      refusal({ name: "h", transport: { _tag: "Stdio", command: "no-such-program-here", args: [] } }),
      (error) => {
        assert.strictEqual(error.reason, "unreachable")
        assert.match(error.message, /the MCP server "h" cannot be reached/)
      }
    )
  )
  live("because it ends at once, is closed", () =>
    Effect.map(refusal(hostile("die-at-once")), ({ reason }) => assert.strictEqual(reason, "closed"))
  )
  live("and says why on its standard error, is quoted", () =>
    Effect.map(refusal(hostile("die-on-init")), ({ message, reason }) => {
      assert.strictEqual(reason, "closed")
      assert.include(message, "it said: no licence found")
    })
  )
  live("because it never answers, times out", () =>
    Effect.map(refusal(hostile("silent-init"), { startMillis: 300 }), ({ reason }) =>
      assert.strictEqual(reason, "timed_out")
    )
  )
  live("because its answer is no MCP, is a matter of protocol", () =>
    Effect.map(refusal(hostile("init-is-text")), ({ reason }) => assert.strictEqual(reason, "protocol"))
  )
  live("because its first line never ends, is cut off", () =>
    Effect.map(refusal(hostile("endless-line"), { messageBytes: 1_000_000 }), ({ message, reason }) => {
      assert.strictEqual(reason, "limit")
      assert.include(message, "more than 1000000 bytes")
    })
  )
})

describe("a server's list", () => {
  live("that is never sent, times out", () =>
    Effect.map(listRefusal(hostile("silent-list"), { listMillis: 300 }), ({ reason }) =>
      assert.strictEqual(reason, "timed_out")
    )
  )
  live("that kills it, is closed", () =>
    Effect.map(listRefusal(hostile("die-on-list")), ({ reason }) => assert.strictEqual(reason, "closed"))
  )
  live("that never ends, is cut off", () =>
    Effect.map(listRefusal(hostile("endless")), ({ reason }) => assert.strictEqual(reason, "limit"))
  )
  live("whose cursor repeats, is cut off", () =>
    Effect.map(listRefusal(hostile("same-cursor")), ({ reason }) => assert.strictEqual(reason, "limit"))
  )
  live("that is no list, is a matter of protocol", () =>
    Effect.map(listRefusal(hostile("list-is-text")), ({ reason }) => assert.strictEqual(reason, "protocol"))
  )
  live("of too many tools is refused as a whole", () =>
    Effect.map(listRefusal(hostile("many")), ({ message, reason }) => {
      assert.strictEqual(reason, "limit")
      assert.include(message, "more than 512 tools")
    })
  )
  live("in pages is read whole", () =>
    Effect.gen(function* () {
      const whole = yield* (yield* to(hostile())).list
      const paged = yield* (yield* to(hostile("pages"))).list
      assert.deepStrictEqual(paged, whole)
    })
  )
  live("with tools that cannot be read keeps the others", () =>
    Effect.gen(function* () {
      const { refused, tools } = yield* (yield* to(hostile("bad-schemas"))).list
      // What does not compile is found at registration.
      const kept = ["echo", "no_compile", "bad_pattern", "remote", "bad_output"]
      assert.deepStrictEqual(
        tools.map(({ name }) => name),
        kept
      )
      assert.deepStrictEqual(
        refused.map(({ name, reason }) => `${name}: ${reason.split(",")[0]}`),
        [
          "no_schema: it has no input schema",
          "list_schema: its input schema is not of type object",
          "text_schema: it has no input schema",
          "deep: its description is nested deeper than 64 levels",
          "long: its description has 400109 bytes",
          "task_only: it can only be called as a task",
          "tool number 14: it has no name",
          "tool number 15: it has no name",
          "tool number 16: it is not an object",
          "tool number 17: it is not an object",
          "twice: the server lists two tools of this name"
        ]
      )
    })
  )
})

describe("a call", () => {
  live("to a server that dies in it is unavailable, and may have been done", () =>
    Effect.map(callRefusal("dies"), ({ failure }) => {
      assert.deepInclude(failure, { kind: "unavailable", sent: true })
      assert.include(failure.message, 'the MCP server "h" went away')
    })
  )
  live("that the server refuses as such was not done", () =>
    Effect.map(callRefusal("refuses"), ({ failure }) =>
      assert.deepInclude(failure, { kind: "invalid_arguments", sent: false })
    )
  )
  live("whose answer is no result fails and may have been done", () =>
    Effect.map(callRefusal("nonsense"), ({ failure }) =>
      assert.deepInclude(failure, { kind: "execution_failed", sent: true })
    )
  )
  live("whose answer is too large ends the conversation", () =>
    Effect.gen(function* () {
      const { connection, failure } = yield* callRefusal("huge", { messageBytes: 1_000_000 })
      assert.deepInclude(failure, { kind: "execution_failed", sent: true })
      assert.include(failure.message, "a message of more than 1000000 bytes")
      const next = yield* Effect.flip(connection.call(tool("echo"), { message: "hi" }))
      assert.strictEqual(next.sent, false)
    })
  )
  for (const [name, what] of [
    ["floods", "notifications"],
    ["echoes", "answers to what nobody asked"]
  ] as const) {
    live(`that a server floods with ${what} instead of answering ends the conversation`, () =>
      Effect.map(callRefusal(name, { strayBytes: 2_000_000 }), ({ failure }) =>
        assert.include(failure.message, "more than 2000000 bytes that are no answers")
      )
    )
  }
  live("whose answer is nested without end fails", () =>
    Effect.map(callRefusal("deep"), ({ failure }) => assert.strictEqual(failure.kind, "execution_failed"))
  )
  live("that is never answered ends when its caller is interrupted, and the next is answered", () =>
    Effect.gen(function* () {
      const connection = yield* to(hostile())
      const hanging = yield* Effect.timeoutOption(connection.call(tool("hangs"), {}), 200)
      assert.strictEqual(hanging._tag, "None")
      assert.isArray((yield* connection.call(tool("echo"), { message: "hi" })).content)
    })
  )
})

describe("what a server says unasked", () => {
  live("is dropped where it is no message", () =>
    Effect.gen(function* () {
      const connection = yield* to(hostile("garbage"))
      const { content } = yield* connection.call(tool("echo"), { message: "hi" })
      assert.deepStrictEqual(JSON.parse(JSON.stringify(content)), [{ type: "text", text: "hi" }])
    })
  )
  live("is answered as unsupported where it is a request, and pings are answered", () =>
    Effect.gen(function* () {
      const connection = yield* to(hostile("asks"))
      const result = yield* connection.call(tool("answers"), {})
      const { answers } = result.structuredContent as {
        answers: ReadonlyArray<{ id: string; error?: { code: number } }>
      }
      assert.deepStrictEqual(
        answers.map(({ error, id }) => [id, error?.code]),
        [
          ["ours-0", -32601],
          ["ours-1", -32601],
          ["ours-2", -32601],
          ["ours-3", undefined]
        ]
      )
    })
  )
  live("ends the conversation where it is requests without end", () =>
    Effect.gen(function* () {
      const connection = yield* to(hostile("asks-for-ever"))
      const failure = yield* Effect.flip(connection.call(tool("hangs"), {}))
      assert.include(failure.message, "more than 256 requests")
    })
  )
})

describe("a tool that was registered", () => {
  const found = Effect.fnUntraced(function* (server: McpServer, limits: Partial<McpLimits> = {}) {
    const connection = yield* to(server, limits)
    const { tools } = yield* connection.list
    const named = (name: string) => tools.find((one) => one.name === name)!
    return { connection, named }
  })

  live("is stale once its server said that the list changed and describes it otherwise", () =>
    Effect.gen(function* () {
      const { connection, named } = yield* found(hostile("changes"))
      assert.isUndefined(yield* connection.staleness(named("echo")))
      yield* connection.call(named("echo"), { message: "hi" })
      assert.include(yield* connection.staleness(named("echo")), "describes this tool differently now")
      assert.include(yield* connection.staleness(named("goes")), "does not list this tool any more")
      assert.isUndefined(yield* connection.staleness(named("stays")))
    })
  )
  live("is found stale without a word of the server when the list is looked at again", () =>
    Effect.gen(function* () {
      const { connection, named } = yield* found(hostile("changes-silently"), { freshMillis: 0 })
      yield* connection.call(named("echo"), { message: "hi" })
      assert.include(yield* connection.staleness(named("echo")), "describes this tool differently now")
    })
  )
  live("costs no second list while nothing is said to have changed", () =>
    Effect.gen(function* () {
      const { connection, named } = yield* found(hostile())
      for (let at = 0; at < 3; at++) yield* connection.staleness(named("echo"))
      const { structuredContent } = yield* connection.call(named("answers"), {})
      assert.strictEqual((structuredContent as { lists: number }).lists, 1)
    })
  )
  live("is called again after its server was started again, three times at most", () =>
    Effect.gen(function* () {
      const { connection, named } = yield* found(hostile())
      const pids = new Set([connection.pid()])
      for (let at = 0; at < 3; at++) {
        yield* Effect.flip(connection.call(named("dies"), {}))
        assert.isUndefined(yield* connection.staleness(named("echo")))
        pids.add(connection.pid())
      }
      assert.strictEqual(pids.size, 4)
      yield* Effect.flip(connection.call(named("dies"), {}))
      const error = yield* Effect.flip(connection.staleness(named("echo")))
      assert.include(error.message, "was started again 3 times already")
    })
  )
})

describe("a server's process", () => {
  const pidAfter = Effect.fnUntraced(function* (server: McpServer) {
    const scope = yield* Scope.make()
    const connection = yield* Scope.provide(to(server, { exitMillis: 200 }), scope)
    const pid = connection.pid()!
    assert.isTrue(lives(pid))
    const { structuredContent } = yield* connection.call(tool("env"), {})
    yield* Scope.close(scope, Exit.void)
    return { pid, env: structuredContent as Record<string, string> }
  })

  live("is gone when its connection is closed", () =>
    Effect.map(pidAfter(hostile()), ({ pid }) => assert.isFalse(lives(pid)))
  )
  live("is gone even if it ignores that, and so is what it started", () =>
    Effect.gen(function* () {
      const { env, pid } = yield* pidAfter(hostile("stays", "child"))
      assert.isFalse(lives(pid))
      const grandchild = Number(env["GRANDCHILD"])
      assert.isAbove(grandchild, 1)
      assert.isFalse(lives(grandchild))
    })
  )
  live("gets plain variables and what it was granted, nothing else of ours", () =>
    Effect.gen(function* () {
      process.env["WRIT_TEST_SECRET"] = "secret"
      const server = hostile()
      const granted = { ...server, transport: { ...server.transport, env: { GRANTED: "yes" } } } as McpServer
      const { env } = yield* pidAfter(granted)
      delete process.env["WRIT_TEST_SECRET"]
      assert.strictEqual(env["GRANTED"], "yes")
      assert.isUndefined(env["WRIT_TEST_SECRET"])
      const allowed = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "TEMP", "TMP", "GRANTED"]
      assert.deepStrictEqual(
        Object.keys(env).filter((name) => !allowed.includes(name)),
        []
      )
    })
  )
})
