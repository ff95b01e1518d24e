import { assert, describe, it } from "@effect/vitest"
import { isForeign, isLoopback, isOwnHost } from "../../../src/effects/serve/Origins.ts"

describe("a server on loopback", () => {
  it("is one that only this machine reaches", () => {
    for (const host of ["127.0.0.1", "127.9.8.7", "localhost", "::1"]) assert.isTrue(isLoopback(host), host)
    for (const host of ["0.0.0.0", "::", "10.0.0.1", "127.0.0.1.example.org", "example.org"]) {
      assert.isFalse(isLoopback(host), host)
    }
  })

  it("is meant by names of loopback, with any port", () => {
    for (const host of ["localhost:8123", "127.0.0.1", "[::1]:1", "LOCALHOST"])
      assert.isTrue(isOwnHost(host, "127.0.0.1"), host)
    for (const host of [
      undefined,
      "",
      "evil.example",
      "evil.example:8123",
      "127.0.0.1.evil.example",
      "localhost.evil"
    ]) {
      assert.isFalse(isOwnHost(host, "127.0.0.1"), host)
    }
    assert.isTrue(isOwnHost("127.9.8.7:80", "127.9.8.7"))
  })

  it("answers programs, and no pages of other places", () => {
    assert.isFalse(isForeign(undefined, "localhost:8123"))
    assert.isFalse(isForeign("http://localhost:8123", "localhost:8123"))
    for (const origin of ["http://localhost:8124", "https://evil.example", "null", ""]) {
      assert.isTrue(isForeign(origin, "localhost:8123"), origin)
    }
  })
})
