import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { explained } from "../../src/cli/EngineSettings.ts"
import { Provisions } from "../../src/cli/Provisions.ts"
import * as ConversationText from "../../src/effects/conversation/ConversationText.ts"
import { EngineError } from "../../src/engine/EngineError.ts"
import { Model } from "../../src/engine/Model.ts"
import { registry } from "../../src/tools/builtin/index.ts"
import { directory, invoke } from "../kit/cli.ts"
import { blank, conversation, user } from "../kit/fillings.ts"
import { makeGguf } from "../kit/gguf.ts"

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

/** What a command says on standard error of a model that was trained for 512 tokens, whose engine then does not open. */
const saidBefore = Effect.fnUntraced(function* (
  context: ReadonlyArray<string>,
  of: (model: string) => ReadonlyArray<string>
) {
  const cwd = yield* directory
  const model = join(cwd, "small.gguf")
  writeFileSync(model, makeGguf({ ctx: 512 }))
  writeFileSync(join(cwd, "c.yaml"), ConversationText.emit(conversation([], user("Hi"), blank)))
  writeFileSync(join(cwd, "s.yaml"), "name: s\ncases:\n  - assertions: [{ type: terminal_state, state: completed }]\n")
  const places = ["--workspace", cwd, "--codec", "qwen2.5", "--no-model-hash"]
  const { code, err } = yield* invoke([
    ...of(model).map((word) => word.replace("CWD", cwd)),
    ...places,
    ...context
  ]).pipe(Effect.provideService(Provisions, { tools: registry, services: () => failing("unavailable") as never }))
  assert.strictEqual(code, 1, err)
  return err.split("\n").filter((line) => line.includes("--context"))
})

describe("a context larger than the model was trained for", () => {
  const commands: Readonly<Record<string, (model: string) => ReadonlyArray<string>>> = {
    run: (model) => ["run", "t", "--tools", "none", "--run-dir", "CWD/run", "--model", model],
    "run of a conversation": (model) => ["run", "CWD/c.yaml", "--run-dir", "CWD/runs", "--model", model],
    chat: (model) => ["chat", "--tools", "none", "--model", model],
    serve: (model) => ["serve", "--port", "0", "--tools", "none", "--model", model],
    "bench-model": (model) => [
      "bench-model",
      "-p",
      "CWD",
      "--over",
      "CWD/c.yaml",
      "--suite",
      "CWD/s.yaml",
      "--model",
      model
    ]
  }
  for (const [name, words] of Object.entries(commands)) {
    it.live(`is cut, and writ ${name} says so in one line with both numbers before it opens the model`, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* saidBefore(["--context", "100000"], words), [
          "writ: --context 100000 is cut to 512: small.gguf was trained for no more"
        ])
        for (const fits of [[], ["--context", "512"]]) assert.deepStrictEqual(yield* saidBefore(fits, words), [])
      })
    )
  }
})
