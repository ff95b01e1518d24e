import { hash } from "node:crypto"
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { ArtifactStore, layerDirectory, layerMemory } from "../../src/actors/ArtifactStore.ts"

const artifact = (name: string, text: string) => ({ name, mediaType: "text/plain", bytes: Buffer.from(text) })

/** A store in a directory of its own, which is there only for the test. */
const withStore = <A, E>(
  use: (store: ArtifactStore["Service"], root: string) => Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "writ-artifacts-"))),
    (root) =>
      Effect.flatMap(ArtifactStore, (store) => use(store, root)).pipe(
        Effect.provide(layerDirectory((runId) => join(root, runId)))
      ),
    (root) => Effect.sync(() => rmSync(root, { recursive: true, force: true }))
  )

describe("artifacts in a directory", () => {
  it.live("are written whole, named after their content, and told with hash, size and media type", () =>
    withStore((store, root) =>
      Effect.gen(function* () {
        const ref = yield* store.put("run-1", artifact("a.txt", "日本語"))
        const sha256 = hash("sha256", "日本語")
        assert.deepStrictEqual(ref, {
          artifactId: `${sha256.slice(0, 16)}-a.txt`,
          name: "a.txt",
          sha256,
          bytes: 9,
          mediaType: "text/plain",
          path: join(root, "run-1", `${sha256.slice(0, 16)}-a.txt`)
        })
        assert.strictEqual(readFileSync(ref.path!, "utf8"), "日本語")
        assert.deepStrictEqual(Buffer.from(yield* store.get("run-1", ref.artifactId)), Buffer.from("日本語"))
        assert.deepStrictEqual(readdirSync(join(root, "run-1")), [ref.artifactId], "no temporary file is left")
      })
    )
  )

  it.live("refuse every name that is not plainly one, and write nothing", () =>
    withStore((store, root) =>
      Effect.gen(function* () {
        for (const name of [
          "",
          ".",
          "..",
          "../a",
          "/etc/passwd",
          "a/b",
          "a\\b",
          ".hidden",
          "ä.txt",
          "a b",
          "x".repeat(129)
        ]) {
          const error = yield* Effect.flip(store.put("run-1", artifact(name, "x")))
          assert.include(error.message, "not an artifact name", name)
        }
        assert.isFalse(existsSync(join(root, "run-1")))
      })
    )
  )

  it.live("are one file for the same name and content, and two for other content", () =>
    withStore((store, root) =>
      Effect.gen(function* () {
        const first = yield* store.put("run-1", artifact("a.txt", "x"))
        const same = yield* store.put("run-1", artifact("a.txt", "x"))
        const other = yield* store.put("run-1", artifact("a.txt", "y"))
        assert.deepStrictEqual(same, first)
        assert.notStrictEqual(other.artifactId, first.artifactId)
        assert.strictEqual(readdirSync(join(root, "run-1")).length, 2)
      })
    )
  )

  it.live("of one run are not those of another", () =>
    withStore((store) =>
      Effect.gen(function* () {
        const ref = yield* store.put("run-1", artifact("a.txt", "x"))
        const error = yield* Effect.flip(store.get("run-2", ref.artifactId))
        assert.strictEqual(error._tag, "ArtifactError")
      })
    )
  )

  it.live("never take the place of a file that is something else", () =>
    withStore((store, root) =>
      Effect.gen(function* () {
        const id = `${hash("sha256", "x").slice(0, 16)}-a.txt`
        mkdirSync(join(root, "run-1"))
        writeFileSync(join(root, "run-1", id), "not x")
        const error = yield* Effect.flip(store.put("run-1", artifact("a.txt", "x")))
        assert.include(error.message, "another file")
        assert.strictEqual(readFileSync(join(root, "run-1", id), "utf8"), "not x")
      })
    )
  )
})

it.effect("artifacts in memory have the same references, but no path", () =>
  Effect.gen(function* () {
    const store = yield* ArtifactStore
    const ref = yield* store.put("run-1", artifact("a.txt", "x"))
    assert.deepInclude(ref, { artifactId: `${hash("sha256", "x").slice(0, 16)}-a.txt`, path: undefined })
    assert.deepStrictEqual(Buffer.from(yield* store.get("run-1", ref.artifactId)), Buffer.from("x"))
    assert.strictEqual((yield* Effect.flip(store.put("run-1", artifact("../a", "x"))))._tag, "ArtifactError")
  }).pipe(Effect.provide(layerMemory))
)

describe("what a run may keep", () => {
  const withQuota = <A, E>(use: (store: ArtifactStore["Service"], root: string) => Effect.Effect<A, E>) =>
    Effect.acquireUseRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "writ-quota-"))),
      (root) =>
        Effect.flatMap(ArtifactStore, (store) => use(store, root)).pipe(
          Effect.provide(layerDirectory((runId) => join(root, runId), { files: 3, bytes: 10 }))
        ),
      (root) => Effect.sync(() => rmSync(root, { recursive: true, force: true }))
    )
  const said = (store: ArtifactStore["Service"], name: string, text: string) =>
    Effect.map(Effect.flip(store.put("run", artifact(name, text))), ({ message }) => message)

  it.live("is bounded in number and in bytes, and what was there before counts", () =>
    withQuota((store, root) =>
      Effect.gen(function* () {
        mkdirSync(join(root, "run"))
        writeFileSync(join(root, "run", "0000000000000000-old.txt"), "1234")
        yield* store.put("run", artifact("a.txt", "1234"))
        assert.match(yield* said(store, "b.txt", "123"), /would have 11 bytes, at most 10 are kept/)
        yield* store.put("run", artifact("b.txt", "1"))
        assert.match(yield* said(store, "c.txt", "1"), /has 3 artifacts, at most 3 are kept/)
        // The same again is the same one, and another run has its own quota.
        yield* store.put("run", artifact("a.txt", "1234"))
        yield* store.put("other", artifact("c.txt", "1"))
        assert.strictEqual(readdirSync(join(root, "run")).length, 3)
      })
    )
  )

  it.live("is never written through a link that lies where the artifact would", () =>
    withStore((store, root) =>
      Effect.gen(function* () {
        const { artifactId } = yield* store.put("first", artifact("a.txt", "text"))
        mkdirSync(join(root, "run"))
        symlinkSync(join(root, "outside"), join(root, "run", `.${artifactId}.tmp`))
        yield* store.put("run", artifact("a.txt", "text"))
        assert.isFalse(existsSync(join(root, "outside")))
        rmSync(join(root, "run", artifactId))
        symlinkSync(join(root, "first", artifactId), join(root, "run", artifactId))
        assert.match(yield* said(store, "a.txt", "text"), /taken by something that is no file/)
        assert.strictEqual(store.directory!("run"), join(root, "run"))
      })
    )
  )
})
