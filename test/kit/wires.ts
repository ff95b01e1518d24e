/** How each family writes a call, an answer and a turn, for tests that do the same to all of them. */

export interface Wire {
  readonly name:
    | "tagged json"
    | "tagged xml"
    | "llama3"
    | "mistral"
    | "harmony"
    | "deepseek"
    | "gemma4"
    | "functiongemma"
    | "json lines"
    | "ubid"
  /** One whole call of `calc` with the text `b` as `a`. */
  readonly call: string
  /** With which texts a call may begin: its marker. */
  readonly openers: ReadonlyArray<string>
  /** Where the arguments begin, in a family where the end of a turn may close them. */
  readonly bodyFrom: number
  /** A call that is whole and wrong. */
  readonly broken: string
  readonly brokenCode: "invalid_json" | "ambiguous_delimiter"
  /** Between two calls. */
  readonly join: string
  /** Ends a turn, where that can be seen in its text. */
  readonly end: string
  readonly answer: string
  readonly turn: string
  /** Prose as a turn. */
  readonly say: (prose: string) => string
  /** Prose, and then something that is not prose. */
  readonly after: (prose: string, next: string) => string
}

const plain = {
  bodyFrom: Number.POSITIVE_INFINITY,
  brokenCode: "invalid_json",
  join: "\n",
  say: (prose: string) => prose,
  after: (prose: string, next: string) => `${prose}\n${next}`
} as const

const chatMl = { end: "<|im_end|>\n", turn: "<|im_start|>user\nHi" } as const

const response = "<tool_response>\n4\n</tool_response>"

const taggedJson: Wire = {
  ...plain,
  ...chatMl,
  name: "tagged json",
  call: `<tool_call>\n{"name": "calc", "arguments": {"a": "b"}}\n</tool_call>`,
  openers: ["<tool_call>"],
  broken: `<tool_call>\n{"name": "calc", "arguments": {"a": "b",}}\n</tool_call>`,
  answer: response
}

const taggedXml: Wire = {
  ...taggedJson,
  name: "tagged xml",
  call: "<tool_call>\n<function=calc>\n<parameter=a>\nb\n</parameter>\n</function>\n</tool_call>",
  broken: "<tool_call>\n<function=calc>\n<parameter=a>\nb\n</function>\n</tool_call>",
  brokenCode: "ambiguous_delimiter"
}

const llama3: Wire = {
  ...plain,
  name: "llama3",
  call: `{"name": "calc", "parameters": {"a": "b"}}`,
  openers: [`{"name"`],
  broken: `{"name": "calc", "parameters": {"a": "b",}}`,
  join: "; ",
  end: "<|eot_id|>",
  answer: `<|start_header_id|>ipython<|end_header_id|>\n\n"4"`,
  turn: "<|start_header_id|>user<|end_header_id|>\n\nHi"
}

const mistralCall = (call: string, broken: string): Wire => ({
  ...plain,
  name: "mistral",
  call,
  openers: ["[TOOL_CALLS]"],
  broken,
  join: "",
  end: "</s>",
  answer: "[TOOL_RESULTS]abcdefghi[TOOL_CONTENT]4[/TOOL_RESULTS]",
  turn: "[INST]Hi[/INST]"
})

const mistralArray = mistralCall(
  `[TOOL_CALLS][{"name": "calc", "arguments": {"a": "b"}, "id": "abcdefghi"}]`,
  `[TOOL_CALLS][{"name": "calc", "arguments": {"a": "b",}, "id": "abcdefghi"}]`
)

const mistralIds = mistralCall(
  `[TOOL_CALLS]calc[CALL_ID]abcdefghi[ARGS]{"a": "b"}`,
  `[TOOL_CALLS]calc[CALL_ID]abcdefghi[ARGS]{"a": "b",}`
)

const mistralNames = mistralCall(`[TOOL_CALLS]calc[ARGS]{"a": "b"}`, `[TOOL_CALLS]calc[ARGS]{"a": "b",}`)

const header = "<|channel|>commentary to=functions.calc <|constrain|>json<|message|>"

const harmony: Wire = {
  name: "harmony",
  call: `${header}{"a": "b"}`,
  openers: ["<|channel|>"],
  bodyFrom: header.length,
  broken: `${header}{"a": "b",}`,
  brokenCode: "invalid_json",
  join: "<|call|><|start|>assistant",
  end: "<|end|>",
  answer: "<|start|>functions.calc to=assistant<|channel|>commentary<|message|>4",
  turn: "<|start|>user<|message|>Hi",
  say: (prose) => `<|channel|>final<|message|>${prose}`,
  after: (prose, next) =>
    `<|channel|>commentary<|message|>${prose}<|end|>${next.startsWith("<|start|>") ? "" : "<|start|>assistant"}${next}`
}

const section = (call: string): string =>
  `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>${call}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`

const deepSeek = (call: (args: string) => string): Wire => ({
  ...plain,
  name: "deepseek",
  call: section(call(`{"a": "b"}`)),
  openers: ["<｜tool▁calls▁begin｜>"],
  broken: section(call(`{"a": "b",}`)),
  end: "<｜end▁of▁sentence｜>",
  answer: "<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>4<｜tool▁output▁end｜><｜tool▁outputs▁end｜>",
  turn: "<｜User｜>Hi"
})

const gemma4: Wire = {
  ...plain,
  name: "gemma4",
  call: `<|tool_call>call:calc{a:<|"|>b<|"|>}<tool_call|>`,
  openers: ["<|tool_call>"],
  broken: "<|tool_call>call:calc{a:b}<tool_call|>",
  join: "",
  end: "<turn|>",
  answer: "<|tool_response>response:calc{value:4}<tool_response|>",
  turn: "<|turn>user\nHi"
}

const functionGemma: Wire = {
  ...gemma4,
  name: "functiongemma",
  call: "<start_function_call>call:calc{a:<escape>b<escape>}<end_function_call>",
  openers: ["<start_function_call>"],
  broken: "<start_function_call>call:calc{a:b}<end_function_call>",
  end: "<end_of_turn>\n",
  answer: "<start_function_response>response:calc{value:4}<end_function_response>",
  turn: "<start_of_turn>user\nHi"
}

const jsonLines: Wire = {
  ...plain,
  ...chatMl,
  name: "json lines",
  call: `{"type": "tool_call", "name": "calc", "arguments": {"a": "b"}}`,
  openers: [`{"type"`],
  broken: `{"type": "tool_call", "name": "calc", "arguments": {"a": "b",}}`,
  answer: `{"type": "tool_result", "name": "calc", "content": "4"}`
}

const ubid: Wire = {
  ...plain,
  ...chatMl,
  name: "ubid",
  call: `CALL([1]) WITH {"a": "b"}`,
  openers: ["CALL(["],
  broken: `CALL([1]) WITH {"a": "b",}`,
  answer: "RESULT([calc]) 4"
}

const wires: ReadonlyArray<readonly [ids: RegExp, wire: Wire]> = [
  [/^(?:qwen2\.5|qwen3|qwen3-thinking|qwq|hermes)(?:-vllm)?$/, taggedJson],
  [/^(?:qwen3-coder|qwen3\.\d)/, taggedXml],
  [/^llama3/, llama3],
  [/^mistral(?:-v11)?$/, mistralIds],
  [/^mistral-v1[35]$/, mistralNames],
  [/^mistral-(?:nemo|7b|small-3|v3|v7)/, mistralArray],
  [/^gpt-oss/, harmony],
  [/^deepseek-(?:v3$|r1)/, deepSeek((args) => `function<｜tool▁sep｜>calc\n\`\`\`json\n${args}\n\`\`\``)],
  [/^deepseek-v3\.1/, deepSeek((args) => `calc<｜tool▁sep｜>${args}`)],
  [/^gemma4/, gemma4],
  [/^gemma3/, { ...jsonLines, end: "<end_of_turn>\n", turn: "<start_of_turn>user\nHi" }],
  [/^functiongemma/, functionGemma],
  [/^generic-json/, jsonLines],
  [/^ubid/, ubid]
]

/** The wire of a codec; throws where there is not exactly one. */
export const wireOf = (id: string): Wire => {
  const found = wires.filter(([pattern]) => pattern.test(id))
  if (found.length !== 1) throw new Error(`${found.length} wires for ${id}`)
  return found[0]![1]
}
