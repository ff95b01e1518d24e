import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { look, makeDirectory, missingOf } from "../../src/actors/Directories.ts"

const within = (use: (place: string) => void): void => {
  const place = mkdtempSync(join(tmpdir(), "writ-directories-"))
  try {
    use(place)
  } finally {
    rmSync(place, { recursive: true })
  }
}

describe("a directory", () => {
  it("is made with what is missing above it, and being there is fine", () =>
    within((place) => {
      const deep = join(place, "a/b/c")
      assert.deepStrictEqual(missingOf(`${deep}/`), {
        base: place,
        missing: [join(place, "a"), join(place, "a/b"), `${deep}/`]
      })
      makeDirectory(deep)
      makeDirectory(deep)
      assert.strictEqual(look(deep)._tag, "Directory")
    }))

  it("is found behind a link, and another process may have made it first", () =>
    within((place) => {
      mkdirSync(join(place, "real"))
      symlinkSync("real", join(place, "link"))
      makeDirectory(join(place, "link/a"))
      assert.isTrue(existsSync(join(place, "real/a")))
    }))

  it("that cannot be is refused with a reason and a code", () =>
    within((place) => {
      writeFileSync(join(place, "file"), "")
      symlinkSync("loop", join(place, "loop"))
      for (const [directory, reason] of [
        ["file/x", "is not a directory"],
        ["loop/x", "ELOOP"],
        ["a".repeat(300), "ENAMETOOLONG"]
      ] as const) {
        try {
          makeDirectory(join(place, directory))
          assert.fail("it was made")
        } catch (error) {
          assert.include((error as Error).message, reason)
          assert.isString((error as NodeJS.ErrnoException).code)
        }
      }
    }))
})

/** Each actor that makes a directory, asked to make one in a file system that makes none. In a process: it may hang. */
const program = `
import * as Effect from "effect/Effect"
const at = process.argv[1]
const src = (file) => new URL("./src/actors/" + file, "file://" + process.cwd() + "/").href
const [ledger, { EffectLedger }, hashes, artifacts, traces] = await Promise.all([
  import(src("EffectLedgerSqlite.ts")), import(src("EffectLedger.ts")), import(src("ModelHashes.ts")),
  import(src("ArtifactStore.ts")), import(src("TraceWriter.ts"))
])
const tried = async (name, effect) => {
  const exit = await Effect.runPromiseExit(effect)
  console.log(name, exit._tag, exit._tag === "Failure" ? exit.cause.reasons.map(({ _tag }) => _tag).join() : "")
}
await tried("ledger", Effect.provide(Effect.service(EffectLedger), ledger.layerSqlite({ path: at + "/l.sqlite" })))
await tried("hashes", hashes.sha256("package.json", at + "/hashes.json"))
await tried("artifacts", Effect.provide(
  Effect.flatMap(Effect.service(artifacts.ArtifactStore), (store) =>
    store.put("run", { name: "a.txt", mediaType: "text/plain", bytes: Buffer.from("a") })),
  artifacts.layerDirectory(() => at)
))
await tried("trace", Effect.scoped(Effect.provide(
  Effect.flatMap(Effect.service(traces.TraceWriter), (writer) =>
    writer.open("run", { content: false, tokenEvents: false })),
  traces.layerFile(() => at + "/trace.jsonl")
)))
`

it.skipIf(!existsSync("/proc/self"))(
  "no actor hangs where no directory can be made: each fails, or does without",
  () => {
    const { error, stderr, stdout } = spawnSync(
      process.execPath,
      ["--input-type=module", "-e", program, "/proc/writ/deep"],
      { cwd: join(import.meta.dirname, "../.."), encoding: "utf8", timeout: 50_000, killSignal: "SIGKILL" }
    )
    assert.isUndefined(error, stderr)
    // Hashes are a cache: a file is hashed all the same.
    assert.deepStrictEqual(
      stdout
        .trim()
        .split("\n")
        .map((line) => line.trim()),
      ["ledger Failure Fail", "hashes Success", "artifacts Failure Fail", "trace Failure Fail"],
      stderr
    )
  }
)
