import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { byId, choose, ids } from "../../../src/engine/codecs/Families.ts"
import { families } from "../../../src/engine/codecs/FamilyMarks.ts"
import { shippedModel, templateOf } from "../../kit/codecs.ts"

const chosen = (template: string) => Result.map(choose({ template }), (one) => one.codec.id)
const familyOf = (template: string) => families.find((family) => family.matches(template))?.name

const chatml = "<|im_start|>{{ role }}<tools></tools><tool_call>"

/** The least each family's template prints. */
const marks: ReadonlyArray<readonly [template: string, name: string]> = [
  [`${chatml}{"name": <function-name>, "arguments": <args-json-object>}`, "Qwen2.5"],
  [`${chatml}{\\"name\\": <function-name>}`, "Qwen2.5"],
  [`${chatml}{"name": <function-name>}{% if enable_thinking %}`, "Qwen3"],
  [`${chatml}{"name": <function-name>}reasoning_content</think><think>`, "Qwen3 Thinking"],
  [`${chatml}{"name": <function-name>}</think><think>`, "QwQ"],
  [`${chatml}<function=example>`, "Qwen3-Coder"],
  [`${chatml}# Tools\n\nYou have access to the following tools<function=example>`, "Qwen3-Coder, speaking of tools"],
  [`${chatml}# Tools<function=example>`, "Qwen3-Coder, middle wording"],
  [`${chatml}<function=example><think>Reasoning effort`, "Qwen3.8"],
  [`${chatml}<function=example><think>`, "Qwen3.5"],
  [`${chatml}'title': 'FunctionCall'`, "Hermes"],
  ["<|start_header_id|>{{ role }}ipython", "Llama 3"],
  ["<|header_start|>{{ role }}ipython", "Llama with Python-like calls"],
  [
    '<|start_header_id|>{{ role }}ipython{% set tools_in_user_message = true %}{{ {"output": message.content} }}',
    "Llama 3 in the words of vLLM"
  ],
  ["[INST]{{ x }}[/INST][TOOL_CALLS][", "Mistral Nemo"],
  ["[INST] {{ x }}[/INST][TOOL_CALLS] [", "Mistral 7B"],
  ["{{ parallel_tool_prompt }}[INST] {{ x }}[/INST][TOOL_CALLS] [", "Mistral 7B in the words of vLLM"],
  ["[SYSTEM_PROMPT]{{ parallel_tool_prompt }}[INST]{{ x }}[/INST][TOOL_CALLS] [", "Mistral Small 3 or 3.1"],
  ["{{ max_idx_user }}[INST]{{ x }}[/INST][TOOL_CALLS][", "Mistral v3"],
  ["{{ max_idx_user }}[INST]{{ x }}[/INST][TOOL_CALLS][[TOOL_RESULTS]{{ id }}[TOOL_CONTENT]", "Mistral v7"],
  ["{{ max_idx_user }}[INST]{{ x }}[/INST][TOOL_CALLS][CALL_ID][ARGS]", "Mistral v11"],
  ["[INST]{{ x }}[/INST][TOOL_CALLS][CALL_ID][ARGS]", "Mistral Small 3.2"],
  ["[INST]{{ x }}[/INST][TOOL_CALLS][ARGS]", "Devstral and other Mistral v13"],
  ["[MODEL_SETTINGS][INST]{{ x }}[/INST][TOOL_CALLS][ARGS]", "Mistral v15"],
  ["<|start|>assistant<|channel|>final", "gpt-oss"],
  ['<|start|>assistant<|channel|>{{- developer_message }}\n  {{- "\\n\\n" }}', "gpt-oss, early wording"],
  ["<｜tool▁calls▁begin｜>{{ x }}```json", "DeepSeek V3"],
  ["<｜tool▁calls▁begin｜>{{ x }}```json<think>", "DeepSeek R1"],
  ["<｜tool▁calls▁begin｜>{{ x }}```json{{ is_last_user }}", "DeepSeek R1-0528 or V3-0324"],
  [
    "<｜tool▁calls▁begin｜>{{ x }}```json{{ is_last_user }}Make sure the JSON is valid",
    "DeepSeek R1-0528 in the words of vLLM"
  ],
  ["<tools><｜tool▁calls▁begin｜>{{ x }}```json{{ is_last_user }}", "DeepSeek V3 in the words of vLLM"],
  ["<｜tool▁calls▁begin｜>{{ x }}", "DeepSeek V3.1"],
  ["<｜Assistant｜><think></think><｜tool▁calls▁begin｜>{{ x }}", "DeepSeek V3.1, llama.cpp's edition"],
  ["<｜tool▁calls▁begin｜>{{ x }}IMPORTANT: ALWAYS adhere to this exact format", "DeepSeek V3.1 in the words of vLLM"],
  ["<|turn>model<|tool_call>call:<|channel>thought\\n<channel|>", "Gemma 4"],
  ["<|turn>model<|tool_call>call:", "Gemma 4 E2B"],
  ["<start_of_turn>model<start_function_call>call:", "FunctionGemma"],
  ["<start_of_turn>model{{ x }}<end_of_turn>", "Gemma 2 or 3"],
  ["<start_of_turn>model[func_name1(params_name1=value)]<end_of_turn>", "Gemma with Python-like calls"],
  ["<|im_start|>system{{ x }}Reasoning Mode: /think<tools><tool_call>", "SmolLM3"],
  ["<|start_of_role|>user<|end_of_role|><tool_call>", "Granite"]
]

describe("a template", () => {
  for (const [template, name] of marks) {
    it(`is recognised by what only ${name} prints: ${template.slice(0, 60)}`, () => {
      assert.strictEqual(familyOf(template), name)
    })
  }

  it("decides the codec and says why", () => {
    const out = choose({ template: `${chatml}{"name": <function-name>}` })
    assert.isTrue(
      Result.isSuccess(out) && out.success.codec.id === "qwen2.5" && out.success.reason.includes("<tool_call>")
    )
  })

  it("of the shipped model is Qwen2.5's", () => {
    assert.deepStrictEqual(chosen(templateOf(shippedModel)!), Result.succeed("qwen2.5"))
  })

  it("of a family without a codec is refused by the family's name", () => {
    const out = choose({ template: "<|start_of_role|>" })
    assert.isTrue(
      Result.isFailure(out) && out.failure.reason.includes("Granite") && out.failure.reason.includes("--codec ID")
    )
  })

  it("that is not known, or not there, is refused with the override and a guess that is not taken", () => {
    for (const model of [{ template: "{{ messages }}" }, {}, { template: " " }]) {
      const out = choose({ ...model, name: "Qwen2.5-7B-Instruct" })
      assert.isTrue(Result.isFailure(out) && out.failure.reason.includes("--codec ID"))
      assert.include(Result.isFailure(out) ? out.failure.candidates : [], "qwen2.5")
    }
  })
})

describe("a codec id", () => {
  it("finds its codec, as does an alias", () => {
    for (const id of ids)
      assert.deepStrictEqual(
        Result.map(byId(id), (codec) => codec.id),
        Result.succeed(id)
      )
    assert.deepStrictEqual(
      Result.map(byId("qwen-hermes"), (codec) => codec.id),
      Result.succeed("qwen2.5")
    )
    assert.deepStrictEqual(
      Result.map(byId(" Qwen2.5 "), (codec) => codec.id),
      Result.succeed("qwen2.5")
    )
  })

  it("that is misspelt gets the nearest one as a suggestion and the list", () => {
    const out = byId("qwen2,5")
    assert.isTrue(Result.isFailure(out) && out.failure.reason.includes('Did you mean "qwen2.5"?'))
    assert.deepStrictEqual(Result.isFailure(out) ? out.failure.candidates : [], ["qwen2.5"])
    assert.isTrue(Result.isFailure(byId("zzzzzzzzzz")))
  })
})
