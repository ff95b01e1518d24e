import { assert, describe, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { type McpWords, parseServer, serversOf } from "../../src/effects/McpSettings.ts"

const env = { TOKEN: "secret", HEADER: "Bearer word" }

const servers = (words: Partial<McpWords>) =>
  serversOf({ mcp: [], mcpEnv: [], mcpHeader: [], ...words }).pipe(
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env }))
  )

const refusal = (words: Partial<McpWords>) => Effect.flip(servers(words))

describe("a server on the command line", () => {
  it("is a command with words as a shell reads them, without what only a shell can do", () => {
    const read = (text: string) => Result.getOrThrow(parseServer(text))
    assert.deepStrictEqual(read(`files=npx -y 'some server' "a b" c\\ d`), {
      name: "files",
      transport: { _tag: "Stdio", command: "npx", args: ["-y", "some server", "a b", "c d"] }
    })
    assert.deepStrictEqual(read("npx x --flag=1").name, undefined)
    for (const text of ["a | b", "a $HOME", "a > b", "a 'b", "", "files="]) {
      assert.isTrue(Result.isFailure(parseServer(text)), text)
    }
  })

  it("is an address that begins with http, and holds no user name", () => {
    assert.deepStrictEqual(Result.getOrThrow(parseServer("docs=https://h/mcp?a=b")), {
      name: "docs",
      transport: { _tag: "Http", url: "https://h/mcp?a=b" }
    })
    for (const text of ["ftp://h", "https://", "https://user:word@h/mcp"]) {
      assert.isTrue(Result.isFailure(parseServer(text)), text)
    }
  })

  it("has a name that tools can begin with", () => {
    for (const text of ["a__b=x", "_a=x", `${"x".repeat(25)}=x`]) {
      assert.include(Result.getOrThrow(Result.flip(parseServer(text))), "is not a server's name")
    }
  })

  it.effect("is called mcp, mcp2, … without a name, and no two have one", () =>
    Effect.gen(function* () {
      const found = yield* servers({ mcp: ["a", "x=b", "c"] })
      assert.deepStrictEqual(
        found.map(({ name }) => name),
        ["mcp", "x", "mcp2"]
      )
      assert.strictEqual(yield* refusal({ mcp: ["x=a", "x=b"] }), "--mcp: two servers are named x")
    })
  )
})

describe("what a server is given of the environment", () => {
  it.effect("is what was granted to it by name", () =>
    Effect.gen(function* () {
      const words = { mcp: ["a=x", "b=y", "w=https://h/"], mcpEnv: ["a:TOKEN"], mcpHeader: ["w:authorization=HEADER"] }
      const [a, b, w] = yield* servers(words)
      assert.deepInclude(a!.transport, { env: { TOKEN: "secret" } })
      assert.deepInclude(b!.transport, { env: {} })
      assert.deepInclude(w!.transport, { headers: { authorization: "Bearer word" } })
    })
  )

  it.effect("is refused where server, variable or form do not fit", () =>
    Effect.gen(function* () {
      const mcp = ["a=x", "w=https://h/"]
      assert.strictEqual(yield* refusal({ mcp, mcpEnv: ["b:TOKEN"] }), "--mcp-env: no server is named b")
      assert.strictEqual(yield* refusal({ mcp, mcpEnv: ["a:OTHER"] }), "--mcp-env: there is no variable OTHER")
      assert.match(yield* refusal({ mcp, mcpEnv: ["w:TOKEN"] }), /w is reached by an address/)
      assert.match(yield* refusal({ mcp, mcpHeader: ["a:h=HEADER"] }), /a is a command/)
      assert.match(yield* refusal({ mcp, mcpEnv: ["TOKEN"] }), /is not of the form SERVER:VARIABLE/)
      assert.match(yield* refusal({ mcp, mcpHeader: ["w:a b=HEADER"] }), /is not of the form SERVER:HEADER=VARIABLE/)
    })
  )
})
