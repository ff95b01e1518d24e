import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { decode } from "../../src/tools/FileText.ts"

const reason = (bytes: ReadonlyArray<number>) => {
  const text = decode(Uint8Array.from(bytes))
  return typeof text === "string" ? undefined : text.reason
}

describe("FileText.decode", () => {
  it("names the byte, and what the file seems to be", () => {
    const said: ReadonlyArray<readonly [ReadonlyArray<number>, string]> = [
      [[0x61, 0xff], "it is not UTF-8 text (byte 1)"],
      [[0x89, 0x50, 0x4e, 0x47, 0x0d], "it is not UTF-8 text (byte 0); it looks like a PNG picture"],
      [[0xff, 0xfe, 0x61, 0x00], "it is not UTF-8 text (byte 0); it looks like text in UTF-16, and only UTF-8 is read"],
      [
        [0x50, 0x4b, 0x03, 0x04, 0x00],
        "it is a binary file (a NUL at byte 4); it looks like a ZIP archive or an office document"
      ],
      [[0xc3, 0xa9, 0x00], "it is a binary file (a NUL at byte 2)"]
    ]
    for (const [bytes, text] of said) assert.strictEqual(reason(bytes), text)
  })

  it("gives back every text without NUL, byte order mark included", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        fc.pre(!text.includes("\0"))
        assert.strictEqual(decode(Buffer.from(`\ufeff${text}`)), `\ufeff${text}`)
      })
    )
  })

  it("names the first byte of what is no text after a text", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme" }),
        fc.constantFrom([0xff], [0xc0, 0x80], [0xe2, 0x82], [0xed, 0xa0, 0x80]),
        (text, rest) => {
          const before = Buffer.from(text.replaceAll("\0", ""))
          const { reason: said } = decode(Buffer.concat([before, Buffer.from(rest)]), new Uint8Array(), 100) as {
            readonly reason: string
          }
          assert.strictEqual(said, `it is not UTF-8 text (byte ${100 + before.length})`)
        }
      )
    )
  })
})
