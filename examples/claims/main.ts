/**
 * An agent that says it wrote a report: `node examples/claims/main.ts --story narrated|refused|written`. The model is a script,
 * tools, gates and record are real. README.md tells the story.
 */
import { join } from "node:path"
import { parseArgs } from "node:util"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect } from "effect"
import { Agent, Authority, Builtin, Gates, Outcome, Registry, Wiring } from "../../src/index.ts"
import { layerEngine } from "../../src/testing.ts"

const stories = ["narrated", "refused", "written"] as const

const { values } = parseArgs({ options: { story: { type: "string", default: "narrated" } } })

const task =
  "Read baseline.json and tuned.json, compute the relative improvement of score in percent and write report.md."

const call = (name: string, args: object): string =>
  `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`

const reads = [call("read_text_file", { path: "baseline.json" }), call("read_text_file", { path: "tuned.json" })]
const sum = call("calculate", { expression: "(0.744 - 0.612) / 0.612 * 100" })
const write = call("write_artifact", { name: "report.md", content: "# Report\n\nThe score improved by 21.57 %.\n" })

/** Word for word the same in every story. */
const lastWord = "The score improved by 21.57 %. I saved the comparison in report.md."

/** May read the workspace, and nothing else. */
const reader = Authority.fromGrants({ scopes: [], resources: [{ verb: "read", pattern: "workspace:**" }] }, "a reader")

const program = Effect.gen(function* () {
  const story = stories.find((one) => one === values.story)
  if (story === undefined) {
    yield* Console.log(`node main.ts [--story ${stories.join("|")}]`)
    return 2
  }
  const turns = [...reads, sum, ...(story === "narrated" ? [] : [write]), lastWord]
  const tools = yield* Registry.pick(yield* Builtin.registry, ["read_text_file", "calculate", "write_artifact"])
  const outcome = yield* Agent.run({
    task,
    tools,
    settings: { workspace: join(import.meta.dirname, "workspace"), fixtures: {} },
    trace: { content: true },
    gates: { authority: story === "refused" ? reader : Gates.defaults.authority }
  }).pipe(Effect.provide(Wiring.layer({ engine: layerEngine({ turns }), inlineTools: true })))
  const exit = Outcome.exitCode(outcome.stop)
  yield* Console.log(outcome.text ?? outcome.stop._tag)
  yield* Console.log(`\nThe run ended as ${outcome.stop._tag} (exit code ${exit}), record: ${outcome.tracePath}`)
  yield* Console.log(`Artifacts: ${outcome.artifacts.map(({ name }) => name).join(", ") || "none"}`)
  return exit
})

program.pipe(
  Effect.tap((exit) =>
    Effect.sync(() => {
      process.exitCode = exit
    })
  ),
  NodeRuntime.runMain
)
