import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { ToolOutcome } from "../../src/tools/ToolCall.ts"
import { decodeReply, encodeFrame, encodeReply, FrameReader } from "../../src/tools/WorkerFrame.ts"

const bytes = fc.uint8Array({ maxLength: 40 })
const text = fc.string({ unit: "binary", maxLength: 20 }).filter((value) => value.isWellFormed())

const staged = fc.record({
  sql: text,
  parameters: fc.array(fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null), fc.bigInt(), bytes), {
    maxLength: 3
  })
})

const outcome: fc.Arbitrary<ToolOutcome> = fc.oneof(
  fc.record({
    _tag: fc.constant("Succeeded" as const),
    result: fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value))),
    artifacts: fc.array(fc.record({ name: text, mediaType: text, bytes }), { maxLength: 3 }),
    staged: fc.array(staged, { minLength: 1, maxLength: 3 }),
    millis: fc.nat()
  }),
  fc.record({
    _tag: fc.constant("Failed" as const),
    kind: fc.constantFrom("crashed" as const, "not_found" as const),
    errors: fc.array(fc.record({ path: text, reason: text }), { maxLength: 3 }),
    effect: fc.constantFrom("none" as const, "unknown" as const),
    millis: fc.nat(),
    raw: fc.record({ name: text, mediaType: text, bytes })
  })
)

describe("WorkerFrame", () => {
  it("gives every reply back as it was, however the pipe cuts it", () =>
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(), outcome)), fc.integer({ min: 1, max: 50 }), (replies, step) => {
        const sent = Buffer.concat(replies.map(([id, outcome]) => encodeReply(id, { outcome })))
        const reader = new FrameReader(1_000_000)
        const got = []
        for (let at = 0; at < sent.byteLength; at += step) {
          for (const frame of reader.push(sent.subarray(at, at + step))) got.push(decodeReply(frame))
        }
        const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value, shown))
        assert.deepStrictEqual(plain(got), plain(replies.map(([id, outcome]) => ({ id, outcome }))))
      })
    ))

  it("refuses a frame that is too long before it has arrived", () => {
    const header = Buffer.alloc(8)
    header.writeUInt32BE(2_000, 0)
    assert.throws(() => new FrameReader(1_000).push(header), /2008 bytes, at most 1000/)
  })

  it("refuses what is no reply", () => {
    const replies: ReadonlyArray<string> = [
      "1",
      "[]",
      "{}",
      '{"id":1}',
      '{"id":-1,"outcome":{"_tag":"Succeeded","result":1,"millis":1},"artifacts":[],"staged":[]}',
      '{"id":1,"outcome":{"_tag":"Succeeded","millis":1},"artifacts":[],"staged":[]}',
      '{"id":1,"outcome":{"_tag":"Succeeded","result":1,"millis":1},"artifacts":[{"name":"a","mediaType":"b","size":5}],"staged":[]}',
      '{"id":1,"outcome":{"_tag":"Succeeded","result":1,"millis":1},"artifacts":[],"staged":[{"sql":1,"parameters":[]}]}',
      '{"id":1,"outcome":{"_tag":"Failed","kind":"fine","errors":[],"effect":"none","millis":1},"artifacts":[]}',
      '{"id":1,"outcome":{"_tag":"Failed","kind":"crashed","errors":[{"path":"","reason":1}],"effect":"none","millis":1},"artifacts":[]}',
      '{"id":1,"outcome":{"_tag":"Failed","kind":"crashed","errors":[],"effect":"some","millis":1},"artifacts":[]}'
    ]
    for (const json of replies) {
      assert.throws(() => decodeReply({ json: JSON.parse(json), data: new Uint8Array() }), /no reply/, json)
    }
    const nested = "[".repeat(20_000) + "]".repeat(20_000)
    const longer: ReadonlyArray<string> = [
      `{"id":1,"outcome":{"_tag":"Succeeded","result":${nested},"millis":1},"artifacts":[],"staged":[]}`,
      `{"id":1,"outcome":{"_tag":"Failed","kind":"not_found","errors":[{"path":"","reason":"${"y".repeat(2_000_000)}"}],"effect":"none","millis":1},"artifacts":[]}`,
      `{"id":1,"outcome":{"_tag":"Failed","kind":"not_found","errors":[{"path":"","reason":"","more":${nested}}],"effect":"none","millis":1},"artifacts":[]}`
    ]
    for (const json of longer) {
      assert.throws(
        () => decodeReply({ json: JSON.parse(json), data: new Uint8Array() }),
        /no reply/,
        json.slice(0, 90)
      )
    }
    const noise = new FrameReader(1_000)
    assert.throws(() => noise.push(encodeFrame("x").fill(0x7b, 8)))
  })
})

/** For comparison: bytes and big numbers in a form that JSON has. */
function shown(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return `${value}n`
  return value instanceof Uint8Array ? [...value] : value
}
