import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type * as Scope from "effect/Scope"
import type { McpLimits, McpServer } from "../../src/actors/McpServer.ts"
import * as Agent from "../../src/effects/Agent.ts"
import { fromGrants } from "../../src/effects/Authority.ts"
import * as McpTools from "../../src/effects/McpTools.ts"
import { Approval, allowAll, denyAll } from "../../src/effects/Policy.ts"
import { cautious } from "../../src/effects/Profile.ts"
import type { RunOptions } from "../../src/effects/Run.ts"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import type { ServerForm } from "../../src/tools/mcp/McpContractFile.ts"
import { everything, filesystem, hostile, lives, patient } from "../kit/mcp.ts"
import { call, type Line, lines } from "../kit/script.ts"

const directory: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "writ-mcp-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

interface Given extends RunOptions {
  readonly form?: ServerForm
  readonly server?: Partial<McpLimits>
  readonly approve?: boolean
}

/** A run of calls, each a turn, on the tools of one server. */
const play = Effect.fnUntraced(function* (
  server: McpServer,
  turns: ReadonlyArray<readonly [name: string, args: unknown]>,
  { approve = true, form, server: limits, ...options }: Given = {}
) {
  const contracts = form === undefined ? {} : { contracts: { version: 1 as const, servers: { [server.name]: form } } }
  const mcp = yield* McpTools.open([server], { ...contracts, limits: { ...patient, ...limits } })
  assert.deepStrictEqual(mcp.problems, [])
  const script = { turns: [...turns.map(([name, args]) => call(`${server.name}__${name}`, args)), "done"] }
  return yield* Effect.gen(function* () {
    const outcome = yield* Agent.run({ task: "t", tools: mcp.registry, trace: { content: true }, ...options })
    const text = (yield* MemoryTraces).text(outcome.runId)
    const { complete, ok, violations } = validateText(text)
    assert.deepStrictEqual({ complete, ok, violations }, { complete: true, ok: true, violations: [] })
    const answers = outcome.transcript.flatMap((entry) => (entry.kind === "tool" ? [JSON.parse(entry.content)] : []))
    return { outcome, answers, events: lines(text), mcp }
  }).pipe(
    Effect.provideService(Approval, approve ? allowAll : denyAll),
    Effect.provide(mcp.layer(layerScripted(script)))
  )
})

const live = (name: string, test: () => Effect.Effect<unknown, unknown, Scope.Scope | ChildProcessSpawner>) =>
  it.live(name, () => Effect.provide(Effect.scoped(test()), NodeServices.layer), 120_000)

const count = (events: ReadonlyArray<Line>, type: string) => events.filter((line) => line.event_type === type).length

const reads: ServerForm = { default: { risk: "read" } }

describe("a run on a public server", () => {
  live("reads a file of server-filesystem and calculates with server-everything", () =>
    Effect.gen(function* () {
      const path = yield* directory
      writeFileSync(join(path, "a.txt"), "forty-two")
      const read = yield* play(filesystem(path), [["read_text_file", { path: join(path, "a.txt") }]], {
        form: { hints: "trust" },
        approve: false
      })
      assert.deepStrictEqual(read.answers, [{ ok: true, result: { content: "forty-two" } }])
      assert.strictEqual(read.outcome.stop._tag, "Completed")
      const sum = yield* play(everything, [["get-sum", { a: 2, b: 3 }]], { form: reads, approve: false })
      assert.include(sum.answers[0].result, "5")
    })
  )

  live("keeps the picture of server-everything as an artifact", () =>
    Effect.gen(function* () {
      const { answers, outcome } = yield* play(everything, [["get-tiny-image", {}]])
      assert.match(outcome.artifacts[0]!.name, /^all__get-tiny-image-[0-9a-f]{12}\.png$/)
      assert.strictEqual(outcome.artifacts[0]!.mediaType, "image/png")
      assert.include(JSON.stringify(answers), outcome.artifacts[0]!.name)
    })
  )
})

describe("a tool nobody stated a contract for", () => {
  live("is not called without an approval", () =>
    Effect.gen(function* () {
      const { answers, events } = yield* play(hostile(), [["echo", { message: "hi" }]], { approve: false })
      assert.deepInclude(answers[0], { ok: false, kind: "refused" })
      assert.strictEqual(count(events, "tool_execution_started"), 0)
    })
  )
  live("needs the permission to be executed where permissions are given", () =>
    Effect.gen(function* () {
      const gates = (pattern: string) => ({
        gates: { authority: fromGrants({ scopes: "all", resources: [{ verb: "execute" as const, pattern }] }) }
      })
      const refused = yield* play(hostile(), [["echo", { message: "hi" }]], gates("tool:other"))
      assert.deepInclude(refused.answers[0], { ok: false, kind: "unauthorized" })
      const granted = yield* play(hostile(), [["echo", { message: "hi" }]], gates("tool:h__echo"))
      assert.deepStrictEqual(granted.answers, [{ ok: true, result: "hi" }])
    })
  )
  live("that dies in the middle ends the run as escalated, and is not called again", () =>
    Effect.gen(function* () {
      const { events, outcome } = yield* play(hostile(), [
        ["dies", {}],
        ["echo", { message: "hi" }]
      ])
      assert.strictEqual(outcome.stop._tag, "Escalated")
      assert.strictEqual(count(events, "tool_execution_started"), 1)
      const settled = events.find((line) => line.event_type === "effect_settled")
      assert.deepInclude(settled?.data, { status: "ambiguous" })
    })
  )
})

describe("the contract file", () => {
  live("says what a call touches, and permissions hold for that", () =>
    Effect.gen(function* () {
      const form: ServerForm = {
        tools: { echo: { risk: "read", touches: [{ verb: "read", resource: "note:{message}" }] } }
      }
      const authority = fromGrants({ scopes: "all", resources: [{ verb: "read", pattern: "note:mine/**" }] })
      const turns = [
        ["echo", { message: "mine/a" }],
        ["echo", { message: "theirs/a" }],
        ["echo", { message: "mine/../theirs/a" }]
      ] as const
      const { answers } = yield* play(hostile(), turns, { form, gates: { authority } })
      assert.deepStrictEqual(
        answers.map((answer) => answer.kind ?? "ok"),
        ["ok", "unauthorized", "unauthorized"]
      )
    })
  )
  live("names the parameter that takes the key, which the model never sees", () =>
    Effect.gen(function* () {
      const form: ServerForm = {
        tools: {
          echo: {
            risk: "external",
            ledger: "external",
            retry: "safe",
            reversible: true,
            evidence: { source: "self", describes: "its answer" },
            post: "result",
            keyParameter: "message"
          }
        }
      }
      const { answers, mcp } = yield* play(hostile(), [["echo", {}]], { form })
      assert.match(answers[0].result, /^[0-9a-f]{32,}$/)
      assert.notInclude(JSON.stringify(mcp.registry.get("h__echo")?.spec), "message")
    })
  )
  live("lets a call whose server died be sent again, to the server that was started again", () =>
    Effect.gen(function* () {
      const once = join(yield* directory, "once")
      const form: ServerForm = { default: { risk: "read", retry: "safe" } }
      const retry = { attempts: 3, delayMillis: 1, factor: 2 }
      const { answers, events } = yield* play(hostile(`once=${once}`), [["dies_once", {}]], {
        form,
        gates: { retry, profile: { ...cautious, retry: "harmless" } }
      })
      assert.deepStrictEqual(answers, [{ ok: true, result: "at last" }])
      assert.strictEqual(count(events, "retry_scheduled"), 1)
    })
  )
})

describe("a server that", () => {
  live("changes a tool gets no call of it any more, and the run goes on with the others", () =>
    Effect.gen(function* () {
      const { answers } = yield* play(
        hostile("changes"),
        [
          ["echo", { message: "1" }],
          ["echo", { message: "2" }],
          ["goes", {}],
          ["stays", {}],
          ["answers", {}]
        ],
        { form: reads }
      )
      assert.deepStrictEqual(
        answers.map((answer) => answer.kind ?? "ok"),
        ["ok", "stale_contract", "stale_contract", "ok", "ok"]
      )
      assert.strictEqual(answers[4].result.called, 3)
    })
  )
  live("hangs costs one deadline, and the run goes on", () =>
    Effect.gen(function* () {
      const { answers } = yield* play(
        hostile(),
        [
          ["hangs", {}],
          ["echo", { message: "hi" }]
        ],
        { form: reads, limits: { toolMillis: 500 } }
      )
      assert.deepInclude(answers[0], { ok: false, kind: "timed_out" })
      assert.deepStrictEqual(answers[1], { ok: true, result: "hi" })
    })
  )
  live("floods is cut off, ended, and started again for the next call", () =>
    Effect.gen(function* () {
      const { answers } = yield* play(
        hostile(),
        [
          ["floods", {}],
          ["echo", { message: "hi" }]
        ],
        { form: reads, server: { strayBytes: 1_000_000 } }
      )
      assert.deepInclude(answers[0], { ok: false, kind: "execution_failed" })
      assert.deepStrictEqual(answers[1], { ok: true, result: "hi" })
    })
  )
  live("answers with megabytes has them kept, and the model is shown the ends", () =>
    Effect.gen(function* () {
      const { answers, outcome } = yield* play(hostile(), [["huge", {}]], { form: reads })
      assert.isBelow(JSON.stringify(answers[0]).length, 40_000)
      assert.strictEqual(outcome.artifacts[0]?.bytes, 3_000_000)
    })
  )
  live("cannot be started again makes its tools unavailable, not the run", () =>
    Effect.gen(function* () {
      const { answers } = yield* play(
        hostile(),
        [
          ["dies", {}],
          ["echo", { message: "hi" }]
        ],
        { form: reads, server: { restarts: 0 } }
      )
      assert.deepStrictEqual(
        answers.map((answer) => answer.kind),
        ["unavailable", "unavailable"]
      )
      assert.include(JSON.stringify(answers[1]), "went away")
    })
  )
})

live("several servers are reached side by side, and all are gone when the scope closes", () =>
  Effect.gen(function* () {
    const pids = yield* Effect.scoped(
      Effect.gen(function* () {
        const mcp = yield* McpTools.open(
          [
            { ...hostile(), name: "a" },
            { ...hostile(), name: "b" }
          ],
          { limits: patient }
        )
        assert.isDefined(mcp.registry.get("a__echo"))
        assert.isDefined(mcp.registry.get("b__echo"))
        return mcp.servers.map(({ connection }) => connection.pid()!)
      })
    )
    assert.deepStrictEqual(pids.map(lives), [false, false])
  })
)

live("one server that does not start fails the whole, and ends the others", () =>
  Effect.gen(function* () {
    const error = yield* Effect.flip(
      Effect.scoped(McpTools.open([hostile(), { ...hostile("die-on-init"), name: "b" }], { limits: patient }))
    )
    assert.include(error.message, 'the MCP server "b"')
  })
)
