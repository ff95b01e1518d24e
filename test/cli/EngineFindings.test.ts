import { assert, describe, it } from "@effect/vitest"
import { checkIsolation } from "../../src/cli/EngineFindings.ts"

const defaults = { isolation: "thread", lora: [], restarts: 3 } as const

describe("what doctor says of where the engine runs", () => {
  it("is fine with a thread for the model that ships", () => {
    assert.strictEqual(checkIsolation(defaults, true).state, "ok")
  })

  it("advises a process for a model or an adapter that others made", () => {
    for (const found of [
      checkIsolation(defaults, false),
      checkIsolation({ ...defaults, lora: [{ path: "a.gguf" }] }, true)
    ]) {
      assert.strictEqual(found.state, "note")
      assert.include(found.remedy ?? "", "--isolation process")
    }
  })

  it("says how often a process is opened again", () => {
    const here = { ...defaults, isolation: "process" as const }
    assert.include(checkIsolation(here, false).text, "up to 3 times")
    assert.include(checkIsolation({ ...here, restarts: 0 }, false).text, "not opened again")
  })
})
