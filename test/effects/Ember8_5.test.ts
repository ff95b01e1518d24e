/**
 * The trace and the tools that read it: what the inventory of the predecessor names in 8.5, each as the claim that holds
 * here. Its items 42 (diff), 44 (HTML report) and 50 (export) are about commands that have tests of their own.
 */
import { hash } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import * as TraceWriters from "../../src/actors/TraceWriter.ts"
import { TraceError, TraceWriter } from "../../src/actors/TraceWriter.ts"
import * as Agent from "../../src/effects/Agent.ts"
import { Approval, allowAll, denyAll } from "../../src/effects/Policy.ts"
import { replay } from "../../src/effects/trace/Replay.ts"
import { Lines, readLine, type TraceRecord } from "../../src/effects/trace/TraceReader.ts"
import { rowOf, show } from "../../src/effects/trace/TraceTimeline.ts"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import { play } from "../kit/run.ts"
import { call, calls, types } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

const add = (a: number) => call("add", { a, b: 1 })

const textLines = (text: string): ReadonlyArray<string> => text.split("\n").filter((line) => line !== "")

const records = (text: string): ReadonlyArray<TraceRecord> =>
  textLines(text).map((line) => readLine(Buffer.from(line)) as TraceRecord)

const verdictOf = (recorded: ReadonlyArray<TraceRecord>) =>
  Effect.flatMap(TestTools.make(), ({ registry }) => replay(recorded, { tools: registry }))

const edited = (all: ReadonlyArray<TraceRecord>, type: string, more: Record<string, unknown>) => {
  const at = all.findIndex((record) => record.event_type === type)
  return all.map((record, index) => (index === at ? { ...record, data: { ...record.data, ...more } } : record))
}

describe("8.5 the trace and what reads it", () => {
  it.effect("37: a trace cut inside a character is read up to the cut", () =>
    Effect.gen(function* () {
      const { text } = yield* play(["日本語 🇯🇵"])
      const bytes = Buffer.from(text)
      const character = bytes.lastIndexOf(Buffer.from("🇯"))
      const reader = new Lines()
      const items = [...reader.push(bytes.subarray(0, character + 2)), ...reader.end()]
      assert.strictEqual(items.filter((item) => item._tag === "Event").length, textLines(text).length - 1)
      assert.deepInclude(items.at(-1), { _tag: "Unreadable", cut: true })
    })
  )

  it.live("38: a file holds one run; a second one is refused", () =>
    Effect.gen(function* () {
      const directory = mkdtempSync(join(tmpdir(), "writ-ember-"))
      const layer = TraceWriters.layerFile(() => join(directory, "trace.jsonl"))
      const { registry } = yield* TestTools.make()
      const run = Agent.run({ task: "t", tools: registry }).pipe(
        Effect.provide(Layer.merge(layerScripted({ turns: ["hi"] }), layer))
      )
      yield* run
      const error = yield* Effect.flip(run)
      assert.deepInclude(error, { _tag: "TraceError", operation: "open" })
      rmSync(directory, { recursive: true })
    })
  )

  it.effect("39: a replay finds each outcome by its call, also after a call that was denied or never ran", () =>
    Effect.gen(function* () {
      const turn = calls(["send", { to: "bob" }], ["add", { a: 1, b: 1 }])
      const denied = yield* play([turn, add(5), add(6), "done"]).pipe(Effect.provideService(Approval, denyAll))
      assert.isTrue((yield* verdictOf(records(denied.text))).same)
      const limited = yield* play([calls(["add", { a: 1, b: 1 }], ["add", { a: 2, b: 2 }])], {
        limits: { toolCalls: 1 }
      })
      assert.isTrue((yield* verdictOf(records(limited.text))).same)
    })
  )

  it.effect("40: a skipped call is no mismatch, and an empty trace is no match", () =>
    Effect.gen(function* () {
      const { text } = yield* play([calls(["clarify", { question: "?" }], ["add", { a: 1, b: 1 }])])
      assert.include(types(text), "call_skipped")
      assert.isTrue((yield* verdictOf(records(text))).same)
      assert.strictEqual((yield* Effect.flip(verdictOf([])))._tag, "ReplayError")
    })
  )

  it.effect("41: a replay compares whole results, failures too, and plays the model's turns", () =>
    Effect.gen(function* () {
      const { text } = yield* play([
        call("broken", { how: "error" }),
        call("save", { name: "a", content: "x" }),
        "done"
      ])
      const all = records(text)
      const failure = yield* verdictOf(edited(all, "tool_execution_finished", { failure_kind: "crashed" }))
      assert.isDefined(failure.divergence)
      const turn = yield* verdictOf(edited(all, "model_call_finished", { text: add(1) }))
      assert.isDefined(turn.divergence)
      const name = yield* verdictOf(edited(all, "tool_call_validated", { arguments: { how: "defect" } }))
      assert.strictEqual(name.divergence?.path, "data.arguments.how")
    })
  )

  it.effect("43: the timeline names the tool of every call and shows the limit that ended a run", () =>
    Effect.gen(function* () {
      const { text } = yield* play([calls(["add", { a: 1, b: 1 }], ["nope", {}]), add(2)], {
        limits: { modelTurns: 1 }
      })
      const rows = records(text).flatMap((record) => rowOf(record) ?? [])
      const of = (label: string) => rows.filter((row) => row.label === label).map((row) => row.detail)
      assert.match(of("call")[0] ?? "", /^add/)
      assert.match(of("REJECTED")[0] ?? "", /^nope/)
      assert.deepStrictEqual(of("STOPPED"), ["limit · model_turns"])
    })
  )

  it.effect(
    "45: the validator is there for everybody, and a trace with an event removed or repeated does not pass",
    () =>
      Effect.gen(function* () {
        const { text } = yield* play([add(1), "done"])
        assert.isTrue(validateText(text).ok)
        const all = textLines(text)
        for (let at = 1; at < all.length - 1; at++) {
          const without = [...all.slice(0, at), ...all.slice(at + 1)]
          const twice = [...all.slice(0, at), all[at], ...all.slice(at)]
          assert.isFalse(validateText(`${without.join("\n")}\n`).ok, `without ${at}`)
          assert.isFalse(validateText(`${twice.join("\n")}\n`).ok, `twice ${at}`)
        }
      })
  )

  it.effect("46: each line holds the digest of the line before, so that no line can be changed unseen", () =>
    Effect.gen(function* () {
      const { text } = yield* play([add(1), "done"])
      const all = textLines(text)
      for (const [at, line] of all.entries()) {
        const prev = at === 0 ? "0".repeat(64) : hash("sha256", all[at - 1]!)
        assert.strictEqual((JSON.parse(line) as { readonly prev: string }).prev, prev)
      }
      const changed = all.map((line, at) => (at === 5 ? line.replace('"span":[', '"span": [') : line))
      assert.notDeepEqual(changed, all)
      assert.isFalse(validateText(`${changed.join("\n")}\n`).ok)
    })
  )

  it.effect("47: a record that cannot be written ends the run as failed, and nothing runs that is not on it", () =>
    Effect.gen(function* () {
      const { performed, registry } = yield* TestTools.make()
      const layer = layerScripted({ turns: [add(1), "never"] })
      let broken = false
      const failing = Layer.effect(
        TraceWriter,
        Effect.map(TraceWriter, (writer) =>
          TraceWriter.of({
            open: (runId, options) =>
              Effect.map(writer.open(runId, options), (trace) => ({
                ...trace,
                append: (...events) => {
                  broken ||= events.some((event) => event.type === "tool_execution_started")
                  return broken
                    ? Effect.fail(new TraceError({ operation: "append", message: "the disk is full" }))
                    : trace.append(...events)
                }
              }))
          })
        )
      ).pipe(Layer.provide(layer))
      const outcome = yield* Agent.run({ task: "t", tools: registry }).pipe(Effect.provide(Layer.merge(layer, failing)))
      assert.deepInclude(outcome.stop, { _tag: "Failed", class: "trace" })
      assert.deepStrictEqual(performed, [])
    })
  )

  it.effect("48: without content a trace holds lengths and keyed digests in its place, everywhere", () =>
    Effect.gen(function* () {
      const secret = "Kq7secretZw9"
      const turns = [call("add", { a: secret }), call(secret, { secret }), `<tool_call>\n{${secret}`, secret]
      const { text } = yield* play(turns, { task: secret, system: secret, trace: { content: false } } as never)
      assert.notInclude(text, secret)
      assert.notInclude(text, hash("sha256", secret))
      const spoke = records(text).find((record) => record.event_type === "model_call_finished")
      assert.deepStrictEqual(Object.keys(spoke?.data["text"] as object), ["bytes", "hmac"])
      assert.strictEqual(show(spoke?.data["text"]), `(${Buffer.byteLength(turns[0]!)} bytes, not recorded)`)
    })
  )

  it.effect(
    "49: the provenance has system text, sampling, limits, policy, risks and codec, and time begins with the run",
    () =>
      Effect.gen(function* () {
        yield* TestClock.adjust(90_000)
        const { registry } = yield* TestTools.make()
        yield* Agent.run({ task: "t", tools: registry, system: "S", trace: { content: true } }).pipe(
          Effect.provideService(Approval, allowAll)
        )
        const [started, provenance] = records((yield* MemoryTraces).text("run-1"))
        assert.strictEqual(started?.t_ms, 0)
        assert.containsAllKeys(started?.data["limits"], ["outputTokens", "resultBytes", "toolMillis", "wallMillis"])
        assert.deepInclude(provenance?.data, { system: "S", codec: "qwen2.5", policy: "allow-all" })
        assert.containsAllKeys(provenance?.data["sampling"], ["temperature", "topK", "topP", "seed"])
        const tools = provenance?.data["tools"] as ReadonlyArray<{ readonly risk: string }>
        assert.deepStrictEqual([...new Set(tools.map(({ risk }) => risk))].sort(), ["external", "local-write", "read"])
      }).pipe(Effect.provide(layerScripted({ turns: ["hi"] })))
  )
})
