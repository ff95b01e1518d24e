/** The invoice example, as its README tells it: every fault, what is in the books afterwards, and how the run ended. */
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { validateFile } from "../../src/effects/trace/TraceValidator.ts"
import { temporary } from "../kit/crash.ts"

const root = join(import.meta.dirname, "..", "..")
const example = join(root, "examples", "billing")

interface Ran {
  readonly status: number | null
  readonly out: string
}

/** One for all: what is compiled once is not compiled again by the next process. */
const cache = mkdtempSync(join(tmpdir(), "writ-example-cache-"))
afterAll(() => rmSync(cache, { recursive: true, force: true }))

const run = (cwd: string, program: string, ...args: ReadonlyArray<string>): Effect.Effect<Ran> =>
  Effect.callback((resume) => {
    const child = spawn(process.execPath, [program, ...args], {
      cwd,
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: cache }
    })
    let out = ""
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (out += chunk))
    child.on("close", (status) => resume(Effect.succeed({ status, out })))
    return Effect.sync(() => child.kill())
  })

const main = (cwd: string, fault: string) => run(cwd, join(example, "main.ts"), "--fault", fault, "--delay", "20")

const writ = (cwd: string, ...args: ReadonlyArray<string>) => run(cwd, join(root, "src", "cli.ts"), ...args)

const booksOf = (cwd: string): ReadonlyArray<string> => {
  const path = join(cwd, "books.json")
  const books = existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as ReadonlyArray<{ status: string }>) : []
  return books.map(({ status }) => status)
}

const tracesOf = (cwd: string): ReadonlyArray<string> => {
  const runs = join(cwd, ".writ", "runs")
  return readdirSync(runs).map((name) => join(runs, name, "trace.jsonl"))
}

const posts = (out: string): ReadonlyArray<string> => out.match(/POST \/invoices {2}key \w+…/g) ?? []

interface Told {
  readonly fault: string
  readonly status: number
  readonly books: ReadonlyArray<string>
  readonly posts: number
  readonly ending: string
  readonly settled: string
}

const story: ReadonlyArray<Told> = [
  { fault: "none", status: 0, books: ["issued"], posts: 1, ending: "Completed", settled: "settled_ok" },
  { fault: "lost-answer", status: 0, books: ["issued"], posts: 2, ending: "Completed", settled: "settled_ok" },
  { fault: "down", status: 7, books: [], posts: 4, ending: "Escalated", settled: "ambiguous" },
  {
    fault: "accepted-then-fails",
    status: 0,
    books: ["rejected"],
    posts: 1,
    ending: "Completed",
    settled: "settled_failed"
  },
  { fault: "accepted-then-silent", status: 7, books: ["pending"], posts: 1, ending: "Escalated", settled: "ambiguous" }
]

describe("examples/billing", { timeout: 240_000 }, () => {
  for (const { books, ending, fault, posts: sent, settled, status } of story) {
    it.live(`${fault}: at most one invoice, and the run ends as ${ending}`, () =>
      Effect.gen(function* () {
        const cwd = yield* temporary("writ-example-")
        const ran = yield* main(cwd, fault)
        assert.deepStrictEqual([ran.status, booksOf(cwd)], [status, books], ran.out)
        assert.include(ran.out, `The run ended as ${ending} (exit code ${status})`)
        assert.deepStrictEqual([posts(ran.out).length, new Set(posts(ran.out)).size], [sent, 1], ran.out)
        const [trace] = tracesOf(cwd)
        assert.include(readFileSync(trace!, "utf8"), `"status":"${settled}"`)
        assert.deepStrictEqual((yield* validateFile(trace!)).violations, [])
      })
    )
  }

  it.live("run again it asks nobody and sends nothing, and the commands of its README work on the record", () =>
    Effect.gen(function* () {
      const cwd = yield* temporary("writ-example-")
      yield* main(cwd, "lost-answer")
      const id = readdirSync(join(cwd, ".writ", "runs"))[0]!
      const again = yield* main(cwd, "none")
      assert.deepStrictEqual([again.status, booksOf(cwd), posts(again.out)], [0, ["issued"], []], again.out)
      assert.notInclude(again.out, "Allow")
      const commands: ReadonlyArray<readonly [expected: string, ...args: ReadonlyArray<string>]> = [
        ["try again", "trace", "inspect", id],
        ["another in 20 ms", "trace", "explain", id, "call-0-0"],
        ["0 of 1 effect that is there", "metrics", id],
        ["1 effect: 1 happened", "ledger", "list"]
      ]
      for (const [expected, ...args] of commands) {
        const { out, status } = yield* writ(cwd, ...args)
        assert.strictEqual(status, 0, out)
        assert.include(out, expected)
      }
    })
  )

  it.live("what nobody knows stays so in the next process, until a person says what they found", () =>
    Effect.gen(function* () {
      const cwd = yield* temporary("writ-example-")
      yield* main(cwd, "down")
      const again = yield* main(cwd, "none")
      assert.deepStrictEqual([again.status, booksOf(cwd), posts(again.out)], [7, [], []], again.out)
      const list = yield* writ(cwd, "ledger", "list", "--json")
      const { effects } = JSON.parse(list.out) as { readonly effects: ReadonlyArray<{ readonly key: string }> }
      const key = effects[0]!.key.slice(0, 6)
      const show = yield* writ(cwd, "ledger", "show", key)
      assert.include(show.out, "attempt 4")
      assert.include(show.out, "Nobody knows whether it happened")
      const resolved = yield* writ(cwd, "ledger", "resolve", key, "--did-not-happen", "--reason", "the books are empty")
      assert.strictEqual(resolved.status, 0, resolved.out)
      const third = yield* main(cwd, "none")
      assert.deepStrictEqual([third.status, booksOf(cwd), posts(third.out).length], [0, ["issued"], 1], third.out)
    })
  )

  it.live("the naive program bills twice", () =>
    Effect.gen(function* () {
      const cwd = yield* temporary("writ-example-")
      const { out } = yield* run(cwd, join(example, "naive.ts"))
      assert.include(out, "In the books of the service: 2")
    })
  )

  it("prints in its README what it prints", () => {
    const readme = readFileSync(join(example, "README.md"), "utf8")
    for (const { fault } of story) assert.include(readme, fault)
    for (const said of ["In the books of the service: 2", "The run ended as Escalated (exit code 7)"]) {
      assert.include(readme, said)
    }
  })
})
