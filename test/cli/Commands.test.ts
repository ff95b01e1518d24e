import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { tinyModel } from "../../src/effects/Wiring.ts"
import { directory, invoke } from "../kit/cli.ts"

describe("the command line", () => {
  it.effect("shows its help, and every subcommand its own", () =>
    Effect.gen(function* () {
      const { code, out } = yield* invoke(["--help"])
      assert.strictEqual(code, 0)
      for (const name of ["demo", "run", "trace", "models", "doctor"]) assert.include(out, name)
      const run = yield* invoke(["run", "--help"])
      for (const flag of ["--model", "--fixture", "--max-turns", "--loop-threshold", "--approve", "--gpu"])
        assert.include(run.out, flag)
    })
  )

  it.effect("suggests what was probably meant", () =>
    Effect.gen(function* () {
      const cases = [
        [["runn"], "run"],
        [["run", "--seeed", "3", "hi"], "--seed"],
        [["run", "--tools", "calculat,lookup", "hi"], "did you mean calculate?"],
        [["run", "--codec", "qwen2.6", "hi"], 'Did you mean "qwen2.5"?']
      ] as const
      for (const [args, hint] of cases) {
        const { code, err, out } = yield* invoke(args)
        assert.strictEqual(code, 2, args.join(" "))
        assert.include(err, hint)
        assert.strictEqual(out, "", "diagnostics go to standard error")
      }
    })
  )

  it.effect("puts what the parser refuses into a document, where JSON was asked for, and only there", () =>
    Effect.gen(function* () {
      const cases = [
        [["run", "--json", "--bogus", "x"], "--bogus"],
        [["run", "--gpu", "abacus", "--json", "x"], "abacus"],
        [["trace", "nothing", "--json"], "nothing"]
      ] as const
      for (const [args, named] of cases) {
        const { code, err, out } = yield* invoke(args)
        const { error } = JSON.parse(out) as {
          readonly error: { readonly exit_code: number; readonly message: string }
        }
        assert.deepStrictEqual([code, error.exit_code], [2, 2], args.join(" "))
        assert.include(error.message, named)
        assert.include(err, error.message.split("\n")[0]!)
      }
      for (const args of [
        ["run", "--json", "--no-json", "--bogus", "x"],
        ["run", "--bogus", "--", "--json"]
      ]) {
        assert.strictEqual((yield* invoke(args)).out, "", args.join(" "))
      }
    })
  )

  it.effect("says which command has a flag that this one has not", () =>
    Effect.gen(function* () {
      const { code, err } = yield* invoke(["chat", "--run-dir", "x"])
      assert.strictEqual(code, 2)
      assert.include(err, "It is an option of writ run")
      assert.notInclude((yield* invoke(["chat", "--bogus", "x"])).err, "writ run")
    })
  )

  it.effect("makes no directory for a ledger but its own", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const file = join(cwd, "nowhere", "x.sqlite")
      for (const args of [
        ["run", "hi"],
        ["mcp", "serve"],
        ["serve", "--port", "0"]
      ]) {
        const { code, err } = yield* invoke([...args, "--ledger", file])
        assert.strictEqual(code, 2, args[0])
        assert.include(err, `--ledger ${file}: `)
        assert.include(err, "there is no such directory")
      }
      assert.isFalse(existsSync(join(cwd, "nowhere")))
    })
  )

  it.effect("refuses a model whose name cannot be one before anybody is asked for it", () =>
    Effect.gen(function* () {
      for (const args of [
        ["run", "--model", "hf:nope", "hi"],
        ["models", "pull", "hf:nope"]
      ]) {
        const { code, err } = yield* invoke(args)
        assert.strictEqual(code, 2, args[0])
        assert.include(err, "hf:nope: it is written hf:USER/REPO:QUANT")
      }
    })
  )

  it.effect("refuses settings that do not fit, all of them at once and before a model is looked for", () =>
    Effect.gen(function* () {
      const args = ["run", "--top-p", "3", "--max-turns=-1", "--model", "/nowhere.gguf", "hi"]
      const { code, err } = yield* invoke(args, { WRIT_SEED: "x" })
      assert.strictEqual(code, 2)
      assert.include(err, "--top-p: expected a number from 0 to 1")
      assert.include(err, '--max-turns: expected a whole number of at least 0 or "none"')
      assert.include(err, "WRIT_SEED: expected")
      assert.notInclude(err, "nowhere.gguf")
    })
  )

  it.effect("wants exactly one task", () =>
    Effect.gen(function* () {
      assert.include((yield* invoke(["run"])).err, "there is no task")
      assert.include((yield* invoke(["run", "--prompt", "a", "b"])).err, "give the task once")
      assert.include((yield* invoke(["run", " "])).err, "the task is empty")
      assert.include((yield* invoke(["run", "test"])).err, "there is no conversation in it")
    })
  )

  it.effect("names a model file that is not there, or is none, with the remedy", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const file = join(cwd, "text.gguf")
      writeFileSync(file, "hello")
      const missing = yield* invoke(["run", "--model", join(cwd, "no.gguf"), "hi"])
      assert.deepStrictEqual([missing.code, missing.err.includes("there is no such file")], [2, true])
      const wrong = yield* invoke(["run", "--model", file, "--json", "hi"])
      assert.strictEqual(wrong.code, 1)
      assert.strictEqual(JSON.parse(wrong.out).error.exit_code, 1)
      assert.include(JSON.parse(wrong.out).error.message, "it is not a GGUF file")
    })
  )
})

describe("writ models inspect", () => {
  it.effect("shows what a file says about itself, and which codec and why", () =>
    Effect.gen(function* () {
      const { code, out } = yield* invoke(["models", "inspect", tinyModel])
      assert.strictEqual(code, 0)
      assert.match(out, /codec +qwen2\.5\n/)
      assert.match(out, /agrees +yes, \d+ renderings are equal to the byte\n/)
      assert.include(out, "<tool_call>")
      const document = JSON.parse((yield* invoke(["models", "inspect", tinyModel, "--json"])).out)
      assert.deepStrictEqual([document.architecture, document.codec.codec], ["llama", "qwen2.5"])
      assert.isTrue(document.agreement.agrees)
    })
  )
})
