import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { type FileHandle, open } from "node:fs/promises"
import type { IncomingMessage, ServerResponse } from "node:http"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { type DownloadOptions, download } from "../../src/engine/LlamaDownload.ts"
import { ask } from "../../src/engine/RemoteFile.ts"
import { directory } from "../kit/cli.ts"
import { largeModel, type ModelServer, modelServer, piece } from "../kit/modelServer.ts"

const large = largeModel()

/** Answers as a server does; the requests for pieces as `give` says, from the first on. */
const serve = (
  server: ModelServer,
  give: (nth: number, from: number, to: number, response: ServerResponse) => void = (_, from, to, response) =>
    whole(from, to, response)
): string => {
  let nth = 0
  server.others.set("/m.gguf", (request: IncomingMessage, response) => {
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "")
    if (range !== null) {
      nth += 1
      give(nth, Number(range[1]), Number(range[2]), response)
      return
    }
    response.writeHead(200, { "content-length": large.length, "accept-ranges": "bytes" })
    response.end(request.method === "HEAD" ? undefined : large)
  })
  return `${server.url}/m.gguf`
}

const about = (from: number, to: number) => ({
  "accept-ranges": "bytes",
  "content-range": `bytes ${from}-${to}/${large.length}`
})

const whole = (from: number, to: number, response: ServerResponse): void => {
  response.writeHead(206, { ...about(from, to), "content-length": to - from + 1 }).end(large.subarray(from, to + 1))
}

const taking = (directory: string, uri: string, options: Partial<DownloadOptions> = {}) =>
  Effect.flatMap(ask(uri), (remote) => download(uri, remote, { directory, fileName: "m.gguf", ...options }))

type Write = (buffer: Uint8Array, offset: number, length: number, position: number) => Promise<unknown>

/** What all open files have in common, with other methods until the scope closes. */
const files = Effect.acquireRelease(
  Effect.promise(async () => {
    const file = await open(import.meta.filename)
    const prototype = Object.getPrototypeOf(file) as { write: Write; truncate: FileHandle["truncate"] }
    await file.close()
    const { truncate, write } = prototype
    return { prototype, truncate, write }
  }),
  ({ prototype, truncate, write }) => Effect.sync(() => Object.assign(prototype, { truncate, write }))
)

/** Rejections that nobody heard. */
const unheard = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => {
      const found: Array<unknown> = []
      const hear = (cause: unknown) => void found.push(cause)
      process.on("unhandledRejection", hear)
      return { found, hear }
    }),
    ({ hear }) => Effect.sync(() => process.off("unhandledRejection", hear))
  ),
  ({ found }) => found
)

const places = Effect.all([directory, modelServer])

describe("a server that changes its mind during a download", () => {
  for (const [status, said] of [
    [403, /The server answers 403 for a part of it/],
    [416, /The server answers 416 for a part of it/],
    [200, /The server sends something else than the part it was asked for/]
  ] as const) {
    it.live(`by a ${status} for a piece is a failure with words, and no rejection that nobody hears`, () =>
      Effect.gen(function* () {
        const [dir, server] = yield* places
        const rejected = yield* unheard
        const uri = serve(server, (nth, from, to, response) => {
          if (nth === 1) whole(from, to, response)
          else response.writeHead(status, { "content-type": "text/html" }).end("<html>please log in</html>")
        })
        const error = yield* Effect.flip(taking(dir, uri))
        assert.strictEqual(error.reason, "missing_file")
        assert.match(error.message, said)
        yield* Effect.sleep(1)
        assert.deepStrictEqual(rejected, [])
        assert.isFalse(existsSync(join(dir, "m.gguf")))
      }).pipe(Effect.scoped)
    )
  }

  it.live("by ending a piece too soon, as if it were whole, is asked for the rest", () =>
    Effect.gen(function* () {
      const [dir, server] = yield* places
      let short = 0
      const uri = serve(server, (_, from, to, response) => {
        if (short >= 3) return whole(from, to, response)
        short += 1
        // Without a length, an end is an end.
        response.writeHead(206, about(from, to)).end(large.subarray(from, from + 1_000_000))
      })
      const [path] = yield* taking(dir, uri)
      assert.isTrue(readFileSync(path!).equals(large))
    }).pipe(Effect.scoped)
  )
})

describe("what is noted of a download", () => {
  it.live("is no piece that a full disk has not taken, and the file is whole once there is room", () =>
    Effect.gen(function* () {
      const [dir, server] = yield* places
      const rejected = yield* unheard
      const { prototype, write } = yield* files
      let room = piece + 1_000_000
      prototype.write = function (this: FileHandle, buffer, ...rest) {
        room -= buffer.length
        if (room >= 0) return Reflect.apply(write, this, [buffer, ...rest])
        return Promise.reject(Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" }))
      }
      const uri = serve(server)
      const error = yield* Effect.flip(taking(dir, uri))
      assert.match(error.message, /The disk is full/)
      yield* Effect.sleep(1)
      assert.deepStrictEqual(rejected, [])
      assert.isFalse(existsSync(join(dir, "m.gguf")))
      prototype.write = write
      const [path] = yield* taking(dir, uri)
      assert.isTrue(readFileSync(path!).equals(large))
    }).pipe(Effect.scoped)
  )

  it.live("never comes behind the end of the whole file, however slowly it is written", () =>
    Effect.gen(function* () {
      const [dir, server] = yield* places
      const { prototype, truncate, write } = yield* files
      let cut = () => {}
      const ended = new Promise<void>((resolve) => (cut = resolve))
      prototype.write = async function (this: FileHandle, buffer, ...rest) {
        // A note that is overtaken by whatever the library does without waiting for it.
        const [, , position] = rest
        if (position >= large.length) await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 100))])
        return Reflect.apply(write, this, [buffer, ...rest])
      }
      prototype.truncate = async function (this: FileHandle, length) {
        await Reflect.apply(truncate, this, [length])
        cut()
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      const [path] = yield* taking(dir, serve(server))
      assert.strictEqual(statSync(path!).size, large.length)
      assert.deepStrictEqual(readdirSync(dir), ["m.gguf"])
    }).pipe(Effect.scoped)
  )
})
