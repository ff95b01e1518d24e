import { createHmac, hash } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import fc from "fast-check"
import { genesis, type TraceInput } from "../../src/actors/TraceEvent.ts"
import { layerFile, layerMemory, MemoryTraces, makeHmac, TraceKey, TraceWriter } from "../../src/actors/TraceWriter.ts"
import { lines } from "../kit/script.ts"

const event = (call: string): TraceInput => ({
  type: "run_awaiting_approval",
  step: "finalize",
  data: { call } as never
})

const off = { content: false, tokenEvents: false }
const on = { content: true, tokenEvents: false }

const inFile = <A, E>(use: (writer: TraceWriter["Service"], path: string) => Effect.Effect<A, E>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "writ-trace-"))),
    (root) => {
      const path = join(root, "deep", "trace.jsonl")
      return Effect.flatMap(TraceWriter, (writer) => use(writer, path)).pipe(Effect.provide(layerFile(() => path)))
    },
    (root) => Effect.sync(() => rmSync(root, { recursive: true, force: true }))
  )

describe("a trace in a file", () => {
  it.live("has every event the moment it was appended, numbered and chained", () =>
    inFile((writer, path) =>
      Effect.scoped(
        Effect.gen(function* () {
          const trace = yield* writer.open("run-1", on)
          assert.deepStrictEqual([trace.path, trace.length()], [path, 0])
          yield* trace.append(event("a"))
          assert.strictEqual(lines(readFileSync(path, "utf8")).length, 1)
          yield* trace.append(event("b"), event("c"))
          const text = readFileSync(path, "utf8")
          const all = lines(text)
          assert.deepStrictEqual([all.map(({ seq }) => seq), trace.length()], [[0, 1, 2], 3])
          const raw = text.split("\n")
          for (const [at, { prev, run_id }] of all.entries()) {
            assert.strictEqual(prev, at === 0 ? genesis : hash("sha256", raw[at - 1]!))
            assert.strictEqual(run_id, "run-1")
          }
          assert.isTrue(text.endsWith("}\n"))
        })
      )
    )
  )

  it.live("is never appended to by another run", () =>
    inFile((writer, path) =>
      Effect.gen(function* () {
        yield* Effect.scoped(Effect.flatMap(writer.open("run-1", off), (trace) => trace.append(event("a"))))
        const before = readFileSync(path, "utf8")
        const error = yield* Effect.flip(Effect.scoped(writer.open("run-1", off)))
        assert.strictEqual(error.operation, "open")
        assert.strictEqual(readFileSync(path, "utf8"), before)
      })
    )
  )

  it.live("says so when its directory cannot be had", () =>
    Effect.acquireUseRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "writ-trace-"))),
      (root) =>
        Effect.gen(function* () {
          writeFileSync(join(root, "file"), "")
          const layer = layerFile(() => join(root, "file", "trace.jsonl"))
          const opened = Effect.flatMap(TraceWriter, (writer) => writer.open("run-1", off))
          const error = yield* Effect.flip(Effect.scoped(opened).pipe(Effect.provide(layer)))
          assert.include(error.message, "could not be opened")
        }),
      (root) => Effect.sync(() => rmSync(root, { recursive: true, force: true }))
    )
  )

  it.live("fails an append that could not be written, and writes it first when the next one can", () =>
    inFile((writer, path) =>
      Effect.scoped(
        Effect.gen(function* () {
          const trace = yield* writer.open("run-1", on)
          // What JSON cannot say cannot be written.
          const poison = { circle: undefined as unknown }
          poison.circle = poison
          const bad = { type: "run_started", step: "run", data: poison } as unknown as TraceInput
          const error = yield* Effect.flip(trace.append(bad))
          assert.strictEqual(error.operation, "append")
          assert.strictEqual(readFileSync(path, "utf8"), "")
          poison.circle = "mended"
          yield* trace.append(event("next"))
          const all = lines(readFileSync(path, "utf8"))
          assert.deepStrictEqual(
            all.map(({ data, seq }) => [seq, data["circle"] ?? data["call"]]),
            [
              [0, "mended"],
              [1, "next"]
            ]
          )
        })
      )
    )
  )
})

describe("content in a trace", () => {
  const key = new Uint8Array(32).fill(7)
  const layer = layerMemory.pipe(Layer.provideMerge(Layer.succeed(TraceKey, () => key)))
  const hmac = (text: string) => createHmac("sha256", key).update(text).digest("hex")

  it.effect("is length and keyed digest where it is off, for texts and values alike", () =>
    Effect.gen(function* () {
      const trace = yield* (yield* TraceWriter).open("run-1", off)
      assert.deepStrictEqual(trace.text("héllo"), { bytes: 6, hmac: hmac("héllo") })
      assert.deepStrictEqual(trace.json({ b: 1, a: [2.0] }), { bytes: 15, hmac: hmac('{"a":[2],"b":1}') })
      assert.strictEqual(trace.digest("0".repeat(64)), hmac("0".repeat(64)))
    }).pipe(Effect.provide(layer))
  )

  it.effect("is itself where it is on", () =>
    Effect.gen(function* () {
      const trace = yield* (yield* TraceWriter).open("run-1", on)
      assert.strictEqual(trace.text("héllo"), "héllo")
      assert.deepStrictEqual(trace.json({ b: 1 }), { b: 1 })
      assert.strictEqual(trace.digest("0".repeat(64)), "0".repeat(64))
    }).pipe(Effect.provide(layer))
  )

  it.effect("is equal for equal texts in one run, also after many others", () =>
    Effect.gen(function* () {
      const trace = yield* (yield* TraceWriter).open("run-1", off)
      const first = trace.text("same")
      for (let n = 0; n < 100; n++) trace.text(`other ${n}`)
      assert.deepStrictEqual(trace.text("same"), first)
    }).pipe(Effect.provide(layer))
  )
})

it.effect("time in a trace begins with the run", () =>
  Effect.gen(function* () {
    yield* TestClock.adjust(5_000)
    const trace = yield* (yield* TraceWriter).open("run-1", off)
    yield* trace.append(event("a"))
    yield* TestClock.adjust(1_500)
    trace.offer(event("b"))
    const [a, b] = lines((yield* MemoryTraces).text("run-1")) as unknown as ReadonlyArray<{
      readonly t_ms: number
      readonly ts_epoch_ms: number
    }>
    assert.deepStrictEqual([a?.t_ms, b?.t_ms], [0, 1_500])
    assert.deepStrictEqual([a?.ts_epoch_ms, b?.ts_epoch_ms], [5_000, 6_500])
  }).pipe(Effect.provide(layerMemory))
)

it("digests are the HMAC-SHA-256 that Node computes, for any key and text", () =>
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), fc.string({ unit: "binary" }), (key, text) => {
      assert.strictEqual(makeHmac(key)(text), createHmac("sha256", key).update(text).digest("hex"))
    })
  ))

it.effect("what was noted comes before what is appended next, and a flush hands it over", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const trace = yield* (yield* TraceWriter).open("run-1", on)
      const text = (yield* MemoryTraces).text
      trace.note(event("a"))
      assert.strictEqual(text("run-1"), "")
      assert.strictEqual(trace.length(), 1)
      yield* trace.append(event("b"))
      trace.note(event("c"))
      yield* trace.flush
      assert.deepStrictEqual(
        lines(text("run-1")).map((line) => [line.seq, line.data["call"]]),
        [
          [0, "a"],
          [1, "b"],
          [2, "c"]
        ]
      )
    })
  ).pipe(Effect.provide(layerMemory))
)
