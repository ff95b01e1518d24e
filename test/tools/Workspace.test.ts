import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as net from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Workspace from "../../src/tools/Workspace.ts"

/** A directory with `data` (the workspace) and, beside it, what must not be reached. */
const scene = Effect.acquireRelease(
  Effect.sync(() => {
    const base = fs.mkdtempSync(join(tmpdir(), "writ-workspace-"))
    const root = join(base, "data")
    fs.mkdirSync(join(root, "sub"), { recursive: true })
    fs.mkdirSync(join(base, "data-private"))
    fs.writeFileSync(join(base, "secret.txt"), "secret")
    fs.writeFileSync(join(base, "data-private", "x"), "secret")
    fs.writeFileSync(join(root, "notes.md"), "hello")
    fs.writeFileSync(join(root, "..notes"), "dots")
    fs.writeFileSync(join(root, "sub", "inner.txt"), "inner")
    return { base, root }
  }),
  ({ base }) => Effect.sync(() => fs.rmSync(base, { recursive: true }))
)

const refusal = (root: string | undefined, path: string) =>
  Effect.map(Effect.flip(Workspace.readText(root, path)), (error) => `${error.kind}: ${error.message}`)

describe("Workspace.readText", () => {
  it.effect("reads files by relative path", () =>
    Effect.gen(function* () {
      const { root } = yield* scene
      assert.strictEqual(yield* Workspace.readText(root, "notes.md"), "hello")
      assert.strictEqual(yield* Workspace.readText(root, "./sub//inner.txt"), "inner")
      assert.strictEqual(yield* Workspace.readText(root, "..notes"), "dots")
    })
  )

  it.effect("refuses every path that is not plainly inside", () =>
    Effect.gen(function* () {
      const { base, root } = yield* scene
      const paths = [
        "",
        "/etc/passwd",
        `${base}-private/x`,
        "../secret.txt",
        "../data-private/x",
        "sub/../../secret.txt",
        "sub/..",
        "a\0b",
        "sub\\inner.txt",
        "C:/x",
        ".",
        "sub",
        "sub/",
        "notes.md/x",
        "x".repeat(5000)
      ]
      for (const path of paths) {
        const text = yield* refusal(root, path)
        assert.match(text, /^refused: /, path)
        assert.notInclude(text.replace(JSON.stringify(path.slice(0, 200)), ""), base)
      }
      assert.match(yield* refusal(root, "gone.txt"), /^not_found: .*no such file/)
      assert.match(yield* refusal(undefined, "notes.md"), /no workspace/)
    })
  )

  it.effect("follows no symbolic link, at any place of the path", () =>
    Effect.gen(function* () {
      const { root } = yield* scene
      fs.symlinkSync("../secret.txt", join(root, "link"))
      fs.symlinkSync("..", join(root, "dirlink"))
      fs.symlinkSync("notes.md", join(root, "inside"))
      fs.symlinkSync("gone", join(root, "dangling"))
      for (const path of ["link", "dirlink/secret.txt", "inside", "dangling", "dirlink"]) {
        assert.match(yield* refusal(root, path), /symbolic link/, path)
      }
    })
  )

  it.effect("opens no special file and does not wait for one", () =>
    Effect.gen(function* () {
      const { root } = yield* scene
      execFileSync("mkfifo", [join(root, "pipe")])
      const server = net.createServer()
      yield* Effect.callback<void>((resume) => void server.listen(join(root, "socket"), () => resume(Effect.void)))
      for (const path of ["pipe", "socket"]) assert.match(yield* refusal(root, path), /not a regular file/, path)
      server.close()
      if (fs.existsSync("/dev/null")) assert.match(yield* refusal("/dev", "null"), /not a regular file/)
    })
  )

  it.effect("reads at most a mebibyte", () =>
    Effect.gen(function* () {
      const { root } = yield* scene
      fs.writeFileSync(join(root, "full"), "x".repeat(Workspace.maxFileBytes))
      fs.writeFileSync(join(root, "over"), "x".repeat(Workspace.maxFileBytes + 1))
      assert.strictEqual((yield* Workspace.readText(root, "full")).length, Workspace.maxFileBytes)
      assert.match(yield* refusal(root, "over"), /more than 1048576 bytes/)
      // A file that claims to have no bytes and has some all the same.
      if (fs.existsSync("/proc/self/status"))
        assert.include(yield* Workspace.readText("/proc", `${process.pid}/status`), "Name:")
    })
  )

  it.effect("says at which byte a file stops being UTF-8", () =>
    Effect.gen(function* () {
      const { root } = yield* scene
      const cases: ReadonlyArray<readonly [ReadonlyArray<number>, number]> = [
        [[0x61, 0xff], 1],
        [[0xc3, 0xa9, 0xe2, 0x82], 2],
        [[0x61, 0xe2, 0x28, 0x62], 1],
        [[0xed, 0xa0, 0x80], 0]
      ]
      for (const [bytes, offset] of cases) {
        fs.writeFileSync(join(root, "bytes"), Uint8Array.from(bytes))
        assert.include(yield* refusal(root, "bytes"), `not UTF-8 text (byte ${offset})`)
      }
      fs.writeFileSync(join(root, "bom"), "\ufeffx")
      assert.strictEqual(yield* Workspace.readText(root, "bom"), "\ufeffx")
    })
  )

  it.effect("never reads outside while a directory is being swapped for a link", () =>
    Effect.gen(function* () {
      const { base, root } = yield* scene
      fs.writeFileSync(join(base, "inner.txt"), "secret")
      const swapper = join(base, "swap.cjs")
      fs.writeFileSync(
        swapper,
        `const fs = require("fs"); const p = process.argv[2]; const end = Date.now() + 600
        while (Date.now() < end) { fs.renameSync(p, p + "-real"); fs.symlinkSync("..", p); fs.unlinkSync(p); fs.renameSync(p + "-real", p) }`
      )
      const { spawn } = yield* Effect.promise(() => import("node:child_process"))
      const child = spawn(process.execPath, [swapper, join(root, "sub")])
      let ended = false
      child.once("exit", () => {
        ended = true
      })
      const seen = new Set<string>()
      while (!ended) {
        for (let turn = 0; turn < 50; turn++) {
          seen.add(
            yield* Effect.match(Workspace.readText(root, "sub/inner.txt"), {
              onFailure: (error) => error.kind,
              onSuccess: (text) => text
            })
          )
        }
        yield* Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))
      }
      assert.include([...seen], "inner")
      assert.notInclude([...seen], "secret")
    })
  )
})

describe("Workspace.list", () => {
  it.effect("names regular files by relative path, in order, and nothing else", () =>
    Effect.gen(function* () {
      const { root } = yield* scene
      fs.mkdirSync(join(root, ".git"))
      fs.writeFileSync(join(root, ".git", "config"), "x")
      fs.symlinkSync("..", join(root, "up"))
      fs.symlinkSync("notes.md", join(root, "alias"))
      execFileSync("mkfifo", [join(root, "pipe")])
      assert.deepStrictEqual(yield* Workspace.list(root), { paths: ["notes.md", "sub/inner.txt"], complete: true })
    })
  )

  it.effect("says when a bound cut it", () =>
    Effect.gen(function* () {
      const { root } = yield* scene
      for (let index = 0; index <= Workspace.maxFiles; index++) fs.writeFileSync(join(root, `f${index}`), "")
      const listing = yield* Workspace.list(root)
      assert.strictEqual(listing.paths.length, Workspace.maxFiles)
      assert.isFalse(listing.complete)
      assert.match((yield* Effect.flip(Workspace.list(join(root, "gone")))).message, /cannot read the workspace/)
    })
  )
})

describe("Workspace.leavesBy", () => {
  // A pattern that tries every way to part them would not come back.
  it.effect("reads a path of any number of slashes", () =>
    Effect.gen(function* () {
      const { root } = yield* scene
      assert.isUndefined(Workspace.leavesBy(root, `sub${"/".repeat(3000)}x`))
      assert.isUndefined(Workspace.leavesBy(root, `sub${"/.".repeat(1500)}x`.slice(0, 3000)))
      assert.isString(Workspace.leavesBy(root, `${"/".repeat(3000)}x`))
    })
  )

  it.effect("takes a directory for as good as a file, whatever is written behind it", () =>
    Effect.gen(function* () {
      const { root } = yield* scene
      for (const path of ["", ".", "./", "sub", "sub/", "sub//", "sub/.", "sub/./", "sub//.//.", "./sub/"])
        assert.isUndefined(Workspace.leavesBy(root, path), path)
      for (const path of ["/", "//", "/.", "..", "../", "sub/..", "sub/../..", "..//."])
        assert.isString(Workspace.leavesBy(root, path), path)
    })
  )
})
