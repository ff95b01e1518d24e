import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, invoke, start, until, writ } from "../kit/cli.ts"
import { makeGguf } from "../kit/gguf.ts"
import { largeModel, modelServer, sha256 } from "../kit/modelServer.ts"

const small = makeGguf()

/** A directory of models with these in it, and the command that looks into it. */
const withModels = Effect.fnUntraced(function* (...names: ReadonlyArray<string>) {
  const dir = yield* directory
  const models = join(dir, "models")
  mkdirSync(models)
  for (const name of names) writeFileSync(join(models, `${name}.gguf`), small)
  const run = (...args: ReadonlyArray<string>) => invoke(["models", ...args, "--models-dir", models])
  return { dir, models, run }
})

describe("writ models list", () => {
  it.effect(
    "shows name, size, family, quantization, context, path, the names that were given, and what runs have",
    () =>
      Effect.gen(function* () {
        const { models, run } = yield* withModels("one")
        yield* run("alias", "mine", "one")
        const { code, out } = yield* run("list")
        assert.strictEqual(code, 0)
        assert.match(out, /^ +NAME +SIZE +CODEC +QUANT +CONTEXT +PATH$/m)
        assert.match(out, new RegExp(`^\\* +one, mine +\\d+ kB +\\S+.* +F16 +4096 +${join(models, "one.gguf")}$`, "m"))
        assert.match(out, /^ +tiny +2\.3 MB +qwen2\.5 +Q8_0 +2048 .*\(ships with writ\)$/m)
        const document = JSON.parse((yield* run("list", "--json")).out)
        assert.strictEqual(document.default, "one")
        assert.deepInclude(document.models[0], {
          name: "one",
          default: true,
          quantization: "F16",
          context_tokens: 4096
        })
        assert.deepStrictEqual(document.aliases, { mine: "one" })
      }).pipe(Effect.scoped)
  )

  it.effect("shows what is damaged or not complete as such, and parts of one model as one", () =>
    Effect.gen(function* () {
      const { models, run } = yield* withModels("big-00001-of-00002", "big-00002-of-00002")
      writeFileSync(join(models, "bad.gguf"), "no model")
      writeFileSync(join(models, "half.gguf.ipull"), "…")
      const { out } = yield* run("list")
      assert.match(out, /^bad: bad\.gguf cannot be used as a model: it is not a GGUF file/m)
      assert.match(out, /^half: not complete: pull it again$/m)
      const document = JSON.parse((yield* run("list", "--json")).out)
      const big = document.models.find(({ name }: { readonly name: string }) => name === "big")
      assert.strictEqual(big.size_bytes, 2 * small.length)
    }).pipe(Effect.scoped)
  )
})

describe("which model a run has", () => {
  const task = (models: string, ...args: ReadonlyArray<string>) =>
    invoke(["run", "hello", "--models-dir", models, "--codec", "qwen2.5", "--max-turns", "0", ...args])

  it.effect("is asked where there are several and none is chosen; --model, and the name default, choose", () =>
    Effect.gen(function* () {
      const { models, run } = yield* withModels("one", "two")
      const { code, err } = yield* task(models)
      assert.strictEqual(code, 2)
      assert.match(
        err,
        /there are 2 models in .* \(one, two\), and none is named.*--model NAME.*writ models alias default one/
      )
      assert.match((yield* run("list")).out, /there are 2 models/)
      assert.strictEqual((yield* run("alias", "default", "two")).code, 0)
      assert.strictEqual(JSON.parse((yield* run("list", "--json")).out).default, "default")
      assert.match((yield* run("list")).out, /^\* +two, default /m)
    }).pipe(Effect.scoped)
  )

  it.effect(
    "is named by file, by name or by alias; what is not there is a mistake, with what may have been meant",
    () =>
      Effect.gen(function* () {
        const { models, run } = yield* withModels("qwen")
        const { code, err } = yield* task(models, "--model", "qwem")
        assert.strictEqual(code, 2)
        assert.match(
          err,
          /--model qwem: there is no such file\. Did you mean qwen\? Pass a GGUF file, a name from writ models list/
        )
        yield* run("alias", "q", "qwen")
        yield* run("remove", "qwen", "--yes")
        assert.match((yield* task(models, "--model", "q")).err, /that stands for qwen, which is not there any more/)
      }).pipe(Effect.scoped)
  )
})

describe("writ models alias", () => {
  it.effect("keeps what a name stands for, without chains, and takes it away again", () =>
    Effect.gen(function* () {
      const { run } = yield* withModels("one")
      const uri = "hf:Qwen/Qwen2.5-7B-Instruct-GGUF:Q4_K_M"
      assert.include((yield* run("alias", "qwen", uri)).out, `qwen stands for ${uri}; use it with --model qwen`)
      yield* run("alias", "default", "qwen")
      assert.deepStrictEqual(JSON.parse((yield* run("alias", "--json")).out).aliases, { qwen: uri, default: uri })
      assert.include((yield* run("list")).out, `qwen stands for ${uri}, which is not here`)
      assert.strictEqual((yield* run("alias", "qwen", "--remove")).code, 0)
      assert.match((yield* run("alias", "quen", "--remove")).err, /there is no name quen/)
    }).pipe(Effect.scoped)
  )

  it.effect("refuses names that mean something else, and targets that are not there", () =>
    Effect.gen(function* () {
      const { run } = yield* withModels("one")
      for (const name of ["tiny", "one", "a/b", "x.gguf", "hf:a/b", "-"]) {
        assert.strictEqual((yield* run("alias", "--", name, "one")).code, 2, name)
      }
      assert.match((yield* run("alias", "x", "nothing")).err, /there is no such file/)
    }).pipe(Effect.scoped)
  )
})

describe("a target of a name", () => {
  it.effect("that is not there is refused as what it was given as, and not as an option", () =>
    Effect.gen(function* () {
      const { run } = yield* withModels("one")
      const { code, err } = yield* run("alias", "default", "nowhere")
      assert.strictEqual(code, 2)
      assert.match(err, /^writ: nowhere: there is no such file/)
      assert.strictEqual((yield* run("alias", "default", "hf:nope")).code, 2)
    }).pipe(Effect.scoped)
  )
})

describe("a key in an address", () => {
  it.effect("is used and never shown, not in JSON either", () =>
    Effect.gen(function* () {
      const { models, run } = yield* withModels("one")
      const uri = "https://ann:sesame@example.org/m.gguf?key=sesame"
      const told = [
        yield* run("alias", "default", uri),
        yield* run("alias"),
        yield* run("alias", "--json"),
        yield* run("list"),
        yield* run("list", "--json")
      ]
      assert.deepStrictEqual(
        told.map(({ code }) => code),
        [0, 0, 0, 0, 0]
      )
      for (const { err, out } of told) {
        assert.notInclude(out + err, "sesame")
        assert.include(out, "https://example.org/m.gguf")
      }
      assert.include(readFileSync(join(models, "aliases.json"), "utf8"), uri)
    }).pipe(Effect.scoped)
  )
})

describe("writ models verify", () => {
  it.effect("takes a record that cannot be read for damage, and does not write over it", () =>
    Effect.gen(function* () {
      const { models, run } = yield* withModels("one")
      const record = join(models, "one.gguf.json")
      writeFileSync(record, "{")
      const { code, out } = yield* run("verify", "--record", "--json")
      assert.strictEqual(code, 3)
      assert.include(JSON.parse(out).models[0].problem, `its record ${record} cannot be read`)
      assert.strictEqual(readFileSync(record, "utf8"), "{")
    }).pipe(Effect.scoped)
  )

  it.effect("compares a model with its record, and ends with 3 where it differs", () =>
    Effect.gen(function* () {
      const { models, run } = yield* withModels("one", "two")
      const first = yield* run("verify")
      assert.strictEqual(first.code, 0)
      assert.match(yield* screenOf("verify", models), /^note +one, .*nothing on record/m)
      assert.strictEqual((yield* run("verify", "--record", "--json")).code, 0)
      const sound = JSON.parse((yield* run("verify", "--json")).out)
      assert.isTrue(sound.sound)
      assert.deepStrictEqual(
        sound.models.map(({ name, state }: { readonly name: string; readonly state: string }) => [name, state]),
        [
          ["one", "ok"],
          ["two", "ok"]
        ]
      )
      // One bit of a weight: nothing but the hash can tell.
      const bytes = Buffer.from(small)
      bytes[bytes.length - 200]! ^= 1
      writeFileSync(join(models, "two.gguf"), bytes)
      const { code, out } = yield* run("verify", "two", "--json")
      assert.strictEqual(code, 3)
      const [{ problem, state }] = JSON.parse(out).models
      assert.strictEqual(state, "bad")
      assert.include(problem, `the SHA-256 ${sha256(bytes)}, on record is ${sha256(small)}`)
      writeFileSync(join(models, "two.gguf"), small.subarray(0, small.length - 4096))
      assert.match(JSON.parse((yield* run("verify", "two", "--json")).out).models[0].problem, /cut short/)
    }).pipe(Effect.scoped)
  )

  const screenOf = (command: string, models: string) =>
    Effect.map(writ(["models", command, "--models-dir", models], { cwd: models }), ({ out }) => out)
})

describe("writ models remove", () => {
  it.effect("removes a model with its record, after asking: where nobody can be asked --yes has to be said", () =>
    Effect.gen(function* () {
      const { models, run } = yield* withModels("one", "two")
      yield* run("verify", "--record", "--json")
      const { code, err } = yield* run("remove", "one")
      assert.strictEqual(code, 2)
      assert.match(err, /nobody can be asked here.*--yes/)
      const near = yield* run("remove", "twq", "--yes")
      assert.match(near.err, /there is no model twq in \S+; did you mean two\? writ models list shows what there is/)
      const far = yield* run("remove", "something-else", "--yes")
      assert.match(far.err, /there is no model something-else in [^ ]+: writ models list shows what there is/)
      const document = JSON.parse((yield* run("remove", "one.gguf", "--yes", "--json")).out)
      assert.deepStrictEqual(document.removed, ["one"])
      assert.isAbove(document.freed_bytes, small.length)
      assert.deepStrictEqual(readdirSync(models).toSorted(), ["two.gguf", "two.gguf.json"])
    }).pipe(Effect.scoped)
  )

  it.effect("reaches nothing outside of the directory, by no name and through no link", () =>
    Effect.gen(function* () {
      const { dir, models, run } = yield* withModels("one")
      const outside = join(dir, "outside.gguf")
      writeFileSync(outside, small)
      symlinkSync(outside, join(models, "linked.gguf"))
      for (const name of ["../outside", outside, join(models, "one"), "./one", "..", "."]) {
        assert.strictEqual((yield* run("remove", name, "--yes")).code, 2, name)
      }
      assert.strictEqual((yield* run("remove", "linked", "--yes", "--json")).code, 0)
      assert.isTrue(existsSync(outside))
      assert.isFalse(existsSync(join(models, "linked.gguf")))
      assert.match((yield* run("remove", "tiny", "--yes")).err, /ships with writ and stays/)
    }).pipe(Effect.scoped)
  )
})

describe("writ models remove, of a model that is not complete,", () => {
  it.effect("takes nothing from under the process that downloads it, and removes what an ended one left", () =>
    Effect.gen(function* () {
      const { models, run } = yield* withModels()
      const state = join(models, ".pull-0123456789ab.json")
      writeFileSync(join(models, "half.gguf.ipull"), "…")
      writeFileSync(state, JSON.stringify({ uri: "https://example.org/half.gguf", file: "half.gguf" }))
      writeFileSync(`${state}.lock`, String(process.ppid))
      const { code, err } = yield* run("remove", "half", "--yes")
      assert.strictEqual(code, 2)
      assert.include(err, `half is being downloaded by process ${process.ppid}: stop that first`)
      assert.isTrue(existsSync(join(models, "half.gguf.ipull")))
      writeFileSync(`${state}.lock`, String(2 ** 22 + 1))
      assert.strictEqual((yield* run("remove", "half", "--yes")).code, 0)
      assert.isFalse(existsSync(join(models, "half.gguf.ipull")))
    }).pipe(Effect.scoped)
  )
})

describe("writ models pull", () => {
  it.live("killed in the middle is whole the next time, shows where it is in lines, and says what it took in", () =>
    Effect.gen(function* () {
      const dir = yield* directory
      const server = yield* modelServer
      const large = largeModel()
      server.files.set("/m.gguf", { body: large, fault: { request: 3, after: 1000, how: "hold", always: true } })
      const args = ["models", "pull", `${server.url}/m.gguf`, "--name", "mine"]
      const running = start(args, { cwd: dir })
      const partial = join(dir, ".writ/models/mine.gguf.ipull")
      yield* until(running, () => (statSync(partial, { throwIfNoEntry: false })?.size ?? 0) > large.length)
      running.child.kill("SIGKILL")
      yield* Effect.promise(() => running.ended)
      server.files.set("/m.gguf", { body: large })
      const { code, err, out } = yield* writ(args, { cwd: dir })
      assert.strictEqual(code, 0, err)
      assert.match(out, /^taken in +mine, 13 MB, \.writ\/models\/mine\.gguf$/m)
      assert.include(out, `${sha256(large)} (computed here; the server states none)`)
      assert.isTrue(readFileSync(join(dir, ".writ/models/mine.gguf")).equals(large))
      const again = yield* writ([...args, "--json"], { cwd: dir })
      assert.deepInclude(JSON.parse(again.out), { name: "mine", had: true, size_bytes: large.length })
    }).pipe(Effect.scoped)
  )

  it.live("gives no name that stands for something else, and says how else a model of such a name is meant", () =>
    Effect.gen(function* () {
      const { dir, models, run } = yield* withModels()
      const server = yield* modelServer
      server.files.set("/mine.gguf", { body: small })
      yield* run("alias", "mine", "tiny")
      for (const name of ["mine", "tiny"]) {
        const { code, err } = yield* run("pull", `${server.url}/mine.gguf`, "--name", name)
        assert.strictEqual(code, 2)
        assert.include(err, `--name: ${name} stands for another model already`)
      }
      assert.lengthOf(server.asked, 0)
      const { out } = yield* writ(["models", "pull", `${server.url}/mine.gguf`, "--models-dir", models], { cwd: dir })
      assert.include(out, "writ models inspect mine.gguf says why")
      assert.include((yield* run("inspect", "mine.gguf", "--json")).out, "F16")
    }).pipe(Effect.scoped)
  )

  it.effect("refuses what is no address, name or hash before anybody is asked", () =>
    Effect.gen(function* () {
      const { run } = yield* withModels()
      assert.strictEqual((yield* run("pull", "model.gguf")).code, 2)
      assert.strictEqual((yield* run("pull", "hf:a/b", "--name", "../x")).code, 2)
      assert.strictEqual((yield* run("pull", "hf:a/b", "--sha256", "12")).code, 2)
    }).pipe(Effect.scoped)
  )
})
