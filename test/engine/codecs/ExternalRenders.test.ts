/** Prompts that other projects' own tests expect, where the official template prints the same. */
import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { byId } from "../../../src/engine/codecs/Families.ts"
import { flatten } from "../../../src/engine/Prompt.ts"
import { conformance, firstDifference, messagesOf, type RenderRow } from "../../kit/codecs.ts"
import { readArguments } from "../../kit/conformance.ts"

interface ExternalRow extends RenderRow {
  readonly template_agrees?: boolean
}

const codecs: Readonly<Record<string, string>> = {
  "gemma-4-e2b": "gemma4-e2b",
  "functiongemma-270m": "functiongemma",
  "deepseek-v3.1": "deepseek-v3.1",
  "qwen3-coder-30b": "qwen3-coder",
  "qwen3.8": "qwen3.5"
}

/** Rows that differ on purpose, with the ruling. */
const rulings: ReadonlyArray<readonly [rows: RegExp, why: string]> = []

const rows = conformance<ExternalRow>("external-renders")?.filter((row) => row.template_agrees === true)

describe("prompts of other projects that the official template prints as well", () => {
  it.skipIf(rows === undefined)("are rendered to the byte", () => {
    const differences: Array<string> = []
    for (const row of rows!) {
      const codec = Result.getOrThrow(byId(codecs[row.template]!))
      const { enable_thinking, think } = row.options as { readonly enable_thinking?: boolean; readonly think?: boolean }
      const thinking = enable_thinking ?? think
      const text = flatten(
        codec.render(readArguments(messagesOf(row)), {
          tools: (row.tools ?? []).map((one) => one.function),
          generationPrompt: row.add_generation_prompt,
          ...(thinking === undefined ? {} : { thinking })
        })
      )
      const what = firstDifference(text, row.expected_text!)
      if (what !== undefined) differences.push(`${row.id}: ${what}`)
    }
    const open = differences.filter((line) => !rulings.some(([pattern]) => pattern.test(line)))
    assert.deepStrictEqual(open, [])
    for (const [pattern, why] of rulings)
      assert.isTrue(
        differences.some((line) => pattern.test(line)),
        why
      )
    assert.isAbove(rows!.length, 50)
  })
})
