/**
 * The trace and the tools that read it: what the inventory of the predecessor names in 8.5, each as the claim that holds
 * here.
 */
import { hash } from "node:crypto"
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { layerInline } from "../../src/actors/ToolPool.ts"
import * as TraceWriters from "../../src/actors/TraceWriter.ts"
import { TraceError, TraceWriter } from "../../src/actors/TraceWriter.ts"
import * as Agent from "../../src/effects/Agent.ts"
import { Approval, allowAll, denyAll } from "../../src/effects/Policy.ts"
import { replay } from "../../src/effects/trace/Replay.ts"
import { replayCalls } from "../../src/effects/trace/ReplayCalls.ts"
import { ofText } from "../../src/effects/trace/report/HtmlReport.ts"
import { diff } from "../../src/effects/trace/TraceDiff.ts"
import { follow } from "../../src/effects/trace/TraceFollow.ts"
import { Lines, readLine, type TraceRecord } from "../../src/effects/trace/TraceReader.ts"
import { spansOf } from "../../src/effects/trace/TraceSpans.ts"
import { RunCounter, statsOf } from "../../src/effects/trace/TraceStats.ts"
import { rowOf, show } from "../../src/effects/trace/TraceTimeline.ts"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import { foreign } from "../kit/page.ts"
import { rekeyed, runOf } from "../kit/records.ts"
import { type KitOptions, play } from "../kit/run.ts"
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
      // And one that was put together by hand is known for what it is.
      const text = readFileSync(join(directory, "trace.jsonl"), "utf8")
      const verdict = validateText(text + text.replaceAll(/"run_id":"[^"]*"/g, '"run_id":"another"'))
      assert.includeMembers(
        verdict.violations.map(({ invariant }) => invariant),
        ["T03", "T04", "T11"]
      )
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
      const { registry: tools } = yield* TestTools.make()
      const again = (run: string) =>
        Effect.map(
          replayCalls(runOf(run), { tools, settings: { fixtures: {} } }).pipe(Effect.provide(layerInline())),
          ({ matched, skipped, verdict }) => ({ matched, skipped, verdict })
        )
      const some = yield* play([calls(["send", { to: "bob" }], ["add", { a: 1, b: 1 }]), "done"]).pipe(
        Effect.provideService(Approval, denyAll)
      )
      assert.deepStrictEqual(yield* again(some.text), { matched: 1, skipped: 1, verdict: "match" })
      assert.deepStrictEqual(yield* again(text), { matched: 0, skipped: 2, verdict: "nothing to compare" })
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

  it.effect(
    "42: a comparison looks at answers without content too, at calls, results, artifacts and provenance, and names a prefix",
    () =>
      Effect.gen(function* () {
        const turns = (a: number, content: string, answer: string) => [
          add(a),
          call("save", { name: "a.txt", content }),
          answer
        ]
        const runWith = (a: number, content: string, answer: string, options: KitOptions = {}) =>
          Effect.map(play(turns(a, content, answer), options), ({ text }) => text)
        const between = (a: string, b: string) => diff(runOf(a), runOf(b))
        const text = yield* runWith(1, "hi", "done")
        assert.strictEqual(between(text, text).verdict, "same")
        const other = between(text, yield* runWith(2, "ho", "Done."))
        for (const aspect of ["arguments", "results", "artifacts", "answers"] as const) {
          assert.strictEqual(other.aspects[aspect], "different", aspect)
        }
        const seeded = between(text, yield* runWith(1, "hi", "done", { sampling: { seed: 7 } }))
        assert.deepStrictEqual([seeded.aspects.provenance, seeded.aspects.answers], ["different", "same"])
        const hidden = { trace: { content: false } }
        const without = yield* runWith(1, "hi", "done", hidden)
        const longer = between(without, rekeyed(yield* runWith(1, "hi", "done, I think", hidden)))
        assert.strictEqual(longer.aspects.answers, "different")
        const unknown = between(without, rekeyed(yield* runWith(1, "hi", "gone", hidden)))
        assert.strictEqual(unknown.aspects.answers, "undetermined")
        assert.isTrue(unknown.notes.some((note) => note.includes("different keys")))
        assert.strictEqual(between(text, textLines(text).slice(0, 12).join("\n")).prefix, "b")
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

  it.effect("44: the report escapes all of a trace, the quantization too, and its bars end at their own finish", () =>
    Effect.gen(function* () {
      const { text } = yield* play([add(1), "done"])
      const evil = '"><script>alert(1)</script>'
      const model = { name: "m.gguf", architecture: "llama", quantization: evil }
      const crafted = edited(records(text), "provenance", { model })
      const moved = crafted.map((record, index) => {
        // The tool ends at once, and nothing else happens for a while.
        const finish = crafted.findIndex(({ event_type }) => event_type === "tool_execution_finished")
        return { ...record, t_ms: index < finish ? 0 : index === finish ? 100 : 1_000 }
      })
      const page = ofText(moved.map((record) => JSON.stringify(record)).join("\n")).pieces.join("")
      assert.include(page, "llama · &quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;")
      assert.deepStrictEqual(foreign(page), [])
      assert.match(page, /<rect class="bar tool good" x="0%" y="\d+" width="10%"/)
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

  it.live(
    "50: a run becomes OpenTelemetry spans and a page, can be watched while it is written, and many runs can be counted",
    () =>
      Effect.gen(function* () {
        const { text } = yield* play([add(1), "done"])
        const [root, ...others] = spansOf(runOf(text), { epochMillis: 0 })
        assert.isUndefined(root?.parentSpanId)
        assert.deepStrictEqual(
          others.map(({ name, parentSpanId }) => [name, parentSpanId]),
          ["chat script", "chat script", "execute_tool add"].map((name) => [name, root?.spanId])
        )
        const page = ofText(text).pieces.join("")
        for (const shown of ["<svg", "add", "run_completed"]) assert.include(page, shown)
        const directory = mkdtempSync(join(tmpdir(), "writ-ember-"))
        const path = join(directory, "trace.jsonl")
        writeFileSync(path, `${textLines(text).slice(0, 5).join("\n")}\n`)
        const seen: Array<string> = []
        yield* Stream.runForEach(follow(path), (item) =>
          Effect.sync(() => {
            if (item._tag === "Event") seen.push(item.record.event_type)
            if (seen.length === 5) appendFileSync(path, `${textLines(text).slice(5).join("\n")}\n`)
          })
        )
        assert.deepStrictEqual(seen, [...types(text)])
        rmSync(directory, { recursive: true })
        const counter = new RunCounter()
        for (const record of records(text)) counter.see(record)
        const stats = statsOf([counter.end("a"), counter.end("b")])
        assert.deepInclude(stats, { runs: 2, calls: 2, turns: 4 })
        assert.strictEqual(stats.outcomes["completed"], 2)
      })
  )

  it.effect(
    "50: what a redaction rule names is in no trace and in nothing made of it, and the trace is still believed",
    () =>
      Effect.gen(function* () {
        const secret = "Kq7secretZw9"
        const turns = [call("add", { a: secret }), call("save", { name: secret, content: `a ${secret}` }), secret]
        const trace = { content: true, redact: [{ name: "canary", pattern: "Kq7\\w+" }] }
        const { context, outcome, text } = yield* play(turns, { task: secret, trace })
        assert.strictEqual(outcome.text, secret)
        assert.include(context, secret)
        const made = [ofText(text).pieces.join(""), JSON.stringify(spansOf(runOf(text), { epochMillis: 0 }))]
        for (const written of [text, ...made]) {
          assert.notInclude(written, secret)
          assert.notInclude(written, hash("sha256", secret))
          assert.include(written, "[redacted: canary]")
        }
        assert.isTrue(validateText(text).ok)
        const refused = yield* Effect.flip(verdictOf(records(text)))
        assert.match(refused.message, /^redacted: /)
      })
  )
})
