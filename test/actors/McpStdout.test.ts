import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { McpStdout, type StdoutLimits } from "../../src/actors/McpStdout.ts"

const limits: StdoutLimits = { messageBytes: 1000, strayBytes: 5000, requests: 3 }

/** `asked`: the ids of our requests. */
const heard = (chunks: ReadonlyArray<Uint8Array>, asked: ReadonlyArray<string | number> = [1, 2]) => {
  let changes = 0
  const stdout = new McpStdout(limits, () => changes++)
  for (const id of asked) stdout.expect(id)
  const passed = Buffer.concat(chunks.map((chunk) => stdout.push(chunk))).toString()
  return { passed, changes, dropped: stdout.dropped, fault: stdout.fault }
}

const bytes = (...lines: ReadonlyArray<string>) => Buffer.from(lines.map((line) => `${line}\n`).join(""))

describe("what a server writes", () => {
  it("passes where it is an answer or a request, in the form the protocol reads", () => {
    const { passed } = heard([
      bytes(
        '{"id":1,"result":{},"extra":true}',
        '{"jsonrpc":"2.0","id":"a","method":"ping","params":{}}',
        '{"id":2,"error":{"code":1,"message":"m"}}'
      )
    ])
    assert.deepStrictEqual(passed.trim().split("\n"), [
      '{"jsonrpc":"2.0","id":1,"result":{}}',
      '{"jsonrpc":"2.0","id":"a","method":"ping","params":{}}',
      '{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"m"}}'
    ])
  })

  it("is dropped where it is neither, and counted", () => {
    const lines = ["hello", "{", "null", "7", "[]", '{"a":1}', '{"id":1}', '{"id":{},"method":"m"}', "\u0000"]
    const { dropped, fault, passed } = heard([bytes(...lines)])
    assert.deepStrictEqual([dropped, fault, passed], [8, undefined, ""])
  })

  it("is read apart where several messages share a line", () =>
    assert.deepStrictEqual(
      heard([bytes('[{"id":1,"result":1},{"id":2,"result":2}]')])
        .passed.trim()
        .split("\n").length,
      2
    ))

  it("is noted where it says that the list changed", () =>
    assert.strictEqual(
      heard([bytes('{"method":"notifications/tools/list_changed"}', '{"method":"notifications/message"}')]).changes,
      1
    ))

  it("ends the conversation where one message is too long, whole or without an end", () => {
    for (const text of [`"${"x".repeat(1001)}"\n`, "x".repeat(1001)]) {
      assert.include(heard([Buffer.from(text)]).fault?.detail, "more than 1000 bytes")
    }
  })

  it("ends the conversation where too much of it is no answer, and answers start the count anew", () => {
    const note = JSON.stringify({ method: "m", params: "x".repeat(900) })
    const answer = '{"id":1,"result":1}'
    assert.include(heard([bytes(...Array(6).fill(note))]).fault?.detail, "more than 5000 bytes")
    assert.isUndefined(heard([bytes(...Array(4).fill(note), answer, ...Array(4).fill(note))]).fault)
    assert.isDefined(heard([Buffer.from("\n".repeat(5001))]).fault)
  })

  it("is no answer where nobody asked, or where the answer came before", () => {
    const answer = (id: unknown) => JSON.stringify({ id, result: "x".repeat(900) })
    const { dropped, fault, passed } = heard([bytes(answer(1), answer(1), answer(3), answer("2"), answer(2))])
    assert.deepStrictEqual([dropped, fault, passed.trim().split("\n").length], [3, undefined, 2])
    assert.include(heard([bytes(...Array(6).fill(answer(7)))]).fault?.detail, "more than 5000 bytes")
    assert.include(heard([bytes(...Array(7).fill(answer(1)))]).fault?.detail, "more than 5000 bytes")
    const ask = (id: number) => JSON.stringify({ id, method: "roots/list" })
    assert.isDefined(heard([bytes(...[1, 2, 3, 4].flatMap((id) => [ask(id), answer(9)]))]).fault)
  })

  it("ends the conversation where it is requests without answers", () => {
    const ask = (id: number) => JSON.stringify({ id, method: "roots/list" })
    assert.isUndefined(heard([bytes(ask(1), ask(2), ask(3), '{"id":1,"result":1}', ask(4))]).fault)
    assert.include(heard([bytes(ask(1), ask(2), ask(3), ask(4))]).fault?.detail, "more than 3 requests")
  })

  it("is nothing any more after a fault", () => {
    const { passed } = heard([Buffer.from("x".repeat(1001)), bytes('{"id":1,"result":1}')])
    assert.strictEqual(passed, "")
  })

  it("comes to the same however it is cut", () => {
    const line = fc.oneof(
      fc.string({ unit: "binary", maxLength: 30 }).map((text) => text.replaceAll("\n", " ")),
      fc.record({ id: fc.integer(), result: fc.json() }).map((one) => JSON.stringify(one)),
      fc
        .record({
          method: fc.constantFrom("ping", "notifications/tools/list_changed"),
          id: fc.option(fc.integer(), { nil: undefined })
        })
        .map((one) => JSON.stringify(one))
    )
    fc.assert(
      fc.property(
        fc.array(line, { maxLength: 12 }),
        fc.array(fc.nat(40), { minLength: 1, maxLength: 60 }),
        (texts, sizes) => {
          const whole = bytes(...texts)
          const chunks: Array<Uint8Array> = []
          for (let at = 0, n = 0; at < whole.length; n++) {
            const size = Math.max(1, sizes[n % sizes.length]!)
            chunks.push(whole.subarray(at, at + size))
            at += size
          }
          assert.deepStrictEqual(heard(chunks), heard([whole]))
        }
      )
    )
  })
})
