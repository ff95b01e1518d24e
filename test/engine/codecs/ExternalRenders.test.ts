/** Prompts that other projects' own tests expect: where the official template of a family here prints the same, so do we. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { byId } from "../../../src/engine/codecs/Families.ts"
import { conformance, firstDifference, type RenderRow } from "../../kit/codecs.ts"
import { renderRow } from "../../kit/renders.ts"

interface ExternalRow extends RenderRow {
  readonly template_agrees?: boolean
  readonly jinja2_agrees?: boolean
  readonly model?: string
}

/** By template, or by the model whose own template was rendered. */
const codecs: ReadonlyMap<string, string> = new Map([
  ["gemma-4-e2b", "gemma4-e2b"],
  ["functiongemma-270m", "functiongemma"],
  ["deepseek-v3.1", "deepseek-v3.1"],
  ["qwen3-coder-30b", "qwen3-coder"],
  // The one row asks for medium effort, of which the prompt says nothing: then it is Qwen3.5's.
  ["qwen3.8", "qwen3.5"],
  ["mistralai/Mistral-Nemo-Instruct-2407", "mistral-nemo"]
])

const otherwise = "the official template prints otherwise"
const pictures = "the question holds a picture"
const noTemplate = "no official template of a family here stands behind it"

/** The codec a row is held to, or the rule that leaves it out. */
const planOf = (row: ExternalRow): { readonly codec: string } | { readonly left: string } => {
  if (row.template_agrees === false) return { left: otherwise }
  const codec = codecs.get(row.template ?? row.model ?? "")
  if (codec !== undefined && (row.template_agrees === true || row.jinja2_agrees === true)) return { codec }
  const isList = (row.messages ?? []).some((message) => Array.isArray(message.content))
  return { left: isList && /Qwen2\.5|Llama-3\.2/.test(row.model ?? "") ? pictures : noTemplate }
}

const rows = conformance<ExternalRow>("external-renders")
const page = readFileSync(new URL("../../../docs/codecs.md", import.meta.url), "utf8")

describe("prompts of other projects", () => {
  it.skipIf(rows === undefined)("are equal to the byte where the official template agrees, and counted", () => {
    const differences: Array<string> = []
    const left = new Map<string, number>()
    let equal = 0
    for (const row of rows!) {
      const plan = planOf(row)
      if ("left" in plan) {
        left.set(plan.left, (left.get(plan.left) ?? 0) + 1)
        continue
      }
      const text = renderRow(Result.getOrThrow(byId(plan.codec)), row, { readArguments: true })
      const what = firstDifference(text, row.expected_text!)
      if (what === undefined) equal += 1
      else differences.push(`${row.id}: ${what}`)
    }
    assert.deepStrictEqual(differences, [])
    assert.deepStrictEqual(
      rows!.filter((row) => row.template_agrees === true && "left" in planOf(row)).map((row) => row.id),
      []
    )
    const counts = [`| equal | ${equal} |`, ...[...left].map(([why, count]) => `| ${why} | ${count} |`)]
    console.info(`external renders: ${counts.join(" ")}`)
    assert.deepStrictEqual(
      counts.filter((line) => !page.includes(`\n${line}\n`)),
      []
    )
  })
})
