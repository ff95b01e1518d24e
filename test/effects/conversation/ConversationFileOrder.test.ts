/** Which calls a save makes, in which order: what makes a file old or new after the machine stopped cannot be seen otherwise. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { vi } from "vitest"
import * as ConversationFile from "../../../src/effects/conversation/ConversationFile.ts"

const calls = vi.hoisted((): Array<string> => [])
const failing = vi.hoisted(() => ({ rename: false }))

vi.mock("node:fs", async (original) => {
  const fs = await original<typeof import("node:fs")>()
  const names = new Map<number, string>()
  const last = (path: unknown): string => String(path).split("/").at(-1)!.replace(String(process.pid), "PID")
  return {
    ...fs,
    openSync: (path: string, flags: string, mode?: number) => {
      const fd = fs.openSync(path, flags, mode)
      names.set(fd, last(path))
      calls.push(`open ${last(path)} ${flags}`)
      return fd
    },
    writeSync: (fd: number, bytes: Uint8Array, offset: number) => {
      calls.push(`write ${names.get(fd)}`)
      return fs.writeSync(fd, bytes, offset)
    },
    fsyncSync: (fd: number) => {
      calls.push(`sync ${names.get(fd)}`)
      fs.fsyncSync(fd)
    },
    closeSync: (fd: number) => {
      calls.push(`close ${names.get(fd)}`)
      fs.closeSync(fd)
    },
    renameSync: (from: string, to: string) => {
      calls.push(`rename ${last(from)} ${last(to)}`)
      if (failing.rename) throw Object.assign(new Error("EIO: i/o error, rename 'a' -> 'b'"), { code: "EIO" })
      fs.renameSync(from, to)
    }
  }
})

const saying = (content: string) => ({ meta: { model: "noop" }, session: [{ role: "user" as const, content }] })

const directory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "writ-order-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

describe("saving a conversation", () => {
  it.live("has the new file on disk before it takes the old one's name, and the name on disk before it returns", () =>
    Effect.gen(function* () {
      const root = yield* directory
      const path = join(root, "default.yaml")
      writeFileSync(path, "---\nmodel: noop\n")
      calls.length = 0
      yield* ConversationFile.save(path, saying("a"))
      const place = root.split("/").at(-1)
      assert.deepStrictEqual(calls, [
        "open .default.yaml.PID.tmp w",
        "write .default.yaml.PID.tmp",
        "sync .default.yaml.PID.tmp",
        "close .default.yaml.PID.tmp",
        "rename .default.yaml.PID.tmp default.yaml",
        `open ${place} r`,
        `sync ${place}`,
        `close ${place}`
      ])
    })
  )

  it.live("leaves the old file alone when the new one cannot take its name", () =>
    Effect.gen(function* () {
      const path = join(yield* directory, "default.yaml")
      yield* ConversationFile.save(path, saying("old"))
      const before = readFileSync(path, "utf8")
      failing.rename = true
      const { message } = yield* Effect.flip(ConversationFile.save(path, saying("new"))).pipe(
        Effect.ensuring(Effect.sync(() => (failing.rename = false)))
      )
      assert.match(message, /default\.yaml: it cannot be written: EIO: i\/o error/)
      assert.strictEqual(readFileSync(path, "utf8"), before)
    })
  )
})
