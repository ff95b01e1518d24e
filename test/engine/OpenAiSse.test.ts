import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { SseFault, SseReader } from "../../src/engine/OpenAiSse.ts"

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

/** All events of a text that comes in parts cut at the given places. */
const read = (text: string, cuts: ReadonlyArray<number> = [], most?: number) => {
  const reader = new SseReader(most)
  const all = bytes(text)
  const places = [...new Set(cuts.map((cut) => cut % (all.length + 1)))].toSorted((a, b) => a - b)
  const out = []
  let from = 0
  for (const to of [...places, all.length]) {
    out.push(...reader.push(all.slice(from, to)))
    from = to
  }
  return [...out, ...reader.end()]
}

/** What a reading throws. */
const refusal = (reading: () => unknown): unknown => {
  try {
    return reading()
  } catch (cause) {
    return cause
  }
}

const message = (data: string) => ({ event: "message", data })

describe("server-sent events", () => {
  it("end with an empty line, whichever way lines end", () => {
    for (const line of ["\n", "\r\n", "\r"]) {
      assert.deepStrictEqual(read(`data: a${line}${line}data:b${line}${line}`), [message("a"), message("b")])
    }
  })

  it("join several lines of data, and drop one space behind the colon only", () => {
    assert.deepStrictEqual(read("data:  a\ndata\ndata: b\n\n"), [message(" a\n\nb")])
  })

  it("skip comments, unknown fields, and what has no data", () => {
    assert.deepStrictEqual(read(": ping\n\nid: 7\nretry: 1\n\nevent: x\n\ndata: a\n\n"), [message("a")])
  })

  it("carry the kind they were given, for one event", () => {
    assert.deepStrictEqual(read("event: error\ndata: {}\n\ndata: a\n\n"), [
      { event: "error", data: "{}" },
      message("a")
    ])
  })

  it("give a field called error as a failure", () => {
    assert.deepStrictEqual(read('error: {"code":500}\n\n'), [{ event: "error", data: '{"code":500}' }])
  })

  it("are given at the end of the stream without an empty line", () => {
    assert.deepStrictEqual(read("data: a\n\ndata: b"), [message("a"), message("b")])
  })

  it("are the same however the bytes are cut, inside characters too", () => {
    const line = fc.constantFrom("\n", "\r\n", "\r")
    const part = fc
      .tuple(fc.array(fc.string({ unit: "grapheme", maxLength: 12 }), { minLength: 1, maxLength: 3 }), line)
      .map(([values, end]) => ({
        text: values.map((value) => `data: ${value.replace(/[\r\n]/g, "é")}${end}`).join("") + end,
        data: values.map((value) => value.replace(/[\r\n]/g, "é")).join("\n")
      }))
    fc.assert(
      fc.property(fc.array(part, { maxLength: 6 }), fc.array(fc.nat(), { maxLength: 12 }), (parts, cuts) => {
        const whole = parts.map(({ text }) => text).join("")
        assert.deepStrictEqual(
          read(whole, cuts),
          parts.map(({ data }) => message(data))
        )
      })
    )
  })

  it("are refused when one is longer than it may be, in one line or in many", () => {
    assert.instanceOf(
      refusal(() => read(`data: ${"a".repeat(100)}`, [], 50)),
      SseFault
    )
    assert.instanceOf(
      refusal(() => read("data: aaaa\n".repeat(20), [], 50)),
      SseFault
    )
    assert.strictEqual(read("data: aaaa\n\n".repeat(20), [], 50).length, 20)
  })

  it("are refused when they are no UTF-8, also when the stream ends inside a character", () => {
    assert.instanceOf(
      refusal(() => new SseReader().push(Uint8Array.of(0x64, 0xff, 0xfe))),
      SseFault
    )
    const reader = new SseReader()
    reader.push(Uint8Array.of(0x64, 0xe2, 0x82))
    assert.instanceOf(
      refusal(() => reader.end()),
      SseFault
    )
  })

  it("have begun with the first event, not with a sign of life", () => {
    const reader = new SseReader()
    reader.push(bytes(": ping\n\n"))
    assert.isFalse(reader.begun)
    reader.push(bytes("data: a\n\n"))
    assert.isTrue(reader.begun)
  })
})
