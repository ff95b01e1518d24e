/** The text of docs/tools.md: what the tools say of themselves, with the answers their examples really give. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { defaultTools } from "../src/effects/SettingFields.ts"
import { aboutOf } from "../src/tools/About.ts"
import { registry, toolkit } from "../src/tools/builtin/index.ts"
import { execute } from "../src/tools/Execution.ts"
import { isObject, type Json, type JsonObject } from "../src/tools/JsonText.ts"
import type { RegisteredTool } from "../src/tools/Registry.ts"
import { answerOf } from "../src/tools/ToolCall.ts"
import { chapters } from "./toolsChapters.ts"

/** What the examples see. */
const fixtures = { "capital of france": "Paris" }

const files: Readonly<Record<string, string>> = {
  "workspace/notes.md": "# Notes\n\nThe plan is in plan.txt.\n",
  "workspace/plan.txt": "1. read\n2. write\n",
  "artifacts/9f86d081884c7d65-report.md": "# Report\n\nAll is well.\n"
}

const scene = Effect.acquireRelease(
  Effect.sync(() => {
    const base = mkdtempSync(join(tmpdir(), "writ-docs-"))
    for (const directory of ["workspace", "artifacts"]) mkdirSync(join(base, directory))
    for (const [name, text] of Object.entries(files)) writeFileSync(join(base, name), text)
    return { workspace: join(base, "workspace"), artifacts: join(base, "artifacts"), fixtures }
  }),
  ({ workspace }) => Effect.sync(() => rmSync(join(workspace, ".."), { recursive: true }))
)

const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " ")

const typeOf = (schema: JsonObject): string => {
  const bounds = [
    ...(schema["minimum"] === undefined ? [] : [`from ${schema["minimum"]}`]),
    ...(schema["maximum"] === undefined ? [] : [`to ${schema["maximum"]}`])
  ]
  return [String(schema["type"] ?? "any"), ...bounds].join(" ")
}

const argumentsOf = ({ spec }: RegisteredTool): ReadonlyArray<string> => {
  const properties = spec.parameters["properties"]
  const required = spec.parameters["required"]
  const rows = Object.entries(properties !== undefined && isObject(properties) ? properties : {})
  if (rows.length === 0) return ["It takes no arguments."]
  return [
    "| Argument | Type | Says |",
    "| --- | --- | --- |",
    ...rows.map(([name, schema]) => {
      const one = isObject(schema) ? schema : {}
      const optional = Array.isArray(required) && required.includes(name) ? "" : ", optional"
      return `| \`${name}\` | ${typeOf(one)}${optional} | ${cell(String(one["description"] ?? ""))} |`
    })
  ]
}

const touchesOf = (tool: RegisteredTool, example: JsonObject): string => {
  const checked = tool.check(example)
  if (Result.isFailure(checked)) throw new Error(`the example of ${tool.name} does not fit: ${JSON.stringify(checked)}`)
  const touches = tool.terms.touches(checked.success)
  return touches.length === 0 ? "nothing" : touches.map(({ resource, verb }) => `\`${verb} ${resource}\``).join(", ")
}

const contractOf = (tool: RegisteredTool, example: JsonObject | undefined): string => {
  const { asksUser, evidence, ledger, retry, reversible, risk } = tool.contract
  const said = [
    `risk \`${risk}\``,
    ...(risk === "read"
      ? []
      : [
          `ledger \`${ledger}\``,
          `retry \`${retry}\``,
          reversible ? "can be undone" : "cannot be undone",
          `evidence \`${evidence.source}\` (${evidence.describes})`
        ]),
    ...(asksUser ? ["asks the user"] : []),
    ...(example === undefined ? [] : [`touches ${touchesOf(tool, example)}`])
  ]
  return `Contract: ${said.join(", ")}.`
}

const pretty = (value: Json): string => JSON.stringify(value)

const section = Effect.fnUntraced(function* (tool: RegisteredTool) {
  const said = aboutOf(toolkit.tools[tool.name as keyof typeof toolkit.tools])
  const lines = [`### ${tool.name}`, "", tool.spec.description, "", ...argumentsOf(tool), ""]
  if (said !== undefined) lines.push(said.text, "")
  lines.push(contractOf(tool, said?.example), "")
  if (said === undefined || said.varies === true || tool.contract.asksUser) return lines
  const checked = Result.getOrThrow(tool.check(said.example))
  const outcome = yield* execute(tool, checked, { settings: yield* scene })
  return [...lines, "```json", `${tool.name} ${pretty(said.example)}`, JSON.stringify(answerOf(outcome)), "```", ""]
})

/** The whole page. */
export const toolsPage: Effect.Effect<string> = Effect.scoped(
  Effect.gen(function* () {
    const { tools } = yield* registry
    const isDefault = (tool: RegisteredTool) => defaultTools.includes(tool.name)
    const byItself = yield* Effect.forEach(tools.filter(isDefault), section)
    const named = yield* Effect.forEach(
      tools.filter((tool) => !isDefault(tool)),
      section
    )
    return [
      ...chapters.beginning,
      "## Tools a run has by itself",
      "",
      ...byItself.flat(),
      "## Tools that have to be named",
      "",
      "`--tools` takes the names of all tools of the run: `writ run --tools list_files,read_artifact …`.",
      "",
      ...named.flat(),
      ...chapters.end
    ].join("\n")
  }).pipe(Effect.orDie)
)
