import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { explained } from "../../src/cli/EngineSettings.ts"
import { EngineError } from "../../src/engine/EngineError.ts"
import { Model } from "../../src/engine/Model.ts"
import { invoke } from "../kit/cli.ts"

const refusal = (args: ReadonlyArray<string>) =>
  Effect.map(invoke(["run", ...args, "What is 17.5% of 240?"]), ({ code, err }) => ({ code, err }))

const failing = (reason: EngineError["reason"]) =>
  Layer.effect(Model, Effect.fail(new EngineError({ reason, message: "No such device." })))

const messageFor = (reason: EngineError["reason"], gpu: "auto" | "cuda" | false) =>
  Effect.map(Effect.flip(Effect.scoped(Layer.build(explained(failing(reason), gpu)))), ({ message }) => message)

describe("what is asked of the engine", () => {
  it.effect("is refused by its option before anything begins: an adapter that is not there", () =>
    Effect.gen(function* () {
      const { code, err } = yield* refusal(["--lora", "nosuch=0.5"])
      assert.strictEqual(code, 2)
      assert.strictEqual(err, "writ: --lora nosuch: there is no such file")
    })
  )

  it.effect("is refused with the option that would do: a cache in fewer bits without flash attention", () =>
    Effect.gen(function* () {
      // The model that ships does without it unless it is asked for.
      for (const args of [[], ["--flash-attention", "off"]]) {
        const { code, err } = yield* refusal(["--cache-type", "q8_0", ...args])
        assert.strictEqual(code, 2)
        assert.match(err, /^writ: --cache-type q8_0: it needs flash attention.*; say --flash-attention on/)
      }
    })
  )

  it.effect("is named with what to say instead where only the engine can tell: a device", () =>
    Effect.gen(function* () {
      const message = yield* messageFor("unavailable", "cuda")
      for (const part of ["--gpu cuda: ", "--gpu off", "--gpu auto", "No such device."]) assert.include(message, part)
      assert.strictEqual(yield* messageFor("unavailable", "auto"), "No such device.")
      assert.strictEqual(yield* messageFor("bad_file", "cuda"), "No such device.")
    })
  )
})
