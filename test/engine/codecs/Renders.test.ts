/**
 * Every prompt of the conformance data that both reference engines rendered alike, template by template: printed to the byte by a
 * codec, or refused by a rule that stands here. A template that is not named here fails by its name.
 */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { conformance, type RenderRow } from "../../kit/codecs.ts"
import type { Ruling } from "../../kit/conformance.ts"
import { type Plan, refusedCount, type Sorted, sortRows, sum, templateRefuses } from "../../kit/renders.ts"

const read = { readArguments: true } as const
/** Official templates that print no tools; the codec writes them into the system text. */
const bare = { readArguments: true, withoutTools: true } as const

const otherFamily: Plan = { refused: "the family has no codec; a model of it is refused by name or as not known" }
const pythonCalls: Plan = { refused: "calls are Python expressions, which no codec reads" }
const indented: Plan = {
  refused: "an example of vLLM's whose own indentation gets into the prompt; no model file carries it"
}
const otherWording: Plan = {
  refused: "an example of vLLM's that leaves out what the model's own template prints; no model file carries it"
}

const lostCalls: Ruling = [
  /one-call|multiline-content|three-rounds/,
  "the template loses calls; here they never vanish"
]
const makersText: Ruling = [
  /\[SYSTEM_PROMPT\](?:You are|# HOW)|\\n\\nYou are Mistral Small 3/,
  "the maker's long system text is not put in where there is none"
]
const wholeFloats: Ruling = [/number-forms/, "JavaScript has no 1.0"]
const emptyTurn: Ruling = [/one-call|parallel-calls/, "the template loses calls; here they never vanish"]

const groups: Readonly<Record<string, Readonly<Record<string, Plan>>>> = {
  "Qwen2.5": { "qwen2.5-7b-instruct": { codec: "qwen2.5" } },
  Qwen3: {
    "qwen3-0.6b": { codec: "qwen3", ...read },
    "qwen3-next-80b": { codec: "qwen3-thinking", ...read },
    "qwq-32b": { codec: "qwq" }
  },
  "Qwen3-Coder": {
    "qwen3-coder-30b": { codec: "qwen3-coder", referenceToo: true, rules: [wholeFloats] },
    "llamacpp-qwen3-coder": { codec: "qwen3-coder-tools" },
    "vllm-qwen3coder": { codec: "qwen3-coder-functions" }
  },
  "Qwen3.5": { "qwen3.5-4b": { codec: "qwen3.5" }, "qwen3.8": { codec: "qwen3.8" } },
  Hermes: { "hermes-2-pro-llama-3-8b": { codec: "hermes", ...read }, "vllm-hermes": { codec: "hermes-vllm" } },
  "Llama 3": {
    "llama-3.1-8b-instruct": { codec: "llama3" },
    "llama-3.2-3b-instruct": { codec: "llama3", today: "30 Nov 2026" },
    "vllm-llama3.1-json": { codec: "llama3-vllm", today: "30 Nov 2026" },
    // Only where it gives up do the two engines agree.
    "vllm-llama3.2-json": { refused: templateRefuses }
  },
  Mistral: {
    "mistral-nemo-2407": { codec: "mistral-nemo", ...read },
    "mistral-small-3.2-2506": { codec: "mistral", ...read, rules: [makersText] },
    "devstral-small-2507": { codec: "mistral-v13", ...read, rules: [makersText] },
    "ministral-3-14b-reasoning-2512": { codec: "mistral-v13", ...read, rules: [makersText] }
  },
  "Mistral, the library's forms": {
    "mistral-common-v3": { codec: "mistral-v3", ...read },
    "mistral-common-v7": { codec: "mistral-v7", ...read },
    "mistral-common-v11": { codec: "mistral-v11", ...read },
    "mistral-common-v13": { codec: "mistral-v13", ...read },
    "mistral-common-v15": { codec: "mistral-v15", ...read }
  },
  "Mistral, as vLLM has it": {
    "vllm-mistral": { codec: "mistral-7b", ...read },
    "vllm-mistral-parallel": { codec: "mistral-7b-parallel", ...read },
    "vllm-mistral3": { codec: "mistral-small-3", ...read, rules: [makersText] }
  },
  "gpt-oss": {
    "gpt-oss-20b": { codec: "gpt-oss", today: "2026-11-30", referenceToo: true },
    "gpt-oss-120b-llamacpp": { codec: "gpt-oss-early", today: "2026-11-30", referenceToo: true }
  },
  "DeepSeek V3 and R1": {
    "deepseek-v3": { codec: "deepseek-v3", ...bare, rules: [lostCalls] },
    "deepseek-r1-distill-qwen-32b": { codec: "deepseek-r1", ...bare, rules: [lostCalls] },
    "deepseek-r1-0528-qwen3-8b": { codec: "deepseek-r1-0528", ...bare },
    "vllm-deepseekr1": { codec: "deepseek-r1-0528-vllm" },
    "vllm-deepseekv3": indented
  },
  "DeepSeek V3.1": {
    "deepseek-v3.1": { codec: "deepseek-v3.1", ...bare },
    "llamacpp-deepseek-v3.1": { codec: "deepseek-v3.1-llamacpp", withoutTools: true },
    "vllm-deepseekv31": indented
  },
  "Gemma 4": {
    "gemma-4-31b-it": { codec: "gemma4", ...read, referenceToo: true },
    "gemma-4-e2b": { codec: "gemma4-e2b", ...read, referenceToo: true }
  },
  FunctionGemma: {
    "functiongemma-270m": { codec: "functiongemma", ...read, referenceToo: true, rules: [wholeFloats] },
    "vllm-functiongemma": otherWording
  },
  "Gemma 2 and 3": {
    "gemma-2-2b-it": { codec: "gemma3", withoutTools: true },
    "gemma-3": { codec: "gemma3", withoutTools: true, rules: [emptyTurn] },
    "vllm-gemma3-pythonic": pythonCalls
  },
  "Llama with Python-like calls": {
    "llama-4": pythonCalls,
    "vllm-llama4-pythonic": pythonCalls,
    "vllm-llama3.2-pythonic": pythonCalls
  },
  "other families": {
    "deepseek-v3.2": otherFamily,
    "granite-4.0": otherFamily,
    "glm-4.6": otherFamily,
    "kimi-k2": otherFamily,
    "minimax-m2": otherFamily,
    "vllm-phi4-mini": otherFamily,
    smollm3: otherFamily
  }
}

const rows = conformance<RenderRow>("chat-template-renders")
const page = readFileSync(new URL("../../../docs/codecs.md", import.meta.url), "utf8")

const spoken = (plan: Plan): string => ("codec" in plan ? ` as \`${plan.codec}\`` : "")

/** The row of the page's table that a group must have. */
const tableRow = (group: string, sorted: Sorted): string => {
  const templates = Object.entries(groups[group]!).map(([template, plan]) => template + spoken(plan))
  return `| ${group} | ${templates.join(", ")} | ${sorted.rows} | ${sorted.equal} | ${refusedCount(sorted)} |`
}

describe("renders of official templates", () => {
  it.skipIf(rows === undefined)("have a plan, template by template", () => {
    const planned = Object.values(groups).flatMap((group) => Object.keys(group))
    assert.deepStrictEqual([...new Set(rows!.map((row) => row.template))].sort(), planned.sort())
  })

  const results = new Map<string, Sorted>()
  for (const [group, templates] of Object.entries(rows === undefined ? {} : groups)) {
    const parts = Object.entries(templates).map(([template, plan]) =>
      sortRows(
        rows!.filter((row) => row.template === template),
        plan
      )
    )
    const sorted = sum(parts)
    results.set(group, sorted)
    const counts = `${sorted.rows} rows, ${sorted.equal} equal, ${refusedCount(sorted)} refused`
    it(`of ${group} are equal to the byte or refused by a rule: ${counts}`, () => {
      console.info(`${group}: ${counts}`)
      assert.deepStrictEqual(sorted.problems, [])
      assert.strictEqual(sorted.equal + refusedCount(sorted), sorted.rows)
    })
  }

  it.skipIf(rows === undefined)("are counted on the page as they come out", () => {
    const all = sum([...results.values()])
    const wanted = [
      ...[...results].map(([group, sorted]) => tableRow(group, sorted)),
      `| all | | ${all.rows} | ${all.equal} | ${refusedCount(all)} |`,
      ...[...all.refused].map(([why, count]) => `| ${why} | ${count} |`)
    ]
    assert.deepStrictEqual(
      wanted.filter((line) => !page.includes(`\n${line}\n`)),
      []
    )
    assert.strictEqual(all.rows, rows!.filter((row) => row.trust === "agreed").length)
  })
})
