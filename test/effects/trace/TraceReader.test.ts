import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as fc from "fast-check"
import { type Item, Lines, read, readFile, readLine } from "../../../src/effects/trace/TraceReader.ts"
import { directory } from "../../kit/cli.ts"
import { play } from "../../kit/run.ts"
import { call } from "../../kit/script.ts"

/** A real trace whose text has characters of one to four bytes. */
const recorded = Effect.map(
  play([call("add", { a: 2, b: 3 }), "Grüße aus 東京 – 🦀 fünf."], { trace: { content: true, tokenEvents: true } }),
  ({ text }) => Buffer.from(text)
)

const itemsOf = (bytes: Uint8Array, sizes: ReadonlyArray<number> = []): ReadonlyArray<Item> => {
  const lines = new Lines()
  const items: Array<Item> = []
  let at = 0
  for (const size of sizes) {
    items.push(...lines.push(bytes.subarray(at, at + size)))
    at += size
  }
  items.push(...lines.push(bytes.subarray(at)), ...lines.end())
  return items
}

const events = (items: ReadonlyArray<Item>) => items.filter((item) => item._tag === "Event")

describe("reading a trace", () => {
  it.effect("gives every whole line before any cut, and reports the cut line", () =>
    Effect.gen(function* () {
      const bytes = yield* recorded
      const whole = events(itemsOf(bytes))
      assert.isAbove(whole.length, 20)
      assert.isTrue(
        bytes.some((byte) => byte >= 0xf0),
        "the trace has a character of four bytes"
      )
      let breaks = 0
      for (let cut = 0; cut <= bytes.length; cut++) {
        const items = itemsOf(bytes.subarray(0, cut))
        const found = events(items)
        const partial = items.filter((item) => item._tag === "Unreadable")
        // Without its newline the last line may be whole all the same.
        const atLineEnd = bytes[cut] === 0x0a
        assert.strictEqual(found.length, atLineEnd ? breaks + 1 : breaks)
        const open = cut > 0 && bytes[cut - 1] !== 0x0a && !atLineEnd
        assert.deepStrictEqual(
          partial.map((item) => [item.line, item.cut]),
          open ? [[breaks + 1, true]] : []
        )
        if (bytes[cut] === 0x0a) breaks++
      }
      assert.deepStrictEqual(events(itemsOf(bytes.subarray(0, bytes.length))), whole)
    })
  )

  it.effect("does not depend on how the bytes arrive", () =>
    Effect.gen(function* () {
      const bytes = yield* recorded
      const whole = itemsOf(bytes)
      fc.assert(
        fc.property(fc.array(fc.nat(300), { maxLength: 60 }), (sizes) => {
          assert.deepStrictEqual(itemsOf(bytes, sizes), whole)
        })
      )
      const streamed = yield* Stream.runCollect(
        read(Stream.fromIterable([...bytes].map((byte) => Uint8Array.of(byte))))
      )
      assert.deepStrictEqual([...streamed], whole)
    })
  )

  it.effect("survives any damage: the lines it did not touch are read", () =>
    Effect.gen(function* () {
      const bytes = yield* recorded
      const whole = events(itemsOf(bytes))
      fc.assert(
        fc.property(fc.nat(bytes.length - 1), fc.integer({ min: 0, max: 255 }), (at, value) => {
          const damaged = Buffer.from(bytes)
          damaged[at] = value
          const before = bytes.subarray(0, at).filter((byte) => byte === 0x0a).length
          const found = events(itemsOf(damaged))
          assert.deepStrictEqual(found.slice(0, before), whole.slice(0, before))
          // One byte can break a line, split it, or join it with the next.
          assert.isAtLeast(found.length, whole.length - 2)
        })
      )
    })
  )

  it("reports a bad line in the middle with number, offset and reason", () => {
    const good =
      '{"schema":"writ.trace.v1","run_id":"r","seq":0,"event_type":"x","t_ms":0,"step":"run","phase":null,"data":{}}'
    const text = Buffer.concat([
      Buffer.from(`${good}\nnot json\n\n${good}\r\n`),
      Buffer.from([0xff, 0xfe, 0x0a]),
      Buffer.from(`{"schema":"other"}\n[]\n${good}`)
    ])
    const found = itemsOf(text).map((item) => (item._tag === "Event" ? item.line : [item.line, item.reason]))
    assert.deepStrictEqual(found, [
      1,
      [2, "it is not JSON"],
      4,
      [5, "it is not UTF-8"],
      [6, "it is not of a known trace schema"],
      [7, "it is not an object"],
      8
    ])
    const bad = itemsOf(text).find((item) => item._tag === "Unreadable")
    assert.deepStrictEqual(bad, {
      _tag: "Unreadable",
      line: 2,
      offset: good.length + 1,
      bytes: 8,
      reason: "it is not JSON",
      cut: false
    })
  })

  it("skips a line that is too long without keeping it", () => {
    const lines = new Lines(100)
    const items = [
      ...lines.push(Buffer.alloc(80, "a")),
      ...lines.push(Buffer.alloc(80, "a")),
      ...lines.push(Buffer.from("\n")),
      ...lines.end()
    ]
    assert.deepStrictEqual(
      items.map((item) => item._tag === "Unreadable" && [item.bytes, item.reason]),
      [[160, "it is longer than 100 bytes"]]
    )
  })

  it("reads the envelopes of the other schema it knows", () => {
    const line =
      '{"schema":"ember.agent.trace.v1","run_id":"run-1","seq":0,"event_type":"run_started","t_ms":0.1,"ts_epoch_ms":1,"step":"run","phase":null,"data":null}'
    const found = readLine(Buffer.from(line))
    assert.deepStrictEqual(typeof found === "string" ? found : [found.schema, found.data], ["ember.agent.trace.v1", {}])
  })

  it.live("reads a file, and says which file it could not read", () =>
    Effect.gen(function* () {
      const folder = yield* directory
      const bytes = yield* recorded
      writeFileSync(join(folder, "trace.jsonl"), bytes)
      const items = yield* Stream.runCollect(readFile(join(folder, "trace.jsonl")))
      assert.deepStrictEqual([...items], itemsOf(bytes))
      const failed = yield* Effect.flip(Stream.runDrain(readFile(join(folder, "none.jsonl"))))
      assert.include(failed.message, "none.jsonl cannot be read")
    })
  )
})
