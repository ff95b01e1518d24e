import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { McpStdin } from "../../src/effects/McpStdin.ts"

const passed = (chunks: ReadonlyArray<Uint8Array>, most?: number) => {
  const lines = new McpStdin(most)
  return Buffer.concat(chunks.map((chunk) => lines.push(chunk))).toString()
}

const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
const bytes = (...lines: ReadonlyArray<string>) => Buffer.from(lines.map((line) => `${line}\n`).join(""))

describe("what a client writes", () => {
  it("passes as it is where it is a request, a notification or a batch of them", () => {
    const lines = [
      ping,
      '{"jsonrpc":"2.0","method":"notifications/initialized"}',
      `[${ping}]`,
      '{"id":"a","method":"x","params":{}}'
    ]
    assert.strictEqual(passed([bytes(...lines)]), bytes(...lines).toString())
  })

  it("is dropped where it is anything else", () => {
    const lines = [
      "",
      "hello",
      "{",
      "{}",
      "[]",
      "[1]",
      "null",
      '{"id":{},"method":"x"}',
      '{"id":1,"result":{}}',
      "[".repeat(100_000),
      // The library writes it once more to read it, which this is too deep for.
      `{"id":1,"method":"x","params":{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}}`
    ]
    assert.strictEqual(passed([bytes(...lines, ping)]), `${ping}\n`)
  })

  it("is dropped where a line is too long, and the next one passes", () => {
    const long = JSON.stringify({ id: 1, method: "x".repeat(200) })
    assert.strictEqual(passed([bytes(long, ping)], 100), `${ping}\n`)
  })

  it("comes to the same however it is cut", () =>
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(ping, "x", "ä€𝄞", '{"method":"ü"}'), { maxLength: 8 }),
        fc.integer({ min: 1, max: 30 }),
        (lines, size) => {
          const whole = bytes(...lines)
          const chunks = Array.from({ length: Math.ceil(whole.length / size) }, (_, at) =>
            whole.subarray(at * size, (at + 1) * size)
          )
          assert.strictEqual(passed(chunks), passed([whole]))
        }
      )
    ))
})
