/** The example of the narrated write, as its README tells it: what the record, the command and the page say of the same last word. */
import { spawn } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { validateFile } from "../../src/effects/trace/TraceValidator.ts"
import { temporary } from "../kit/crash.ts"
import { foreign } from "../kit/page.ts"

const root = join(import.meta.dirname, "..", "..")
const example = join(root, "examples", "claims")
const readme = readFileSync(join(example, "README.md"), "utf8")

const cache = mkdtempSync(join(tmpdir(), "writ-example-cache-"))
afterAll(() => rmSync(cache, { recursive: true, force: true }))

interface Ran {
  readonly status: number | null
  readonly out: string
}

const run = (cwd: string, program: string, ...args: ReadonlyArray<string>): Effect.Effect<Ran> =>
  Effect.callback((resume) => {
    const env = { PATH: process.env["PATH"], NODE_COMPILE_CACHE: cache }
    const child = spawn(process.execPath, [program, ...args], { cwd, stdio: ["ignore", "pipe", "pipe"], env })
    let out = ""
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (out += chunk))
    child.on("close", (status) => resume(Effect.succeed({ status, out })))
    return Effect.sync(() => child.kill())
  })

const writ = (cwd: string, ...args: ReadonlyArray<string>) => run(cwd, join(root, "src", "cli.ts"), ...args)

const lastWord = "The score improved by 21.57 %. I saved the comparison in report.md."

interface Told {
  readonly story: string
  readonly artifacts: string
  /** What is said of the claim of having saved it. */
  readonly said: string
  readonly badge: boolean
}

const stories: ReadonlyArray<Told> = [
  {
    story: "narrated",
    artifacts: "none",
    said: "unsupported: saved report.md: there is no call that writes",
    badge: true
  },
  {
    story: "refused",
    artifacts: "none",
    said: "unsupported: saved report.md: no call that writes and names report.md succeeded: write_artifact (call-3-0) was refused (unauthorized)",
    badge: true
  },
  {
    story: "written",
    artifacts: "report.md",
    said: "supported: saved report.md: write_artifact (call-3-0) succeeded",
    badge: false
  }
]

describe("examples/claims", { timeout: 240_000 }, () => {
  for (const { artifacts, badge, said, story } of stories) {
    it.live(`${story}: the same last word, and what the record says of it`, () =>
      Effect.gen(function* () {
        const cwd = yield* temporary("writ-example-")
        const ran = yield* run(cwd, join(example, "main.ts"), "--story", story)
        assert.strictEqual(ran.status, 0, ran.out)
        assert.include(ran.out, lastWord)
        assert.include(ran.out, `Artifacts: ${artifacts}`)
        const id = readdirSync(join(cwd, ".writ", "runs"))[0]!
        assert.deepStrictEqual((yield* validateFile(join(cwd, ".writ", "runs", id, "trace.jsonl"))).violations, [])
        const answer = yield* writ(cwd, "trace", "explain", id, "answer")
        assert.strictEqual(answer.status, 0, answer.out)
        assert.include(
          answer.out.split("\n").map((line) => line.slice(0, said.length)),
          said
        )
        assert.include(answer.out, "supported: 21.57 %: a call's answer has it")
        assert.include(readme, said)
        const report = yield* writ(cwd, "trace", "report", id, "-o", "report.html")
        assert.strictEqual(report.status, 0, report.out)
        const page = readFileSync(join(cwd, "report.html"), "utf8")
        assert.deepStrictEqual(foreign(page), [])
        assert.strictEqual(page.includes("1 unsupported claim<"), badge)
        assert.include(page, "What the answer claims")
        if (story === "narrated") return
        const call = yield* writ(cwd, "trace", "explain", id, "call-3-0")
        assert.include(call.out, `The answer claims:\n  ${said}`)
      })
    )
  }

  it("prints in its README what it prints", () => {
    for (const part of [lastWord, "Artifacts: none", "1 unsupported"]) assert.include(readme, part)
  })
})
