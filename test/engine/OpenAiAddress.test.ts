import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { isKey, parseAddress } from "../../src/engine/OpenAiAddress.ts"

const address = (text: string) => Result.getOrThrow(parseAddress(text))
const problem = (text: string) => Result.getOrThrow(Result.flip(parseAddress(text)))

describe("the address of a server", () => {
  it("means its /v1 where it has no path, and the path where it has one", () => {
    assert.deepInclude(address("http://127.0.0.1:8080"), {
      api: "http://127.0.0.1:8080/v1",
      root: "http://127.0.0.1:8080"
    })
    assert.deepInclude(address("http://127.0.0.1:8080/v1/"), {
      api: "http://127.0.0.1:8080/v1",
      root: "http://127.0.0.1:8080"
    })
    assert.deepInclude(address("https://host.test/openai/v1"), {
      api: "https://host.test/openai/v1",
      root: "https://host.test/openai"
    })
    assert.deepInclude(address("https://host.test/api"), {
      api: "https://host.test/api",
      root: "https://host.test/api"
    })
  })

  it("is confidential over TLS, and on this machine", () => {
    for (const url of [
      "https://host.test",
      "http://localhost:1",
      "http://a.localhost",
      "http://127.3.2.1",
      "http://[::1]:8"
    ]) {
      assert.isTrue(address(url).confidential, url)
    }
    for (const url of [
      "http://host.test",
      "http://10.0.0.1",
      "http://127.0.0.1.host.test",
      "http://localhost.host.test"
    ]) {
      assert.isFalse(address(url).confidential, url)
    }
  })

  it("is no other kind of address, and holds no secret and no question", () => {
    for (const url of ["", "127.0.0.1:8080", "ftp://host.test", "file:///etc/passwd", "http://"]) {
      assert.include(problem(url), "the address of a server")
    }
    assert.include(problem("https://me:sesame@host.test"), "password")
    assert.notInclude(problem("https://me:sesame@host.test"), "sesame")
    assert.include(problem("https://host.test/v1?key=1"), "leave out")
  })
})

describe("a key", () => {
  it("is what a header can hold", () => {
    assert.isTrue(isKey("sk-abc_123.DEF="))
    for (const key of ["", "two words", "line\nbreak", "ключ", "a".repeat(5000)]) assert.isFalse(isKey(key))
  })
})
