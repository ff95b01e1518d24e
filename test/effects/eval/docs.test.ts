/** docs/evaluation.md: every kind with its fields, and a walk that works line by line. */
import { spawn } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { kinds } from "../../../src/effects/eval/assertions/Kinds.ts"
import { outcomes } from "../../../src/effects/eval/Verdict.ts"
import { directory, entry } from "../../kit/cli.ts"

const root = join(import.meta.dirname, "../../..")
const text = readFileSync(join(root, "docs/evaluation.md"), "utf8")

/** Runs a shell script with `writ` on its path; what it says and how it ends. */
const shell = (cwd: string, script: string) =>
  Effect.promise(
    () =>
      new Promise<{ readonly code: number | null; readonly said: string }>((resolve) => {
        const bin = join(cwd, ".bin")
        mkdirSync(bin)
        writeFileSync(join(bin, "writ"), `#!/bin/sh\nexec "${process.execPath}" "${entry}" "$@"\n`)
        chmodSync(join(bin, "writ"), 0o700)
        const child = spawn("sh", ["-e", "-c", script], {
          cwd,
          env: { ...process.env, PATH: `${bin}:${process.env.PATH}` }
        })
        let said = ""
        for (const stream of [child.stdout, child.stderr])
          stream.setEncoding("utf8").on("data", (part) => (said += part))
        child.on("close", (code) => resolve({ code, said }))
      })
  )

describe("docs/evaluation.md", () => {
  it("has a line for every kind, with all of its fields", () => {
    for (const { fields, type } of kinds) {
      const line = text.split("\n").find((one) => new RegExp(`^\\|[^|]*\`${type}\``).test(one))
      assert.isDefined(line, type)
      for (const field of fields) assert.include(line, field, type)
    }
    for (const outcome of outcomes) assert.include(text, `| \`${outcome}\` |`)
  })

  it.live("the walk works as it is written", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const walk = text.slice(text.indexOf("## A walk"), text.indexOf("## The suite"))
      const script = [...walk.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, code]) => code).join("")
      const { code, said } = yield* shell(cwd, script)
      assert.strictEqual(code, 0, said)
      // Declared and not registered, then filled, then judged; then the guess, and the gate.
      const told = [
        "- name: stock_level",
        "exit code 2",
        "done (2 turns, 1 call)",
        "tool_use_id: call_1_0",
        "name: run_ended",
        "4 passed, 0 failed",
        "stock_level was not called; no tool was called",
        "exit code 3",
        "the gate is shut: regressed",
        "exit code 3"
      ]
      let from = 0
      for (const part of told) {
        const at = said.indexOf(part, from)
        assert.isAtLeast(at, 0, `${part} is not said behind ${from} of\n${said}`)
        from = at + part.length
      }
      const reports = join(cwd, "demo/evals/reports")
      for (const name of ["first.json", "first-report.md", "first-junit.xml", "first.html", "first-vs-second.md"]) {
        assert.isTrue(existsSync(join(reports, name)), name)
      }
    })
  )
})
