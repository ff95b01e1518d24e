/** Golden renders of every family there is a codec of: one conversation with a call and its answer, and Qwen's system blocks. */
import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { byId, ids } from "../../src/engine/codecs/Families.ts"
import type { Message } from "../../src/engine/Message.ts"
import { flatten } from "../../src/engine/Prompt.ts"
import { firstDifference, tool } from "../kit/codecs.ts"

const calc = tool(
  "calc",
  { type: "object", properties: { a: { type: "integer" }, exact: { type: "boolean" } }, required: ["a"] },
  "Integer sum <é>."
)

const conversation: ReadonlyArray<Message> = [
  { role: "system", content: "S" },
  { role: "user", content: "Q" },
  { role: "assistant", content: "", calls: [{ name: "calc", arguments: { a: 1 }, id: "call00001" }] },
  { role: "tool", name: "calc", content: "R1", id: "call00001" }
]

/** From the question on, with reasoning off where there is a switch: what follows `Q`, and the codecs that write it. */
const goldens: ReadonlyArray<readonly [golden: string, ...ids: ReadonlyArray<string>]> = [
  [
    'Q<|im_end|>\n<|im_start|>assistant\n<tool_call>\n{"name": "calc", "arguments": {"a": 1}}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\nR1\n</tool_response><|im_end|>\n<|im_start|>assistant\n',
    "qwen2.5"
  ],
  [
    'Q<|im_end|>\n<|im_start|>assistant\n<tool_call>\n{"name": "calc", "arguments": {"a": 1}}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\nR1\n</tool_response><|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n',
    "qwen3"
  ],
  [
    'Q<|im_end|>\n<|im_start|>assistant\n<tool_call>\n{"name": "calc", "arguments": {"a": 1}}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\nR1\n</tool_response><|im_end|>\n<|im_start|>assistant\n<think>\n',
    "qwen3-thinking",
    "qwq"
  ],
  [
    "Q<|im_end|>\n<|im_start|>assistant\n<tool_call>\n<function=calc>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\nR1\n</tool_response>\n<|im_end|>\n<|im_start|>assistant\n",
    "qwen3-coder",
    "qwen3-coder-tools",
    "qwen3-coder-functions"
  ],
  [
    "Q<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n<tool_call>\n<function=calc>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\nR1\n</tool_response><|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
    "qwen3.5",
    "qwen3.8"
  ],
  [
    'Q<|im_end|>\n<|im_start|>assistant\n<tool_call>\n{"name": "calc", "arguments": {"a": 1}}\n</tool_call><|im_end|>\n<|im_start|>tool\n<tool_response>\nR1\n</tool_response><|im_end|><|im_start|>assistant\n',
    "hermes",
    "hermes-vllm"
  ],
  [
    'Q<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n{"name": "calc", "parameters": {"a": 1}}<|eot_id|><|start_header_id|>ipython<|end_header_id|>\n\n"R1"<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n',
    "llama3"
  ],
  [
    'Q<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n{"name": "calc", "parameters": {"a": 1}}<|eot_id|><|start_header_id|>ipython<|end_header_id|>\n\n{"output": "R1"}<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n',
    "llama3-vllm"
  ],
  [
    'Q[/INST][TOOL_CALLS]calc[CALL_ID]call00001[ARGS]{"a": 1}</s>[TOOL_RESULTS]call00001[TOOL_CONTENT]R1[/TOOL_RESULTS]',
    "mistral",
    "mistral-v11"
  ],
  [
    'Q[/INST][TOOL_CALLS][{"name": "calc", "arguments": {"a": 1}, "id": "call00001"}]</s>[TOOL_RESULTS]{"content": R1, "call_id": "call00001"}[/TOOL_RESULTS]',
    "mistral-nemo"
  ],
  [
    'Q[/INST][TOOL_CALLS] [{"name": "calc", "arguments": {"a": 1}, "id": "call00001"}]</s>[TOOL_RESULTS] {"content": R1, "call_id": "call00001"}[/TOOL_RESULTS]',
    "mistral-7b",
    "mistral-7b-parallel",
    "mistral-small-3"
  ],
  [
    'Q[/INST][TOOL_CALLS][{"name": "calc", "arguments": {"a": 1}, "id": "call00001"}]</s>[TOOL_RESULTS]{"content": "R1", "call_id": "call00001"}[/TOOL_RESULTS]',
    "mistral-v3"
  ],
  [
    'Q[/INST][TOOL_CALLS][{"name": "calc", "arguments": {"a": 1}, "id": "call00001"}]</s>[TOOL_RESULTS]call00001[TOOL_CONTENT]R1[/TOOL_RESULTS]',
    "mistral-v7"
  ],
  ['Q[/INST][TOOL_CALLS]calc[ARGS]{"a": 1}</s>[TOOL_RESULTS]R1[/TOOL_RESULTS]', "mistral-v13", "mistral-v15"],
  [
    'Q<|end|><|start|>assistant to=functions.calc<|channel|>commentary json<|message|>{"a": 1}<|call|><|start|>functions.calc to=assistant<|channel|>commentary<|message|>"R1"<|end|><|start|>assistant',
    "gpt-oss",
    "gpt-oss-early"
  ],
  [
    'Q<｜Assistant｜><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>calc\n```json\n{"a": 1}\n```<｜tool▁call▁end｜><｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>R1<｜tool▁output▁end｜><｜tool▁outputs▁end｜>',
    "deepseek-v3",
    "deepseek-r1"
  ],
  [
    'Q<｜Assistant｜><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>calc\n```json\n{"a": 1}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜><｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>R1<｜tool▁output▁end｜><｜tool▁outputs▁end｜>',
    "deepseek-r1-0528",
    "deepseek-r1-0528-vllm"
  ],
  [
    'Q<｜Assistant｜></think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>calc<｜tool▁sep｜>{"a": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜><｜tool▁output▁begin｜>R1<｜tool▁output▁end｜>',
    "deepseek-v3.1"
  ],
  [
    'Q<｜Assistant｜><think></think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>calc<｜tool▁sep｜>{"a": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜><｜tool▁output▁begin｜>R1<｜tool▁output▁end｜>',
    "deepseek-v3.1-llamacpp"
  ],
  [
    'Q<end_of_turn>\n<start_of_turn>model\n{"type": "tool_call", "id": "call00001", "name": "calc", "arguments": {"a": 1}}<end_of_turn>\n<start_of_turn>user\n{"type": "tool_result", "name": "calc", "content": "R1"}<end_of_turn>\n<start_of_turn>model\n',
    "gemma3"
  ],
  [
    'Q<turn|>\n<|turn>model\n<|tool_call>call:calc{a:1}<tool_call|><|tool_response>response:calc{value:<|"|>R1<|"|>}<tool_response|>',
    "gemma4",
    "gemma4-e2b"
  ],
  [
    "Q<end_of_turn>\n<start_of_turn>model\n<start_function_call>call:calc{a:1}<end_function_call><start_function_response>response:calc{value:<escape>R1<escape>}<end_function_response>",
    "functiongemma"
  ],
  [
    'Q<|im_end|>\n<|im_start|>assistant\n{"type": "tool_call", "id": "call00001", "name": "calc", "arguments": {"a": 1}}<|im_end|>\n<|im_start|>user\n{"type": "tool_result", "name": "calc", "content": "R1"}<|im_end|>\n<|im_start|>assistant\n',
    "generic-json"
  ],
  [
    'Q<|im_end|>\n<|im_start|>assistant\nCALL([1]) WITH {"a": 1}<|im_end|>\n<|im_start|>user\nRESULT([calc]) R1<|im_end|>\n<|im_start|>assistant\n',
    "ubid"
  ]
]

const json =
  '{"type": "function", "function": {"name": "calc", "description": "Integer sum <é>.", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "exact": {"type": "boolean"}}, "required": ["a"]}}}'

/** From the first byte to the question, or to the end of the list of tools where the rest is the template's own wording. */
const systems: Readonly<Record<string, string>> = {
  "qwen2.5": `<|im_start|>system\nS\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with function signatures within <tools></tools> XML tags:\n<tools>\n${json}\n</tools>\n\nFor each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call><|im_end|>\n`,
  qwen3: `<|im_start|>system\nS\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with function signatures within <tools></tools> XML tags:\n<tools>\n${json}\n</tools>\n\nFor each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call><|im_end|>\n`,
  "qwen3.5": `<|im_start|>system\n# Tools\n\nYou have access to the following functions:\n\n<tools>\n${json}\n</tools>\n\nIf you choose to call a function ONLY reply in the following format with NO suffix:\n\n<tool_call>\n<function=example_function_name>\n<parameter=example_parameter_1>\nvalue_1\n</parameter>\n<parameter=example_parameter_2>\nThis is the value for the second parameter\nthat can span\nmultiple lines\n</parameter>\n</function>\n</tool_call>\n\n<IMPORTANT>\nReminder:\n- Function calls MUST follow the specified format: an inner <function=...></function> block must be nested within <tool_call></tool_call> XML tags\n- Required parameters MUST be specified\n- You may provide optional reasoning for your function call in natural language BEFORE the function call, but NOT after\n- If there is no function call available, answer the question like normal with your current knowledge and do not tell the user about function calls\n</IMPORTANT>\n\nS<|im_end|>\n`,
  "qwen3-coder-tools": `<|im_start|>system\nS\n\n# Tools\n\nYou have access to the following tools:\n\n<tools>\n<function>\n<name>calc</name>\n<description>Integer sum <é>.</description>\n<parameters>\n<parameter>\n<name>a</name>\n<type>integer</type>\n</parameter>\n<parameter>\n<name>exact</name>\n<type>boolean</type>\n</parameter>\n<required>["a"]</required>\n</parameters>\n</function>\n</tools>`
}

describe("golden renders per family", () => {
  it("there is one for every codec", () => {
    assert.sameMembers(
      goldens.flatMap(([, ...written]) => written),
      [...ids]
    )
  })

  for (const [golden, ...written] of goldens) {
    for (const id of written) {
      it(`${id}: a question, a call, its answer and what opens the next turn, to the byte`, () => {
        const options = { tools: [calc], generationPrompt: true, thinking: false }
        const out = flatten(Result.getOrThrow(byId(id)).render(conversation, options))
        assert.strictEqual(firstDifference(out.slice(out.lastIndexOf("Q")), golden), undefined)
      })
    }
  }

  for (const [id, golden] of Object.entries(systems)) {
    it(`${id}: the system block with a tool, to the byte`, () => {
      const out = flatten(Result.getOrThrow(byId(id)).system("S", { tools: [calc] }))
      assert.strictEqual(firstDifference(out.slice(0, golden.length), golden), undefined)
    })
  }
})
