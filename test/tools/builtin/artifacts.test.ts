/** `list_artifacts` and `read_artifact` on the files of a run. */
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { maxListed } from "../../../src/tools/Artifacts.ts"
import { registry } from "../../../src/tools/builtin/index.ts"
import { execute } from "../../../src/tools/Execution.ts"
import type { JsonObject } from "../../../src/tools/JsonText.ts"
import { admitted } from "../../kit/toolCalls.ts"

const idOf = (digit: string, name: string) => `${digit.repeat(16)}-${name}`

const place = Effect.acquireRelease(
  Effect.sync(() => {
    const directory = join(fs.mkdtempSync(join(tmpdir(), "writ-artifacts-")), "artifacts")
    fs.mkdirSync(directory)
    fs.writeFileSync(join(directory, idOf("a", "report.md")), "# Été 🌞 à la plage")
    fs.writeFileSync(join(directory, idOf("b", "same.txt")), "one")
    fs.writeFileSync(join(directory, idOf("a", "same.txt")), "two")
    fs.writeFileSync(join(directory, idOf("c", "a.png")), Uint8Array.of(0x89, 0x50, 0x4e, 0x47))
    fs.writeFileSync(join(directory, `.${idOf("d", "x.txt")}.tmp`), "unfinished")
    fs.writeFileSync(join(directory, "note.txt"), "nobody's")
    return directory
  }),
  (directory) => Effect.sync(() => fs.rmSync(join(directory, ".."), { recursive: true }))
)

const call = Effect.fnUntraced(function* (artifacts: string | undefined, name: string, args: JsonObject = {}) {
  const settings = { fixtures: {}, ...(artifacts === undefined ? {} : { artifacts }) }
  const one = admitted(yield* Effect.orDie(registry), name, args, { settings })
  return yield* execute(one.tool, one.arguments, { settings })
})

const resultOf = (outcome: Effect.Success<ReturnType<typeof call>>) =>
  outcome._tag === "Succeeded" ? (outcome.result as JsonObject) : assert.fail(JSON.stringify(outcome))

describe("list_artifacts", () => {
  it.live("names what was published, and nothing else that lies there", () =>
    Effect.gen(function* () {
      const directory = yield* place
      const listed = resultOf(yield* call(directory, "list_artifacts"))
      assert.deepStrictEqual(listed, {
        artifacts: [
          { name: "a.png", id: idOf("c", "a.png"), bytes: 4 },
          { name: "report.md", id: idOf("a", "report.md"), bytes: 24 },
          { name: "same.txt", id: idOf("a", "same.txt"), bytes: 3 },
          { name: "same.txt", id: idOf("b", "same.txt"), bytes: 3 }
        ]
      })
    })
  )

  it.live("is empty before the first one, says when there are more, and refuses without a directory", () =>
    Effect.gen(function* () {
      const directory = yield* place
      assert.deepInclude(yield* call(join(directory, "..", "gone"), "list_artifacts"), { result: { artifacts: [] } })
      for (let at = 0; at < maxListed; at++) fs.writeFileSync(join(directory, idOf("e", `n${at}`)), "")
      const { artifacts, more } = resultOf(yield* call(directory, "list_artifacts"))
      assert.deepStrictEqual([(artifacts as ReadonlyArray<unknown>).length, more], [maxListed, true])
      for (const [name, args] of [
        ["list_artifacts", {}],
        ["read_artifact", { name: "a" }]
      ] as const) {
        assert.deepInclude(yield* call(undefined, name, args), { kind: "refused", effect: "none" })
      }
    })
  )
})

describe("read_artifact", () => {
  it.live("gives a text whole or by parts, and the parts together are the whole", () =>
    Effect.gen(function* () {
      const directory = yield* place
      const text = "# Été 🌞 à la plage"
      assert.deepInclude(yield* call(directory, "read_artifact", { name: "report.md" }), {
        result: { name: "report.md", bytes: 24, text }
      })
      for (let length = 1; length <= 25; length++) {
        let [whole, next]: [string, number | undefined] = ["", 0]
        while (next !== undefined) {
          const part: JsonObject = resultOf(
            yield* call(directory, "read_artifact", { name: "report.md", offset: next, length })
          )
          whole += part["text"] as string
          assert.isTrue(part["next"] === undefined || (part["next"] as number) > next)
          next = part["next"] as number | undefined
        }
        assert.strictEqual(whole, text, `by ${length}`)
      }
      // From inside a character it begins with the next one.
      assert.deepInclude(yield* call(directory, "read_artifact", { name: "report.md", offset: 3, length: 3 }), {
        result: { name: "report.md", bytes: 24, text: "té", next: 7 }
      })
    })
  )

  it.live("is told which one is meant, and says what else there is", () =>
    Effect.gen(function* () {
      const directory = yield* place
      const reason = Effect.fnUntraced(function* (args: JsonObject) {
        const outcome = yield* call(directory, "read_artifact", args)
        return outcome._tag === "Failed"
          ? `${outcome.kind}: ${outcome.errors[0]!.path}: ${outcome.errors[0]!.reason}`
          : "ok"
      })
      assert.deepInclude(yield* call(directory, "read_artifact", { name: idOf("b", "same.txt") }), {
        result: { name: "same.txt", bytes: 3, text: "one" }
      })
      assert.match(
        yield* reason({ name: "same.txt" }),
        /^invalid_arguments: name: 2 artifacts are called "same.txt"; give one of the ids a{16}-same.txt, b{16}-same.txt$/
      )
      assert.match(yield* reason({ name: "reprot.md" }), /^not_found: name: .*did you mean report.md\?$/)
      assert.match(yield* reason({ name: "a.png" }), /^execution_failed: name: .*looks like a PNG picture$/)
      assert.match(yield* reason({ name: "report.md", offset: 25 }), /^invalid_arguments: offset: .*it has 24 bytes$/)
      assert.match(yield* reason({ name: "note.txt" }), /^not_found/)
    })
  )
})
