/** Runs on servers, with calls: the same task in both ways to talk, and what the record says of it. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ArtifactStore from "../../src/actors/ArtifactStore.ts"
import * as EffectLedger from "../../src/actors/EffectLedger.ts"
import * as Ids from "../../src/actors/Ids.ts"
import * as ToolPool from "../../src/actors/ToolPool.ts"
import * as TraceWriter from "../../src/actors/TraceWriter.ts"
import * as Agent from "../../src/effects/Agent.ts"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import * as Wiring from "../../src/effects/Wiring.ts"
import type { OpenAiOptions } from "../../src/engine/OpenAiModel.ts"
import { MemoryTraces } from "../../src/testing.ts"
import * as Servers from "../kit/openAiServer.ts"
import { call, lines, shape } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

const services = (options: OpenAiOptions) =>
  Layer.mergeAll(
    Wiring.layerServer({ patience: Servers.hasty, ...options }),
    ToolPool.layerInline({ anyIsolation: true }),
    TraceWriter.layerMemory,
    ArtifactStore.layerMemory,
    EffectLedger.layerMemory(),
    Ids.layerSequence
  )

/** One run to its end. */
const run = (options: OpenAiOptions, more: Partial<Agent.AgentOptions> = {}) =>
  Effect.gen(function* () {
    const { registry } = yield* TestTools.make()
    const outcome = yield* Agent.run({ task: "2+3?", tools: registry, system: "S", trace: { content: true }, ...more })
    const text = (yield* MemoryTraces).text(outcome.runId)
    assert.deepStrictEqual(validateText(text).violations, [])
    return { outcome, events: lines(text) }
  }).pipe(Effect.provide(services(options)))

const provenance = (events: ReturnType<typeof lines>) =>
  events.find(({ event_type }) => event_type === "provenance")!.data as {
    readonly codec: string
    readonly model: { readonly engine: string; readonly build: Record<string, unknown> }
  }

const added = ["system", "user", "assistant:calls", "tool:add", "assistant:final"]

describe("a run on a server", () => {
  it.live("with prompts of ours calls a tool, answers, and says on the record whom it talked to", () =>
    Effect.gen(function* () {
      const server = yield* Servers.llamaCpp([call("add", { a: 2, b: 3 }), "It is 5."])
      const { events, outcome } = yield* run({ url: server.url })
      assert.strictEqual(outcome.text, "It is 5.")
      assert.deepStrictEqual(shape(outcome), added)
      const { codec, model } = provenance(events)
      assert.deepStrictEqual([codec, model.engine, model.build["api"]], ["qwen2.5", "openai", "completions"])
      const turns = events.filter(({ event_type }) => event_type === "model_call_started")
      // No request carries a grammar, so none is claimed.
      assert.deepStrictEqual(
        turns.map(({ data }) => data["constrained"]),
        [false, false]
      )
      const prompt = Servers.textOf(server.asked.at(-1)!.body.prompt)
      assert.include(prompt, call("add", { a: 2, b: 3 }))
      assert.include(prompt, "<tool_response>")
    })
  )

  it.live("that is told messages does the same", () =>
    Effect.gen(function* () {
      const server = yield* Servers.plain([
        [...Servers.calling(0, "c1", "add", '{"a": 2, "b": 3}'), Servers.delta({}, "tool_calls"), Servers.usage],
        Servers.saying("It is 5.")
      ])
      const { events, outcome } = yield* run({ url: server.url })
      assert.strictEqual(outcome.text, "It is 5.")
      assert.deepStrictEqual(shape(outcome), added)
      assert.deepStrictEqual([provenance(events).codec, provenance(events).model.build["api"]], ["openai-chat", "chat"])
      const { messages, tools } = server.asked.at(-1)!.body
      assert.include(JSON.stringify(tools), '"name":"add"')
      assert.deepStrictEqual(messages.slice(2), [
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "c1", type: "function", function: { name: "add", arguments: '{"a": 2, "b": 3}' } }]
        },
        { role: "tool", tool_call_id: "c1", content: messages[3].content }
      ])
      assert.include(messages[3].content, "5")
    })
  )

  it.live("is told of calls that cannot be read, and mends them", () =>
    Effect.gen(function* () {
      const server = yield* Servers.plain([
        [...Servers.calling(0, "c1", "add", '{"a": 2, "a": 3}'), Servers.delta({}, "tool_calls"), Servers.usage],
        [...Servers.calling(0, "c2", "add", '{"a": 2, "b": 3}'), Servers.delta({}, "tool_calls"), Servers.usage],
        Servers.saying("It is 5.")
      ])
      const { outcome } = yield* run({ url: server.url })
      assert.deepStrictEqual(shape(outcome), [
        "system",
        "user",
        "assistant:malformed",
        "feedback",
        "assistant:calls",
        "tool:add",
        "assistant:final"
      ])
      const second = server.asked.filter(({ path }) => path === "/chat/completions")[1]!.body.messages
      assert.deepStrictEqual(
        second.slice(2).map(({ role }: { readonly role: string }) => role),
        ["assistant", "user"]
      )
      assert.include(second[3].content, "duplicate")
    })
  )

  it.live("whose answer is cut leaves it there: it would begin anew with the next request", () =>
    Effect.gen(function* () {
      const server = yield* Servers.plain([Servers.saying("Once upon ", "length"), Servers.saying("a time.")])
      const { outcome } = yield* run({ url: server.url, contextTokens: 100_000 })
      assert.deepStrictEqual(outcome.stop, { _tag: "Limit", kind: "output_tokens", partialText: "Once upon " })
    })
  )

  it.live("speaks one language with a server that is told messages", () =>
    Effect.gen(function* () {
      const server = yield* Servers.plain([Servers.saying("Hi.")])
      const error = yield* Effect.flip(run({ url: server.url }, { codec: "qwen2.5" }))
      assert.include(error.message, "the server is told messages")
      const local = yield* Servers.llamaCpp([])
      const wrong = yield* Effect.flip(run({ url: local.url }, { codec: "openai-chat" }))
      assert.include(wrong.message, "for servers that are told messages")
    })
  )

  it.live("fails by name where a turn breaks off, and its record is whole", () =>
    Effect.gen(function* () {
      const server = yield* Servers.fake({
        "/models": Servers.models("m"),
        "/chat/completions": (_asked, response) => {
          response.writeHead(200, Servers.stream)
          response.write(`data: ${JSON.stringify(Servers.delta({}, "content_filter"))}\n\n`)
          response.end()
        }
      })
      const { outcome } = yield* run({ url: server.url })
      assert.deepInclude(outcome.stop, { _tag: "Failed", class: "engine" })
    })
  )

  it.live("goes on where a turn broke off in the middle, and says so", () =>
    Effect.gen(function* () {
      const broken: Servers.Answering = (_asked, response) => {
        response.writeHead(200, Servers.stream)
        const begun = `data: ${JSON.stringify(Servers.delta({ content: "Well, " }))}\n\n`
        response.write(begun, () => response.destroy())
      }
      const server = yield* Servers.fake({
        "/models": Servers.models("m"),
        "/chat/completions": Servers.inTurn(broken, Servers.sse(Servers.saying("It is 5.")))
      })
      const { events, outcome } = yield* run({ url: server.url })
      assert.strictEqual(outcome.text, "It is 5.")
      const restarted = events.filter(({ event_type }) => event_type === "engine_restarted")
      assert.deepStrictEqual(
        restarted.map(({ data }) => data),
        [{ cause: "crashed", restarts: 1, tokens: 0 }]
      )
    })
  )
})
