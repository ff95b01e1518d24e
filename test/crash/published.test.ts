/**
 * The other way to be atomic: what is published under a name that follows from its content is there whole or not at all, and
 * whoever repeats it publishes the same file again.
 */
import { spawnSync } from "node:child_process"
import { hash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { temporary } from "../kit/crash.ts"
import { intent } from "../kit/ledger.ts"
import { open } from "../kit/ledgerAt.ts"

const content = "x".repeat(100_000)
const name = `${hash("sha256", content).slice(0, 16)}-a.txt`

const publish = (directory: string, where: "before" | "after" | "never") =>
  Effect.sync(
    () => spawnSync(process.execPath, [join(import.meta.dirname, "../kit/publishChild.ts"), directory, where]).signal
  )

const published = (directory: string): ReadonlyArray<string> =>
  readdirSync(join(directory, "artifacts")).filter((file) => !file.startsWith("."))

const standing = (directory: string) =>
  Effect.map(
    open(join(directory, "ledger.sqlite"), (ledger) => ledger.get(intent(0).key)),
    (record) => record?.standing
  )

for (const [where, files] of [
  ["before", []],
  ["after", [name]]
] as const) {
  it.live(`a process that is killed ${where} the rename has published ${files.length} files, and its repeat one`, () =>
    Effect.gen(function* () {
      const directory = yield* temporary("writ-published-")
      assert.strictEqual(yield* publish(directory, where), "SIGKILL")
      assert.deepStrictEqual(published(directory), files)
      for (const file of files) assert.strictEqual(readFileSync(join(directory, "artifacts", file), "utf8"), content)
      assert.strictEqual(yield* standing(directory), "unknown")
      assert.isNull(yield* publish(directory, "never"))
      assert.strictEqual(yield* standing(directory), "settled")
      assert.deepStrictEqual(readdirSync(join(directory, "artifacts")), [name], "and no temporary file is left")
      assert.strictEqual(readFileSync(join(directory, "artifacts", name), "utf8"), content)
    })
  )
}
