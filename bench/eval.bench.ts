/**
 * How long an evaluation takes: 1 000 conversations of a scripted run in files, five assertions each, from reading the files to
 * the report in every form, as `writ eval` does it, and the same without files. The target: at most 10 s on two processors.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type { Conversation } from "../src/effects/conversation/Conversation.ts"
import { emit } from "../src/effects/conversation/ConversationText.ts"
import { evaluate } from "../src/effects/eval/Evaluation.ts"
import { junit } from "../src/effects/eval/JUnit.ts"
import * as Project from "../src/effects/eval/Project.ts"
import { page } from "../src/effects/eval/page/Page.ts"
import * as Report from "../src/effects/eval/Report.ts"
import * as ReportFiles from "../src/effects/eval/ReportFiles.ts"
import { markdown } from "../src/effects/eval/ReportMarkdown.ts"
import type { Suite } from "../src/effects/eval/Suite.ts"

const conversations = 1_000

const suite: Suite = {
  name: "bench",
  cases: [
    {
      assertions: [
        { type: "must_call_tool", tool: "calculate", with_args: { expression: "17.5*240/100" } },
        { type: "tool_executed", tool: "calculate" },
        { type: "text_matches", pattern: "\\b42\\b" },
        { type: "json_path", path: "$.session[?@.role == 'tool'].content[0].content", op: "==", value: "42" },
        { type: "calls_answered" }
      ]
    }
  ]
}

/** What a scripted run leaves: two turns, one call, their traces. */
const conversation = (index: number): Conversation => {
  const trace = (events: ReadonlyArray<{ name: string; attributes: Record<string, string | boolean> }>) => ({
    span_id: `noop-${index}`,
    model: "noop",
    tokens: { input: 180, output: 24 },
    latency_ms: 12,
    events
  })
  const settled = { id: "call_2_0", tool: "calculate", outcome: "ok", effect: "none", executed: true }
  return {
    meta: {
      model: "noop",
      binding: { number: String(index % 100), tone: `t${Math.floor(index / 100)}` },
      tools: [
        {
          name: "calculate",
          description: "Computes an arithmetic expression.",
          input_schema: { type: "object", properties: { expression: { type: "string" } }, required: ["expression"] }
        }
      ]
    },
    session: [
      { role: "system", content: "You are careful.\nYou compute with the tool, and answer with the number.\n" },
      { role: "user", content: `What is 17.5% of 240? (question ${index})` },
      {
        role: "assistant",
        content: [{ type: "tool_use", id: "call_2_0", name: "calculate", input: { expression: "17.5*240/100" } }],
        trace: trace([{ name: "call_settled", attributes: settled }])
      },
      { role: "tool", content: [{ type: "tool_result", tool_use_id: "call_2_0", content: "42" }] },
      {
        role: "assistant",
        content: index % 10 === 0 ? "It is 41." : "It is 42.",
        trace: trace([{ name: "run_ended", attributes: { state: "completed" } }])
      }
    ]
  }
}

const timed = async <A>(job: Effect.Effect<A>): Promise<readonly [A, number]> => {
  const before = performance.now()
  const value = await Effect.runPromise(job)
  return [value, performance.now() - before]
}

export const evalBench = async (): Promise<Readonly<Record<string, number>>> => {
  const root = mkdtempSync(join(tmpdir(), "writ-bench-eval-"))
  try {
    const runs = join(root, "runs/bench")
    mkdirSync(runs, { recursive: true })
    for (let index = 0; index < conversations; index++) {
      writeFileSync(join(runs, `c${index}.yaml`), emit(conversation(index)))
    }
    const around = { root, judges: join(root, "judges"), env: {} }
    const used = process.cpuUsage()
    const [over, load] = await timed(Effect.orDie(Project.over(root, runs)))
    const [evaluated, decide] = await timed(evaluate(suite, over.conversations, around))
    const report = Report.of(evaluated, "bench", new Date().toISOString())
    if (report.totals.assertions.passed !== 4_900 || report.totals.assertions.failed !== 100) {
      throw new Error(`the bench's own suite came to ${JSON.stringify(report.totals)}`)
    }
    const [, write] = await timed(
      Effect.orDie(
        Effect.all([
          ReportFiles.write(root, "bench.json", [Report.emit(report)]),
          ReportFiles.write(root, "bench-report.md", [markdown(report)]),
          ReportFiles.write(root, "bench-junit.xml", [junit(report)]),
          ReportFiles.write(root, "bench.html", page(report, evaluated))
        ])
      )
    )
    const { system, user } = process.cpuUsage(used)
    return {
      "the same in processor time (s)": (system + user) / 1e6,
      "1000 conversations x 5 assertions, all in all (s)": (load + decide + write) / 1_000,
      "reading the files (s)": load / 1_000,
      "deciding (s)": decide / 1_000,
      "the four reports (s)": write / 1_000
    }
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}
