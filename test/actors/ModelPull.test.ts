import Fs, { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { type PullOptions, pull } from "../../src/actors/ModelPull.ts"
import * as ModelStore from "../../src/actors/ModelStore.ts"
import { directory } from "../kit/cli.ts"
import { makeGguf } from "../kit/gguf.ts"
import { largeModel, type ModelServer, modelServer, piece, sha256 } from "../kit/modelServer.ts"

const large = largeModel()
const small = makeGguf()

const places = Effect.all([directory, modelServer])

const taking = (dir: string, uri: string, options: Partial<PullOptions> = {}) =>
  pull(uri, { directory: join(dir, "models"), hashes: join(dir, "hashes.json"), ...options })

const failing = (dir: string, uri: string, options: Partial<PullOptions> = {}) => Effect.flip(taking(dir, uri, options))

const kept = (dir: string) => readdirSync(join(dir, "models")).filter((name) => !name.startsWith("."))

/** Until a piece is on disk: the library writes behind the file's own length which ones are. */
const written = (path: string): Effect.Effect<void> =>
  Effect.suspend(() =>
    (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > large.length
      ? Effect.void
      : Effect.andThen(Effect.sleep(2), written(path))
  )

const holding = { request: 3, after: 1000, how: "hold", always: true } as const

/** A download that is interrupted once a piece of it is on disk; the server is the same again afterwards, without the fault. */
const brokenOff = Effect.fnUntraced(function* (dir: string, server: ModelServer, etag?: string) {
  const about = etag === undefined ? {} : { etag }
  server.files.set("/m.gguf", { body: large, ...about, fault: holding })
  const fiber = yield* Effect.forkChild(taking(dir, `${server.url}/m.gguf`))
  yield* written(join(dir, "models/m.gguf.ipull"))
  yield* Fiber.interrupt(fiber)
  assert.deepStrictEqual(kept(dir), ["m.gguf.ipull"])
  server.files.set("/m.gguf", { body: large, ...about })
})

describe("a download", () => {
  it.live(
    "is whole although the connection broke off in the middle of a piece, and sends what had arrived no second time",
    () =>
      Effect.gen(function* () {
        const [dir, server] = yield* places
        // The first request is the library's look at the file.
        server.files.set("/m.gguf", { body: large, fault: { request: 2, after: 3_000_000, how: "cut" } })
        const { had, model, record } = yield* taking(dir, `${server.url}/m.gguf`)
        assert.isFalse(had)
        assert.isTrue(readFileSync(model.path).equals(large))
        assert.deepStrictEqual(record.files, [{ name: "m.gguf", bytes: large.length, sha256: sha256(large) }])
        assert.strictEqual(record.checksum, "computed")
        assert.isBelow(server.sent(), large.length + 2 * piece)
      }).pipe(Effect.scoped)
  )

  it.live("that was interrupted asks only for what is missing the next time, and leaves nothing behind", () =>
    Effect.gen(function* () {
      const [dir, server] = yield* places
      yield* brokenOff(dir, server, '"one"')
      const before = server.sent()
      const { model } = yield* taking(dir, `${server.url}/m.gguf`)
      assert.isTrue(readFileSync(model.path).equals(large))
      assert.isAtMost(server.sent() - before, large.length - piece)
      assert.deepStrictEqual(readdirSync(join(dir, "models")).toSorted(), ["m.gguf", "m.gguf.json"])
    }).pipe(Effect.scoped)
  )

  /** As a process leaves it that is killed: claimed, and one write missing of a piece that counts as there. */
  const killed = Effect.fnUntraced(function* (dir: string, server: ModelServer, headers?: Record<string, string>) {
    yield* brokenOff(dir, server, '"one"')
    const models = join(dir, "models")
    const partial = join(models, "m.gguf.ipull")
    const bytes = readFileSync(partial)
    const { chunks } = JSON.parse(bytes.subarray(large.length).toString()) as { readonly chunks: ReadonlyArray<number> }
    const done = chunks.indexOf(2)
    assert.isAtLeast(done, 0)
    bytes.fill(0, done * piece + 1_000_000, done * piece + 1_065_344)
    writeFileSync(partial, bytes)
    const state = readdirSync(models).find((name) => name.startsWith(".pull-"))!
    writeFileSync(join(models, `${state}.lock`), String(2 ** 22 + 1))
    server.files.set("/m.gguf", { body: large, etag: '"one"', ...(headers === undefined ? {} : { headers }) })
  })

  const digest = { "repr-digest": `sha-256=:${Buffer.from(sha256(large), "hex").toString("base64")}:` }

  for (const [what, headers] of [
    ["begins anew where nobody states a hash", undefined],
    ["begins anew where the hash is another", digest]
  ] as const) {
    it.live(`whose process was killed over it ${what}: no piece counts that was not written`, () =>
      Effect.gen(function* () {
        const [dir, server] = yield* places
        yield* killed(dir, server, headers)
        const { model, record } = yield* taking(dir, `${server.url}/m.gguf`)
        assert.isTrue(readFileSync(model.path).equals(large))
        assert.strictEqual(record.files[0]?.sha256, sha256(large))
      }).pipe(Effect.scoped)
    )
  }

  it.live("whose process was killed over it goes on where a hash says that all is there", () =>
    Effect.gen(function* () {
      const [dir, server] = yield* places
      yield* brokenOff(dir, server, '"one"')
      const state = readdirSync(join(dir, "models")).find((name) => name.startsWith(".pull-"))!
      writeFileSync(join(dir, "models", `${state}.lock`), String(2 ** 22 + 1))
      server.files.set("/m.gguf", { body: large, etag: '"one"', headers: digest })
      const before = server.sent()
      const { model, record } = yield* taking(dir, `${server.url}/m.gguf`)
      assert.isTrue(readFileSync(model.path).equals(large))
      assert.strictEqual(record.checksum, "server")
      assert.isAtMost(server.sent() - before, large.length - piece)
    }).pipe(Effect.scoped)
  )

  it.live("that a server lets hang fails in time and keeps what there is", () =>
    Effect.gen(function* () {
      const [dir, server] = yield* places
      yield* brokenOff(dir, server, '"one"')
      const fault = { request: 1, after: 0, how: "hold", always: true } as const
      server.files.set("/m.gguf", { body: large, etag: '"one"', fault })
      const error = yield* failing(dir, `${server.url}/m.gguf`, { stallSeconds: 1 })
      assert.strictEqual(error.reason, "missing_file")
      assert.match(error.message, /Nothing more arrives after \d+.* bytes.*what has arrived is kept/)
      assert.deepStrictEqual(kept(dir), ["m.gguf.ipull"])
    }).pipe(Effect.scoped)
  )

  /** Another file of the same length, in every piece. */
  const changed = Buffer.from(large)
  for (let at = piece - 100; at < large.length; at += piece) changed.write("another", at)
  changed.write("another", large.length - 100)

  for (const [what, before, after] of [
    ["has another file by now", '"one"', '"two"'],
    ["may have another file by now and does not say", undefined, undefined]
  ] as const) {
    it.live(`is not gone on with where the server ${what}: nothing is mixed`, () =>
      Effect.gen(function* () {
        const [dir, server] = yield* places
        yield* brokenOff(dir, server, before)
        server.files.set("/m.gguf", { body: changed, ...(after === undefined ? {} : { etag: after }) })
        const { model } = yield* taking(dir, `${server.url}/m.gguf`)
        assert.isTrue(readFileSync(model.path).equals(changed))
      }).pipe(Effect.scoped)
    )
  }

  it.live("is not kept if the server's file changed while it was downloaded", () =>
    Effect.gen(function* () {
      const [dir, server] = yield* places
      const uri = `${server.url}/m.gguf`
      server.files.set("/m.gguf", { body: large, etag: '"one"', fault: { request: 3, after: 1000, how: "cut" } })
      const fiber = yield* Effect.forkChild(failing(dir, uri))
      yield* written(join(dir, "models/m.gguf.ipull"))
      server.files.set("/m.gguf", { body: changed, etag: '"two"' })
      assert.match((yield* Fiber.join(fiber)).message, /is not kept: the server has another file by now/)
      assert.deepStrictEqual(kept(dir), [])
      assert.isTrue(readFileSync((yield* taking(dir, uri)).model.path).equals(changed))
    }).pipe(Effect.scoped)
  )

  it.live("from a server that gives no pieces is whole or not there", () =>
    Effect.gen(function* () {
      const [dir, server] = yield* places
      server.files.set("/m.gguf", { body: large, ranges: false, fault: { request: 1, after: 8_000_000, how: "cut" } })
      const error = yield* failing(dir, `${server.url}/m.gguf`)
      assert.match(error.message, /broke off after \d+ bytes, and the server gives no pieces/)
      assert.isFalse(existsSync(join(dir, "models/m.gguf")))
      const { model } = yield* taking(dir, `${server.url}/m.gguf`)
      assert.isTrue(readFileSync(model.path).equals(large))
    }).pipe(Effect.scoped)
  )

  it.live("tells how much has arrived, never less than before", () =>
    Effect.gen(function* () {
      const [dir, server] = yield* places
      server.files.set("/m.gguf", { body: large, fault: { request: 2, after: 3_000_000, how: "cut" } })
      const told: Array<number> = []
      const onProgress: PullOptions["onProgress"] = (step, done, total) => {
        if (step === "downloading") {
          told.push(done)
          assert.strictEqual(total, large.length)
        }
      }
      yield* taking(dir, `${server.url}/m.gguf`, { onProgress })
      assert.deepStrictEqual(
        told,
        told.toSorted((a, b) => a - b)
      )
      assert.strictEqual(told.at(-1), large.length)
    }).pipe(Effect.scoped)
  )
})

describe("what a server gives", () => {
  it.live("is not kept if it is no GGUF file", () =>
    Effect.gen(function* () {
      const [dir, server] = yield* places
      server.files.set("/page.gguf", { body: Buffer.from("<html>please log in</html>") })
      const error = yield* failing(dir, `${server.url}/page.gguf`)
      assert.strictEqual(error.reason, "bad_file")
      assert.match(error.message, /is not kept: page.gguf cannot be used as a model: it is not a GGUF file/)
      assert.deepStrictEqual(kept(dir), [])
    }).pipe(Effect.scoped)
  )

  it.live("is not kept if it is shorter than its header says, or than the server said", () =>
    Effect.gen(function* () {
      const [dir, server] = yield* places
      server.files.set("/cut.gguf", { body: small.subarray(0, small.length - 4096) })
      assert.match((yield* failing(dir, `${server.url}/cut.gguf`)).message, /is not kept: .*cut short/)
      server.files.set("/said.gguf", { body: small, headLength: small.length + 1000 })
      const error = yield* failing(dir, `${server.url}/said.gguf`)
      assert.include(error.message, `it has ${small.length} bytes, and the server said ${small.length + 1000}`)
      assert.deepStrictEqual(kept(dir), [])
    }).pipe(Effect.scoped)
  )

  it.live("has to have the hash that was asked for, or that the server states", () =>
    Effect.gen(function* () {
      const [dir, server] = yield* places
      server.files.set("/a.gguf", { body: small })
      const wrong = "0".repeat(64)
      const unexpected = yield* failing(dir, `${server.url}/a.gguf`, { sha256: wrong })
      assert.include(unexpected.message, `its SHA-256 is ${sha256(small)}, and you expect ${wrong}`)
      const stated = (hex: string) => ({ "repr-digest": `sha-256=:${Buffer.from(hex, "hex").toString("base64")}:` })
      server.files.set("/a.gguf", { body: small, headers: stated(wrong) })
      assert.include((yield* failing(dir, `${server.url}/a.gguf`)).message, `the server states ${wrong}`)
      assert.deepStrictEqual(kept(dir), [])
      server.files.set("/a.gguf", { body: small, headers: stated(sha256(small)) })
      assert.strictEqual((yield* taking(dir, `${server.url}/a.gguf`)).record.checksum, "server")
      yield* ModelStore.remove(join(dir, "models"), ModelStore.find(join(dir, "models"), "a")!)
      const given = yield* taking(dir, `${server.url}/a.gguf`, { sha256: sha256(small) })
      assert.strictEqual(given.record.checksum, "given")
    }).pipe(Effect.scoped)
  )

  it.live("may be nothing: one request, and what to do", () =>
    Effect.gen(function* () {
      const [dir, server] = yield* places
      const error = yield* failing(dir, `${server.url}/none.gguf?key=secret`)
      assert.strictEqual(error.reason, "missing_file")
      assert.match(error.message, /has no such file \(404\)\. Check the name/)
      assert.notInclude(error.message, "secret")
      assert.lengthOf(server.asked, 1)
      server.files.set("/closed.gguf", { body: small, status: 403 })
      assert.match((yield* failing(dir, `${server.url}/closed.gguf`)).message, /does not give it away \(403\)/)
      server.files.set("/broken.gguf", { body: small, status: 503 })
      assert.match((yield* failing(dir, `${server.url}/broken.gguf`)).message, /answers 503\. Try again later/)
    }).pipe(Effect.scoped)
  )
})

describe("a directory that cannot be written", () => {
  it.live("is said to be that, with what to do", () =>
    Effect.gen(function* () {
      const [dir, server] = yield* places
      const uri = `${server.url}/m.gguf`
      server.files.set("/m.gguf", { body: small })
      mkdirSync(join(dir, "models", `.pull-${sha256(Buffer.from(uri)).slice(0, 12)}.json`), { recursive: true })
      const error = yield* failing(dir, uri)
      assert.strictEqual(error.reason, "missing_file")
      assert.match(error.message, /cannot be written: EISDIR.*--models-dir/)
    }).pipe(Effect.scoped)
  )
})

describe("a machine without a network", () => {
  it.live("is told so at once, and uses what it has", () =>
    Effect.gen(function* () {
      const dir = yield* directory
      const uri = yield* Effect.scoped(
        Effect.gen(function* () {
          const server = yield* modelServer
          server.files.set("/m.gguf", { body: small })
          yield* taking(dir, `${server.url}/m.gguf`)
          return `${server.url}/m.gguf`
        })
      )
      // The server is gone.
      assert.isTrue((yield* taking(dir, uri)).had)
      const error = yield* failing(dir, uri.replace("m.gguf", "other.gguf"))
      assert.match(error.message, /There is no connection to 127\.0\.0\.1:\d+\. Check the network.*--model FILE/)
    }).pipe(Effect.scoped)
  )
})

describe("names", () => {
  it.live("of two files that are called the same do not meet", () =>
    Effect.gen(function* () {
      const [dir, server] = yield* places
      const other = makeGguf({ seed: 2 })
      server.files.set("/a/m.gguf", { body: small })
      server.files.set("/b/m.gguf", { body: other })
      const one = yield* taking(dir, `${server.url}/a/m.gguf`)
      const two = yield* taking(dir, `${server.url}/b/m.gguf`)
      assert.strictEqual(one.model.name, "m")
      assert.match(two.model.name, /^127\.0\.0\.1-\d+_m$/)
      assert.isTrue(readFileSync(two.model.path).equals(other))
      const third = yield* failing(dir, `${server.url}/b/m.gguf?again`, { name: "m" })
      assert.match(third.message, /another model of the name m\.gguf already/)
    }).pipe(Effect.scoped)
  )

  it.live("that are very long and differ at their ends stay two", () =>
    Effect.gen(function* () {
      const [dir, server] = yield* places
      const other = makeGguf({ seed: 2 })
      const long = "n".repeat(150)
      server.files.set(`/${long}-Q4_K_M.gguf`, { body: small })
      server.files.set(`/${long}-Q4_K_S.gguf`, { body: other })
      const one = yield* taking(dir, `${server.url}/${long}-Q4_K_M.gguf`)
      const two = yield* taking(dir, `${server.url}/${long}-Q4_K_S.gguf`)
      assert.match(one.model.name, /^n+_n+-Q4_K_M$/)
      assert.match(two.model.name, /^n+_n+-Q4_K_S$/)
      assert.isTrue(readFileSync(one.model.path).equals(small))
      assert.isTrue(readFileSync(two.model.path).equals(other))
    }).pipe(Effect.scoped)
  )

  it.live("lead nowhere else, whatever the address says", () =>
    Effect.gen(function* () {
      const [dir, server] = yield* places
      server.files.set("/%2e%2e%2f%2e%2e%2fm.gguf", { body: small })
      const { model } = yield* taking(dir, `${server.url}/%2e%2e%2f%2e%2e%2fm.gguf`)
      assert.strictEqual(model.path, join(dir, "models", "m.gguf"))
    }).pipe(Effect.scoped)
  )

  it.live("that another process is downloading are left to it", () =>
    Effect.gen(function* () {
      const [dir, server] = yield* places
      const uri = `${server.url}/m.gguf`
      yield* brokenOff(dir, server)
      const state = readdirSync(join(dir, "models")).find((name) => name.startsWith(".pull-"))!
      writeFileSync(join(dir, "models", `${state}.lock`), String(process.ppid))
      assert.match((yield* failing(dir, uri)).message, /Another process \(\d+\) is downloading it now/)
      // One that has ended does not keep it.
      writeFileSync(join(dir, "models", `${state}.lock`), String(2 ** 22 + 1))
      yield* taking(dir, uri)
    }).pipe(Effect.scoped)
  )

  it.live("that two processes take over from one that has ended are taken by one of them", () =>
    Effect.gen(function* () {
      const [dir, server] = yield* places
      yield* brokenOff(dir, server, '"one"')
      const state = readdirSync(join(dir, "models")).find((name) => name.startsWith(".pull-"))!
      const lock = join(dir, "models", `${state}.lock`)
      writeFileSync(lock, String(2 ** 22 + 1))
      // The other one comes between this one's look and what it does then.
      const read = Fs.readFileSync
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          Fs.readFileSync = ((path: string, ...rest: ReadonlyArray<never>) => {
            const text = Reflect.apply(read, Fs, [path, ...rest])
            if (path !== lock) return text
            Fs.readFileSync = read
            syncBuiltinESMExports()
            writeFileSync(lock, String(process.ppid))
            return text
          }) as typeof read
          syncBuiltinESMExports()
        }),
        () =>
          Effect.sync(() => {
            Fs.readFileSync = read
            syncBuiltinESMExports()
          })
      )
      const error = yield* failing(dir, `${server.url}/m.gguf`)
      assert.match(error.message, /Another process has just begun to download it/)
      assert.strictEqual(readFileSync(lock, "utf8"), String(process.ppid))
      assert.deepStrictEqual(kept(dir), ["m.gguf.ipull"])
    }).pipe(Effect.scoped)
  )

  it.live("that this process is downloading are left to whoever came first", () =>
    Effect.gen(function* () {
      const [dir, server] = yield* places
      const uri = `${server.url}/m.gguf`
      server.files.set("/m.gguf", { body: large, fault: holding })
      const first = yield* Effect.forkChild(taking(dir, uri))
      yield* written(join(dir, "models/m.gguf.ipull"))
      assert.match((yield* failing(dir, uri)).message, /This process is downloading it now/)
      yield* Fiber.interrupt(first)
      server.files.set("/m.gguf", { body: large })
      assert.isFalse((yield* taking(dir, uri)).had)
    }).pipe(Effect.scoped)
  )
})

describe("a hub", () => {
  const hub = (server: ModelServer) => {
    server.others.set("/v2/user/repo/manifests/Q8_0", (request, response) => {
      assert.strictEqual(request.headers["user-agent"], "llama-cpp")
      response.end(JSON.stringify({ ggufFile: { rfilename: "repo-q8_0.gguf" } }))
    })
    server.others.set("/user/repo/resolve/main/repo-q8_0.gguf", (_, response) => {
      const headers = {
        location: "/cdn/1",
        "x-linked-etag": `"${sha256(small)}"`,
        "x-linked-size": String(small.length)
      }
      response.writeHead(302, headers).end()
    })
    server.files.set("/cdn/1", { body: small })
  }

  it.live("is asked which file a quantization is, and its hash is the one that counts", () =>
    Effect.gen(function* () {
      const [dir, server] = yield* places
      hub(server)
      const before = process.env["HF_ENDPOINT"]
      // The library reads it from the process.
      process.env["HF_ENDPOINT"] = server.url
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          if (before === undefined) delete process.env["HF_ENDPOINT"]
          else process.env["HF_ENDPOINT"] = before
        })
      )
      const env = ConfigProvider.fromEnv({ env: { HF_ENDPOINT: server.url } })
      const asking = <A, E>(effect: Effect.Effect<A, E>) =>
        Effect.provideService(effect, ConfigProvider.ConfigProvider, env)
      const { model, record } = yield* asking(taking(dir, "hf:user/repo:Q8_0"))
      assert.strictEqual(model.name, "repo-q8_0")
      assert.strictEqual(record.checksum, "server")
      assert.isTrue((yield* asking(taking(dir, "hf:user/repo:Q8_0"))).had)
      server.files.set("/cdn/1", { body: makeGguf({ seed: 2 }) })
      assert.match((yield* asking(failing(dir, "hf:user/repo/repo-q8_0.gguf"))).message, /the server states/)
      assert.match((yield* asking(failing(dir, "hf:user/none"))).message, /has no such file \(404\)/)
      assert.match((yield* asking(failing(dir, "hf:user"))).message, /It is written hf:USER\/REPO:QUANT/)
    }).pipe(Effect.scoped)
  )
})
