import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import { ask, isUri, shownUri } from "../../src/engine/RemoteFile.ts"

/** Nothing listens there, and `fetch` knows it. */
const nowhere = "http://127.0.0.1:9"

const failing = (uri: string, env: Record<string, string> = {}) =>
  Effect.provideService(Effect.flip(ask(uri)), ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env }))

/** All that a log could show of an error. */
const whole = (error: Error): string => `${inspect(error, { depth: Infinity })} ${JSON.stringify(error)} ${error}`

describe("the name of a model to download", () => {
  it("is told from a file's", () => {
    for (const uri of ["hf:a/b", "HuggingFace:a/b:Q4", "https://x/y.gguf", "http://x"]) assert.isTrue(isUri(uri), uri)
    for (const file of ["a.gguf", "./hf/a.gguf", "C:\\a.gguf", "hf/a"]) assert.isFalse(isUri(file), file)
  })

  it("is shown without what may be a secret", () => {
    assert.strictEqual(shownUri("https://ann:sesame@host:1/a/b.gguf?key=sesame#x"), "https://host:1/a/b.gguf")
    assert.strictEqual(shownUri("https://ann:se same@host/b.gguf?a@b"), "https://host/b.gguf")
    assert.strictEqual(shownUri("https:sesame@host"), "https:host")
    assert.strictEqual(shownUri("hf:a/b/c.gguf#branch"), "hf:a/b/c.gguf#branch")
  })
})

describe("an error about a file on a server", () => {
  it.live("holds no key, neither in its words nor in its cause", () =>
    Effect.gen(function* () {
      for (const uri of [
        `${nowhere}/a.gguf?key=sesame`,
        `${nowhere.replace("//", "//ann:sesame@")}/a.gguf`,
        "https://ann:sesame@host:port/a.gguf?key=sesame"
      ]) {
        const error = yield* failing(uri)
        assert.strictEqual(error.reason, "missing_file")
        assert.notInclude(whole(error), "sesame", uri)
      }
      const env = { HF_ENDPOINT: nowhere, HF_TOKEN: "sesame" }
      assert.notInclude(whole(yield* failing("hf:a/b:Q4", env)), "sesame")
    })
  )

  it.live("says so where the address is none", () =>
    Effect.gen(function* () {
      for (const uri of ["http://", "https://host:port/a.gguf", `${nowhere}/a%zz.gguf`]) {
        assert.include((yield* failing(uri)).message, "That is no address.", uri)
      }
    })
  )

  it.live("has its cause where that holds nothing of the kind", () =>
    Effect.gen(function* () {
      const error = yield* failing(`${nowhere}/a.gguf`)
      assert.include(error.message, "There is no connection to 127.0.0.1:9")
      assert.isDefined(error.cause)
    })
  )
})
