import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { repeated } from "../../src/cli/Continuing.ts"
import { type RawSettings, resolve } from "../../src/effects/Settings.ts"

const again = (flags: RawSettings, environment: RawSettings = {}) =>
  repeated(Result.getOrThrow(resolve({ flags, environment, file: {} })))

describe("the flags a stopped run asks for again", () => {
  it("are those no record holds, in the words they were given", () => {
    const flags = again({
      seed: "3",
      toolsDir: "tools",
      mcp: ["a=http://127.0.0.1:1/a", "b=http://127.0.0.1:1/b"],
      fixture: ["price=12"],
      deny: ["write:workspace:**"],
      approvalExpiry: "2m",
      gpu: "off"
    })
    assert.deepStrictEqual(flags, [
      ...["--tools-dir", "tools"],
      ...["--mcp", "a=http://127.0.0.1:1/a", "--mcp", "b=http://127.0.0.1:1/b"],
      ...["--fixture", "price=12"],
      ...["--approval-expiry", "120000ms"],
      ...["--deny", "write:workspace:**"],
      ...["--gpu", "off"]
    ])
  })

  it("spell a switch as a command line takes it", () => {
    assert.deepStrictEqual(again({ modelHash: false }), ["--no-model-hash"])
    assert.deepStrictEqual(again({ modelHash: true }), ["--model-hash"])
  })

  it("leave out what the environment says again by itself, and a decision that was to be asked for", () => {
    assert.deepStrictEqual(again({ approve: "suspend" }, { toolsDir: "tools" }), [])
  })

  it("never show a password", () => {
    const flags = again({ ledger: "postgres://me:hunter2@127.0.0.1/ledger" })
    assert.strictEqual(flags[0], "--ledger")
    assert.notInclude(flags.join(" "), "hunter2")
  })
})
