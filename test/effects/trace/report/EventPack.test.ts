import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { EventPack } from "../../../../src/effects/trace/report/EventPack.ts"
import { json, Room } from "../../../../src/effects/trace/report/Markup.ts"
import { foreign, hostile, unpacked } from "../../../kit/page.ts"

const row = { kind: 1, failed: false, seq: 7, seconds: "0.007", place: "tool-0", type: "tool_execution_finished" }

const pagesOf = (pack: EventPack): string =>
  pack
    .end()
    .map(({ value }) => value)
    .join("")

describe("EventPack", () => {
  it("whatever stands in a row is one line of seven fields, and the block is nothing but base64", () => {
    const texts = fc.oneof(fc.constantFrom(...hostile), fc.string({ unit: "binary" }), fc.constant("\t\n\r\t"))
    fc.assert(
      fc.property(texts, texts, texts, (place, type, text) => {
        const pack = new EventPack(new Room(1_000_000))
        pack.add({ ...row, place, type, data: json({ text }) })
        pack.add({ ...row, failed: true, data: "{}" })
        const page = pagesOf(pack)
        assert.deepStrictEqual(foreign(page), [])
        const [first, second, ...more] = unpacked(page)
        assert.deepStrictEqual(more, [])
        assert.strictEqual(second, "1!\t\t7\t0.007\ttool-0\ttool_execution_finished\t{}")
        const fields = first!.split("\t")
        assert.strictEqual(fields.length, 7)
        assert.deepStrictEqual(JSON.parse(fields[6]!), { text })
      })
    )
  })

  it("long data is cut and says how long it was, and the whole has bounds", () => {
    const pack = new EventPack(new Room(20_000))
    for (let seq = 0; seq < 4; seq++) pack.add({ ...row, seq, data: json("<".repeat(5_000_000)) })
    const lines = unpacked(pagesOf(pack)).map((line) => line.split("\t"))
    assert.deepStrictEqual(
      lines.map(([, whole, , , , , data]) => [whole, data!.length]),
      [
        ["5000002", 8_000],
        ["5000002", 8_000],
        ["5000002", 4_000],
        ["5000002", 120]
      ]
    )
  })

  it("nothing is lost between blocks", () => {
    const pack = new EventPack(new Room(64_000_000))
    const data = json({ text: "é".repeat(4_000) })
    for (let seq = 0; seq < 300; seq++) pack.add({ ...row, seq, data })
    const page = pagesOf(pack)
    assert.isAbove(page.split("<script").length, 3)
    const lines = unpacked(page).map((line) => line.split("\t"))
    assert.deepStrictEqual(
      lines.map((fields) => Number(fields[2])),
      Array.from({ length: 300 }, (_, seq) => seq)
    )
    assert.isTrue(lines.every((fields) => fields[6] === data))
  })
})
