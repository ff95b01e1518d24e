/** `writ bench-model`, run as a command: scripts as models, policies, an external suite, an interruption, the model that ships. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it, vi } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { stringify } from "yaml"
import { TraceWriter } from "../../src/actors/TraceWriter.ts"
import { Provisions } from "../../src/cli/Provisions.ts"
import { StopSlot } from "../../src/cli/StopRequests.ts"
import type { BenchReport } from "../../src/effects/eval/bench/BenchReport.ts"
import * as Bfcl from "../../src/effects/eval/external/Bfcl.ts"
import * as Report from "../../src/effects/eval/Report.ts"
import * as Wiring from "../../src/effects/Wiring.ts"
import { registry } from "../../src/tools/builtin/index.ts"
import { rightReply } from "../kit/bfcl.ts"
import { invoke, start, until, writ } from "../kit/cli.ts"
import { project } from "../kit/projects.ts"

// A bound for what hangs: processes start here, and a busy machine takes its time.
vi.setConfig({ testTimeout: 300_000 })

const calculate = JSON.stringify({
  name: "calculate",
  description: "Evaluates an arithmetic expression.",
  input_schema: {
    type: "object",
    properties: { expression: { type: "string" } },
    required: ["expression"],
    additionalProperties: false
  }
})

const script = (call: string, answer: string, results = true) =>
  stringify({
    engine: [{ blocks: [{ type: "tool_use", name: "calculate", input: { expression: call } }] }, answer],
    ...(results ? { tools: { calculate: ["5"] } } : {})
  })

const files = {
  "assemblies/sums.yaml": `name: sums
model: noop
matrix:
  case: [small, large]
prefix:
  - { kind: tools, path: context/tools/*.json }
conversation:
  - { role: user, path: "prompts/{{ case }}.md" }
  - { role: assistant }
`,
  "prompts/small.md": "What is 2 plus 3?\n",
  "prompts/large.md": "What is 200 plus 300?\n",
  "context/tools/calculate.json": calculate,
  "evals/sums.yaml": `name: sums
cases:
  - assertions:
      - { type: must_call_tool, tool: calculate }
      - { type: terminal_state, state: completed }
  - name: small
    assertions:
      - { type: text_contains, value: "5" }
  - name: large
    assertions:
      - { type: text_contains, value: "500" }
`,
  "scripts/good/small.script.yaml": script("2 + 3", "It is 5."),
  "scripts/good/large.script.yaml": script("200 + 300", "It is 500.", false),
  "scripts/poor/small.script.yaml": script("2 + 3", "It is 5."),
  "scripts/poor/large.script.yaml": script("200 + 300", "It is many.")
}

/** Counts what is run, and asks to stop when the run of this number begins. */
const counted = (stopAt?: number) => {
  const slot: { handler: (() => void) | undefined } = { handler: undefined }
  const state = { runs: 0 }
  const services = (options: Wiring.WiringOptions) =>
    Layer.provideMerge(
      Layer.effect(
        TraceWriter,
        Effect.map(TraceWriter, (real) => ({
          open: (runId, opened) =>
            Effect.suspend(() => {
              if (++state.runs === stopAt) slot.handler?.()
              return real.open(runId, opened)
            })
        }))
      ),
      Wiring.layer(options)
    )
  return { slot, state, services }
}

const benchWith = (made: ReturnType<typeof counted>, root: string, ...args: ReadonlyArray<string>) =>
  invoke(["bench-model", "-p", root, "--workspace", root, ...args], { PATH: process.env.PATH! }).pipe(
    Effect.provideService(Provisions, { tools: registry, services: made.services }),
    Effect.provideService(StopSlot, made.slot)
  )

const bench = (root: string, ...args: ReadonlyArray<string>) => benchWith(counted(), root, ...args)

const scripts = (root: string) => ["good", "poor"].flatMap((name) => ["--script", join(root, "scripts", name)])
const asked = (root: string) => [...scripts(root), "--assembly", "sums", "--suite", "sums"]
const policies = ["--policy", "held", "--policy", "one max-turns=1"]

const read = (out: string): BenchReport => JSON.parse(out)

const totals = ({ rows }: BenchReport) =>
  rows.map(({ contestant, policy, total }) => [contestant, policy, total.passes, total.tries])

const expected = [
  // Three assertions over each of two prompts.
  ["good", "held", 6, 6],
  // One turn is enough for the call, and not for the answer.
  ["good", "one", 2, 6],
  ["poor", "held", 5, 6],
  ["poor", "one", 2, 6]
]

describe("writ bench-model", () => {
  it.live("plays every script on every prompt under every policy, and writes a matrix and reports", () =>
    Effect.gen(function* () {
      const root = yield* project(files)
      const done = yield* bench(root, ...asked(root), ...policies, "--repeat", "2", "--id", "first", "--json")
      assert.strictEqual(done.code, 0, done.err)
      const found = read(done.out)
      assert.deepStrictEqual(
        totals(found),
        expected.map(([contestant, policy, passes, tries]) => [
          contestant,
          policy,
          2 * Number(passes),
          2 * Number(tries)
        ])
      )
      assert.deepStrictEqual(found.columns, ["small", "large"])
      assert.deepStrictEqual(found.rows[1]!.stops, { limit: 4 })
      const reports = join(root, "evals/reports")
      assert.deepStrictEqual(JSON.parse(readFileSync(join(reports, "first.bench.json"), "utf8")).rows, found.rows)
      assert.include(readFileSync(join(reports, "first-bench.md"), "utf8"), "| poor | held | 83.3 % | 55–95 % |")
      const one = Result.getOrThrow(Report.parse(readFileSync(join(reports, "first.poor.held.2.json"), "utf8")))
      assert.deepStrictEqual(one.totals, {
        conversations_matched: 2,
        assertions: { passed: 5, failed: 1, deferred: 0, malformed: 0, errored: 0 }
      })
      const compared = yield* invoke(["report", "-p", root, "first.good.held.1", "first.poor.held.1", "--gate"])
      assert.deepStrictEqual([compared.code, /regressed/.test(compared.err)], [3, true])
    })
  )

  it.live("runs nothing again, and everything with --fresh", () =>
    Effect.gen(function* () {
      const root = yield* project(files)
      for (const [flags, runs] of [
        [[], 4],
        [[], 0],
        [["--fresh"], 4],
        [["--seed", "1"], 4],
        [["--seed", "1", "--suite", join(root, "evals/sums.yaml")], 0]
      ] as const) {
        const made = counted()
        const suite = flags.length > 2 ? [] : ["--suite", "sums"]
        const done = yield* benchWith(made, root, ...scripts(root), "--assembly", "sums", ...suite, ...flags, "--quiet")
        assert.strictEqual(done.code, 0, done.err)
        assert.strictEqual(made.state.runs, runs, flags.join(" "))
      }
    })
  )

  it.live("that is stopped keeps what is done, and goes on with the rest", () =>
    Effect.gen(function* () {
      const root = yield* project(files)
      const args = [...asked(root), ...policies, "--parallel", "1", "--json"]
      const first = counted(3)
      const stopped = yield* benchWith(first, root, ...args)
      assert.strictEqual(stopped.code, 4, stopped.err)
      const kept = read(stopped.out).rows.reduce((all, { cells }) => all + cells.done, 0)
      assert.isAtLeast(kept, 2)
      assert.isBelow(kept, 8)
      assert.include(stopped.err, `stopped; ${kept} of 8 cells are kept`)
      const second = counted()
      const done = yield* benchWith(second, root, ...args)
      assert.strictEqual(done.code, 0, done.err)
      assert.strictEqual(second.state.runs, 8 - kept)
      assert.deepStrictEqual(totals(read(done.out)), expected)
    })
  )

  it.live("that is killed keeps what is done", () =>
    Effect.gen(function* () {
      const hang = stringify({ engine: [{ fault: "hang" }] })
      const root = yield* project({
        ...files,
        "scripts/slow/small.script.yaml": hang,
        "scripts/slow/large.script.yaml": hang
      })
      const good = ["--script", join(root, "scripts/good"), "--assembly", "sums", "--suite", "sums", "--json"]
      const running = start(["bench-model", ...good, "--script", join(root, "scripts/slow")], { cwd: root })
      const cells = join(root, "evals/bench/cells")
      const complete = () =>
        existsSync(cells) ? readdirSync(cells).filter((key) => existsSync(join(cells, key, "cell.json"))).length : 0
      yield* until(running, () => complete() === 2)
      running.child.kill("SIGKILL")
      assert.strictEqual((yield* Effect.promise(() => running.ended)).signal, "SIGKILL")
      const made = counted()
      const done = yield* benchWith(made, root, ...good)
      assert.strictEqual(done.code, 0, done.err)
      assert.deepStrictEqual([made.state.runs, read(done.out).rows[0]!.cells], [0, { done: 2, cached: 2, not_done: 0 }])
    })
  )

  it.live("takes the leaderboard's rows with their own suite", () =>
    Effect.gen(function* () {
      const rows = join(import.meta.dirname, "../fixtures/bfcl/rows.jsonl")
      const root = yield* project({})
      mkdirSync(join(root, "right"))
      for (const row of Result.getOrThrow(Bfcl.read(readFileSync(rows, "utf8")))) {
        const reply = rightReply(row)
        const engine =
          typeof reply === "string"
            ? [reply]
            : [{ blocks: reply.map(({ input, name }) => ({ type: "tool_use", name, input })) }]
        writeFileSync(join(root, "right", `${Bfcl.nameOf(row)}.script.yaml`), stringify({ engine }))
      }
      const done = yield* bench(root, "--script", join(root, "right"), "--external", `bfcl=${rows}`, "--json")
      assert.strictEqual(done.code, 0, done.err)
      const found = read(done.out)
      assert.deepStrictEqual(totals(found), [["right", "default", 11, 13]])
      assert.deepStrictEqual(found.rows[0]!.columns["simple"], {
        passes: 6,
        tries: 7,
        interval: found.rows[0]!.columns["simple"]!.interval!
      })
      const few = yield* bench(
        root,
        "--script",
        join(root, "right"),
        "--external",
        `bfcl=${rows}`,
        "--limit",
        "4",
        "--json"
      )
      assert.strictEqual(read(few.out).rows[0]!.cells.cached, 4)
    })
  )

  it.live("says which cells could not be run, and why", () =>
    Effect.gen(function* () {
      const root = yield* project({
        ...files,
        "scripts/poor/large.script.yaml": stringify({ engine: [{ fault: "lost" }] })
      })
      const done = yield* bench(root, ...asked(root), "--json")
      assert.strictEqual(done.code, 1, done.err)
      const [one, ...others] = read(done.out).not_done
      assert.deepStrictEqual([one!.cell, others.length], ["poor, default, large (1)", 0])
    })
  )

  it.live("refuses what makes no sense before anything runs, with what to do instead", () =>
    Effect.gen(function* () {
      const root = yield* project(files)
      const good = join(root, "scripts/good")
      const prompts = ["--assembly", "sums", "--suite", "sums"]
      writeFileSync(
        join(root, "evals/other.yaml"),
        "name: other\ncases:\n  - name: huge\n    assertions: [{ type: calls_answered }]\n"
      )
      for (const [args, message] of [
        [prompts, /name what is compared/],
        [["--script", good, "--suite", "sums"], /name what is asked/],
        [["--script", good, "--assembly", "sums"], /name the suite/],
        [["--script", good, "--script", good, ...prompts], /two contestants are called good: give one as NAME=FILE/],
        [["--script", join(root, "nowhere"), ...prompts], /there is no such file/],
        [["--model", "nowhere.gguf", ...prompts], /there is no such file/],
        [["--script", good, ...prompts, "--policy", "x temprature=1"], /did you mean temperature\?/],
        [["--script", good, ...prompts, "--policy", "x temperature=hot"], /temperature/],
        [["--script", good, ...prompts, "--policy", "x", "--policy", "x calls=single"], /two are called x/],
        [["--script", good, ...prompts, "--repeat", "0"], /at least 1/],
        [["--script", good, "--assembly", "sums", "--suite", "other"], /no prompt is called huge/],
        [["--script", good, "--assembly", "sum", "--suite", "sums"], /did you mean sums\?/],
        [["--script", good, "--external", "bfcl=nowhere.jsonl"], /there is no such file/],
        [["--script", good, "--external", "mmlu=x"], /there is bfcl=FILE/],
        [["--script", good, ...prompts, "--id", "../x"], /letters, digits/]
      ] as const) {
        const done = yield* bench(root, ...args)
        assert.strictEqual(done.code, 2, `${args.join(" ")}: ${done.err}`)
        assert.match(done.err, message)
      }
      assert.isFalse(existsSync(join(root, "evals/bench/cells")))
    })
  )

  it.live("compares policies on the model that ships, and reads its answers from before", () =>
    Effect.gen(function* () {
      const root = yield* project({ ...files, "prompts/small.md": "What is 17.5% of 240?\n" })
      writeFileSync(
        join(root, "evals/tiny.yaml"),
        'name: tiny\ncases:\n  - assertions:\n      - { type: tool_executed, tool: calculate }\n      - { type: text_contains, value: "42" }\n'
      )
      const args = ["bench-model", "--model", "tiny", "--assembly", "sums", "--case", "small", "--suite", "tiny"]
      const more = ["--policy", "grammar", "--policy", "free constrained=off", "--json"]
      const first = yield* writ([...args, ...more], { cwd: root })
      assert.strictEqual(first.code, 0, first.err)
      const found = read(first.out)
      assert.deepStrictEqual(totals(found), [
        ["tiny", "grammar", 2, 2],
        ["tiny", "free", 2, 2]
      ])
      assert.isAbove(found.rows[0]!.metrics!.total_output_tokens, 0)
      const again = read((yield* writ([...args, ...more], { cwd: root })).out)
      assert.deepStrictEqual(
        again.rows.map(({ cells }) => cells),
        [1, 1].map((one) => ({ done: one, cached: one, not_done: 0 }))
      )
      assert.deepStrictEqual(readdirSync(join(root, "evals/bench")).sort(), ["cells", "runs"])
    })
  )
})
