import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, newestTrace } from "./kit/cli.ts"

const root = join(import.meta.dirname, "..")
const read = (file: string): string => readFileSync(join(root, file), "utf8")

/** An example as somebody who installed the package writes it. */
const published = (file: string): string =>
  read(file).replaceAll('"../src/index.ts"', '"effect-writ"').replaceAll('"../src/testing.ts"', '"effect-writ/testing"')

describe("the examples", () => {
  it("stand in the README as they are", () => {
    for (const file of ["examples/agent.ts", "examples/agent.test.ts"]) {
      assert.include(read("README.md"), `\`\`\`ts\n${published(file)}\`\`\``, file)
    }
  })

  it.live(
    "run: the agent answers and leaves its record",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const { status, stderr, stdout } = spawnSync(process.execPath, [join(root, "examples/agent.ts")], {
          cwd,
          encoding: "utf8"
        })
        assert.deepStrictEqual([status, stdout.includes("42")], [0, true], stderr)
        assert.include(stdout, "1 call, exit code 0, record: .writ/runs/")
        assert.strictEqual(newestTrace(cwd).at(-1)?.event_type, "run_completed")
      }),
    { timeout: 240_000 }
  )
})
