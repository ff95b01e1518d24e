/**
 * Rows that a tool stages and the outcome of its call, with processes killed before, while and after both are committed: both
 * are there or neither is, and in the end every row is there once.
 */
import { spawn } from "node:child_process"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { DatabaseSync } from "node:sqlite"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { LedgerEntry } from "../../src/actors/EffectLedgerEntry.ts"
import { bundled, temporary } from "../kit/crash.ts"
import * as Postgres from "../kit/postgres.ts"

/** Keys of rows, and of calls that are settled as successful, at one moment. */
interface Seen {
  readonly rows: ReadonlyArray<string>
  readonly settled: ReadonlyArray<string>
}

const seen = (rows: ReadonlyArray<unknown>, bodies: ReadonlyArray<unknown>): Seen => ({
  rows: rows.map(String).sort(),
  settled: bodies
    .map((body) => JSON.parse(String(body)) as LedgerEntry)
    .filter(({ attempts }) => attempts.at(-1)?.settled?.outcome.state === "succeeded")
    .map(({ key }) => key)
    .sort()
})

const inFile = (path: string): Seen => {
  const db = new DatabaseSync(path, { readOnly: true })
  try {
    db.exec("begin")
    const made = db.prepare("select 1 from sqlite_master where name = 'notes'").get() !== undefined
    const rows = made ? db.prepare("select call_key from notes").all() : []
    const entries = db.prepare("select body from entries").all()
    return seen(
      rows.map((row) => row["call_key"]),
      entries.map((row) => row["body"])
    )
  } finally {
    db.close()
  }
}

const whole = (state: Seen): void => {
  assert.strictEqual(new Set(state.rows).size, state.rows.length, "a row is there twice")
  assert.deepStrictEqual(state.rows, state.settled, "a row without its outcome, or an outcome without its row")
}

/** Runs the program, kills it `afterMillis` after it has said `line` if that is given, and tells how it ended. */
const run = (
  program: string,
  args: ReadonlyArray<string>,
  kill?: { readonly line: string; readonly afterMillis: number }
) =>
  Effect.callback<"killed" | "ended">((resume) => {
    const child = spawn(process.execPath, [program, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: join(program, "..", "cache") }
    })
    let errors = ""
    child.stderr.on("data", (data) => {
      errors += data
    })
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (line === kill?.line) setTimeout(() => child.kill("SIGKILL"), kill.afterMillis)
      if (line.startsWith("{")) errors += line
    })
    child.once("close", (code, signal) => {
      const ended = signal === "SIGKILL" ? "killed" : "ended"
      resume(ended === "ended" && (code !== 0 || errors !== "") ? Effect.die(new Error(errors)) : Effect.succeed(ended))
    })
    return Effect.sync(() => void child.kill("SIGKILL"))
  })

/** One process each: where it kills itself, or what it has said when it is killed, and how long after that. */
const kills = (program: string, place: string, from: number, at: number) => {
  const among = (where: string) => [place, String(from), String(from + 40), where]
  const commits = (at % 4) + 1
  switch (at % 4) {
    case 0:
      return run(program, among(`before:${commits}`))
    case 1:
      return run(program, among(`after:${commits}`))
    case 2:
      return run(program, among("slow"), { line: "committing 1", afterMillis: at % 17 })
    default:
      return run(program, among("never"), { line: `committing ${commits}`, afterMillis: at % 6 })
  }
}

describe("a row and its outcome in one SQLite file", () => {
  it.live(
    "are both there or neither, whenever one of two processes is killed, and a repeat adds no second row",
    () =>
      Effect.gen(function* () {
        const program = yield* bundled("stagedChild")
        const path = join(yield* temporary("writ-staged-"), "ledger.sqlite")
        // One that ends by itself leaves its compiled code to those that do not.
        yield* run(program, [path, "0", "1", "never"])
        let killed = 0
        for (let round = 0; round < 26; round++) {
          const from = round * 2
          // Both are after the same numbers.
          const both = [kills(program, path, from, round), kills(program, path, from, round + 1)]
          const ended = yield* Effect.all(both, { concurrency: 2 })
          killed += ended.filter((end) => end === "killed").length
          whole(inFile(path))
        }
        assert.isAtLeast(killed, 50)
        assert.strictEqual(yield* run(program, [path, "0", "60", "never"]), "ended")
        const state = inFile(path)
        whole(state)
        assert.isAtLeast(state.rows.length, 60)
      }),
    300_000
  )
})

describe("a row and its outcome on one PostgreSQL server", () => {
  let server: Awaited<ReturnType<typeof Postgres.startServer>>
  beforeAll(async () => {
    server = await Postgres.startServer()
  })
  afterAll(() => server?.remove())

  it.live(
    "are both there or neither, whenever one of two processes is killed, and a repeat adds no second row",
    () =>
      Effect.gen(function* () {
        const program = yield* bundled("stagedChild")
        const url = yield* Postgres.freshUrl(server)
        const admin = yield* Postgres.connection(url)
        yield* admin.query("create table if not exists notes (n integer not null, call_key text not null)")
        yield* run(program, [url, "0", "1", "never"])
        const onServer = Effect.map(
          admin.query(
            "select (select array_agg(call_key) from notes) as rows, (select array_agg(body) from writ_effects) as bodies"
          ),
          ({ rows }) => seen((rows[0]!["rows"] ?? []) as [], (rows[0]!["bodies"] ?? []) as [])
        )
        let killed = 0
        for (let round = 0; round < 6; round++) {
          const from = round * 2
          const both = [kills(program, url, from, round), kills(program, url, from, round + 1)]
          const ended = yield* Effect.all(both, { concurrency: 2 })
          killed += ended.filter((end) => end === "killed").length
          whole(yield* onServer)
        }
        assert.isAtLeast(killed, 10)
        assert.strictEqual(yield* run(program, [url, "0", "60", "never"]), "ended")
        const state = yield* onServer
        whole(state)
        assert.isAtLeast(state.rows.length, 60)
      }),
    300_000
  )
})
