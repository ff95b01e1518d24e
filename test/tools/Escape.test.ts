/** Every way out of the workspace that is in `test/kit/escapes.ts`, one by one, through the tools a model has. */
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { registry } from "../../src/tools/builtin/index.ts"
import { execute } from "../../src/tools/Execution.ts"
import type { JsonObject } from "../../src/tools/JsonText.ts"
import * as Workspace from "../../src/tools/Workspace.ts"
import { artifactEscapes, canary, escapes, type Scene, scene, swapped, swapper } from "../kit/escapes.ts"
import { admitted } from "../kit/toolCalls.ts"

/** The tools, made once per test: making them takes longer than most calls. */
const caller = Effect.map(
  Effect.orDie(registry),
  (tools) =>
    ({ artifacts, root }: Scene, name: string, args: JsonObject) => {
      const settings = { fixtures: {}, workspace: root, artifacts }
      const one = admitted(tools, name, args, { settings })
      return execute(one.tool, one.arguments, { settings })
    }
)

/** Nothing of what must not be reached, and nothing of where it is, but for what was asked for itself. */
const tellsNothing = (outcome: unknown, { base }: Scene, asked: string) => {
  const text = JSON.stringify(outcome).replaceAll(JSON.stringify(asked.slice(0, 200)).slice(1, -1), "")
  assert.notInclude(text, canary, asked)
  assert.notInclude(text, base, asked)
}

const least = 60

describe("the workspace", () => {
  it.live("lets no path out of it, and says of each what is wrong", () =>
    Effect.gen(function* () {
      const place = yield* scene
      const call = yield* caller
      const attempts = escapes(place)
      assert.isAtLeast(attempts.length, least)
      for (const [path, answer] of attempts) {
        const outcome = yield* call(place, "read_text_file", { path })
        assert.strictEqual(outcome._tag, "Failed", path)
        assert.match(outcome._tag === "Failed" ? outcome.errors[0]!.reason : "", answer, path)
        tellsNothing(outcome, place, path)
      }
    })
  )

  it.live("lists and searches what is in it and nothing else", () =>
    Effect.gen(function* () {
      const place = yield* scene
      const call = yield* caller
      const listed = yield* call(place, "list_files", {})
      const files = ["notes.md", "picture.png", "sub/deep/leaf.txt", "sub/inner.txt"]
      assert.deepInclude(listed, { _tag: "Succeeded", result: files })
      assert.deepInclude(yield* call(place, "search_text", { query: canary }), { result: [] })
    })
  )

  it.live("reads its own files however they are written, and files whose names only look dangerous", () =>
    Effect.gen(function* () {
      const place = yield* scene
      const call = yield* caller
      const names = [
        "..notes",
        "...",
        "a..b",
        " lead",
        "caf\u00e9.txt",
        "\u65e5\u672c.txt",
        "x".repeat(255),
        "-rf",
        "a b"
      ]
      for (const name of names) fs.writeFileSync(join(place.root, name), name)
      for (const path of [...names, "./caf\u00e9.txt", ".//a b"]) {
        const result = names.find((name) => path.endsWith(name))!
        assert.deepInclude(yield* call(place, "read_text_file", { path }), { result }, path)
      }
      // A file of one's own may have two names.
      fs.linkSync(join(place.root, "notes.md"), join(place.root, "NOTES.MD"))
      assert.deepInclude(yield* call(place, "read_text_file", { path: "NOTES.MD" }), { result: "notes" })
    })
  )

  it.live(
    "holds while files and directories in it are swapped for links, pipes and each other",
    () =>
      Effect.gen(function* () {
        const place = yield* scene
        const call = yield* caller
        const child = yield* Effect.acquireRelease(
          Effect.sync(() => spawn(process.execPath, ["-e", swapper, "swapper", place.root, "1000000"])),
          (running) => Effect.sync(() => void running.kill("SIGKILL"))
        )
        let ended = false
        child.once("exit", () => {
          ended = true
        })
        yield* Effect.callback<void>((resume) => void child.stdout.once("data", () => resume(Effect.void)))
        const attempts = [...escapes(place).map(([path]) => path), ...swapped]
        const seen = new Set<string>()
        let rounds = 0
        // Until it was seen to be a race, with some to spare.
        while (!ended && (rounds < 5 || !seen.has("refused") || !seen.has("harmless"))) {
          rounds++
          for (const path of attempts) {
            const outcome = yield* call(place, "read_text_file", { path })
            tellsNothing(outcome, place, path)
            if (!swapped.includes(path)) assert.strictEqual(outcome._tag, "Failed", path)
          }
          // Often, since the moments between a look and an open are short.
          for (let turn = 0; turn < 300; turn++) {
            for (const path of swapped) {
              const said = yield* Effect.match(Workspace.readText(place.root, path), {
                onFailure: ({ kind }) => kind,
                onSuccess: (text) => text
              })
              assert.notInclude(said, canary, path)
              seen.add(said)
            }
          }
          tellsNothing(yield* call(place, "search_text", { query: canary.toLowerCase() }), place, "")
          tellsNothing(yield* call(place, "list_files", {}), place, "")
          yield* Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))
        }
        assert.includeMembers([...seen], ["harmless", "refused"])
      }),
    120_000
  )
})

describe("the directory of artifacts", () => {
  it.live("is left by no name and no link, to read or to write", () =>
    Effect.gen(function* () {
      const place = yield* scene
      const call = yield* caller
      for (const name of artifactEscapes) {
        const outcome = yield* call(place, "read_artifact", { name })
        assert.strictEqual(outcome._tag, "Failed", name)
        tellsNothing(outcome, place, name)
      }
      for (const name of artifactEscapes.filter((one) => /[^A-Za-z0-9._-]|^\.|^$|.{129}/.test(one))) {
        const outcome = yield* call(place, "write_artifact", { name, content: "x" })
        assert.deepInclude(outcome, { kind: "invalid_arguments", effect: "none" }, name)
      }
      assert.deepInclude(yield* call(place, "list_artifacts", {}), {
        result: { artifacts: [{ name: "report.md", id: "0000000000000000-report.md", bytes: 6 }] }
      })
    })
  )
})
