import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { complaintOf, Fault, refused, reported, retryAfter, said, thrown } from "../../src/engine/OpenAiFault.ts"

const of = (status: number, body: unknown) =>
  refused("S", { status, body: typeof body === "string" ? body : JSON.stringify(body), after: undefined }, "sesame")

describe("what a server says", () => {
  it("is one line of bounded length, without the key and without characters that act", () => {
    assert.strictEqual(said("a\r\n\tb\u0000c\u202ed \u001b[1m sesame", "sesame"), "a b c d [1m [key]")
    const long = said(`${"x".repeat(299)}😀${"y".repeat(50)}`, undefined)
    assert.strictEqual(long, `${"x".repeat(299)}…`)
  })

  it("is found in each form servers have for a failure", () => {
    const forms = [
      { error: { message: "m", type: "t", code: 1 } },
      { error: "m" },
      { detail: "m" },
      { object: "error", message: "m" }
    ]
    for (const form of forms) assert.strictEqual(complaintOf(form)?.message, "m")
    for (const none of [undefined, null, 1, "m", [], {}, { message: "m" }]) assert.isUndefined(complaintOf(none))
  })
})

describe("a response that is no success", () => {
  it("is worth asking again where time may help, and only there", () => {
    const again = [408, 409, 425, 429, 500, 502, 503, 504, 529]
    for (const status of again) assert.isTrue(of(status, "").again, String(status))
    for (const status of [301, 307, 400, 401, 403, 404, 405, 413, 422, 501]) assert.isFalse(of(status, "").again)
  })

  it("says what it is, and what to do", () => {
    assert.strictEqual(of(400, { error: { message: "bad sesame." } }).error.message, "S answers 400: bad [key].")
    assert.include(of(401, "").error.message, "WRIT_API_KEY")
    assert.include(of(404, "<!doctype html>").error.message, "a page of HTML. Check the address and the model's name.")
    assert.include(of(302, "").error.message, "not followed")
    assert.strictEqual(of(501, "").error.reason, "unsupported")
  })

  it("is no retry where the prompt is too long, whatever the status or place it is said in", () => {
    assert.strictEqual(of(400, { error: { code: "context_length_exceeded" } }).error.reason, "context_overflow")
    const inStream = reported("S", { message: "too big", words: "exceed_context_size_error" }, undefined)
    assert.deepStrictEqual([inStream.error.reason, inStream.again], ["context_overflow", false])
    assert.isTrue(reported("S", { message: "busy", words: "" }, undefined).again)
  })
})

describe("Retry-After", () => {
  it("is seconds or a date, and nothing else", () => {
    const now = Date.UTC(2026, 10, 30, 12, 0, 0)
    assert.strictEqual(retryAfter("3", now), 3000)
    for (const absurd of ["99999999999", "9".repeat(400)]) assert.isAbove(retryAfter(absurd, now) ?? 0, 1e12)
    assert.strictEqual(retryAfter("Mon, 30 Nov 2026 12:00:10 GMT", now), 10_000)
    assert.strictEqual(retryAfter("Mon, 30 Nov 2026 11:00:00 GMT", now), 0)
    for (const other of [undefined, "", "soon", "-1x", "-5", "1.5", "5, 7"])
      assert.isUndefined(retryAfter(other, now), String(other))
  })
})

describe("what is thrown while a server is heard", () => {
  it.effect("is a failure where it is a fault of the server's, and a defect where it is one of ours", () =>
    Effect.gen(function* () {
      const thrownBy = (cause: unknown) =>
        Effect.exit(
          Effect.try({
            try: () => {
              throw cause
            },
            catch: thrown
          })
        )
      const fault = new Fault("failed", "S sends nonsense.")
      assert.deepStrictEqual(yield* thrownBy(fault), Exit.fail(fault))
      const bug = yield* thrownBy(new TypeError("x is undefined"))
      assert.isTrue(Exit.isFailure(bug) && Cause.hasDies(bug.cause) && !Cause.hasFails(bug.cause))
    })
  )
})
