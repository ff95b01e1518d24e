/** How a chat template is recognised: by texts that only templates of one family print. The first that matches decides. */

export interface Family {
  /** What people call it. */
  readonly name: string
  /** The codec for it; absent when the family is recognised only to be refused by name. */
  readonly codec?: string
  /** What was seen, for the reason. */
  readonly why: string
  /** A word of architectures and file names, for suggestions when there is no template. */
  readonly hint?: string
  readonly matches: (template: string) => boolean
}

const all =
  (...parts: ReadonlyArray<string>) =>
  (template: string): boolean =>
    parts.every((part) => template.includes(part))

const any =
  (...parts: ReadonlyArray<string>) =>
  (template: string): boolean =>
    parts.some((part) => template.includes(part))

const inTags = all("<|im_start|>", "<tools>", "<tool_call>")
// Quotes inside a Jinja string are escaped or not.
const jsonInTags = (template: string): boolean => inTags(template) && /"name\\?": <function-name>/.test(template)
const xmlInTags = (template: string): boolean => inTags(template) && template.includes("<function=")
const harmony = all("<|channel|>", "<|start|>")
const fencedSections = all("<｜tool▁calls▁begin｜>", "```json")
const gemmaBraces = all("<|tool_call>", "<|turn>")
const thinks = any("enable_thinking", "<think>")

/** Special cases before the general ones they look like. */
export const families: ReadonlyArray<Family> = [
  { name: "MiniMax", why: "it prints <minimax:tool_call>", matches: all("<minimax:tool_call>") },
  { name: "GLM", why: "it prints <arg_key>", matches: all("<arg_key>") },
  { name: "Kimi", why: "it prints <|tool_calls_section_begin|>", matches: all("<|tool_calls_section_begin|>") },
  { name: "Granite", why: "it prints <|start_of_role|>", hint: "granite", matches: all("<|start_of_role|>") },
  { name: "Cohere", why: "it prints <|START_ACTION|>", matches: all("<|START_ACTION|>") },
  {
    name: "Cogito",
    why: "it asks for a deep thinking subroutine",
    hint: "cogito",
    matches: all("deep thinking subroutine")
  },
  {
    name: "SmolLM3",
    why: "it prints a reasoning mode",
    hint: "smollm",
    matches: all("<|im_start|>", "Reasoning Mode:")
  },
  {
    name: "QwQ",
    codec: "qwq",
    why: "it thinks always and knows no reasoning_content",
    hint: "qwq",
    matches: (template) =>
      jsonInTags(template) && template.includes("</think>") && !template.includes("reasoning_content")
  },
  { name: "Nemotron", why: "it prints <TOOLCALL>", matches: all("<TOOLCALL>") },
  { name: "DeepSeek V3.2", why: "it prints DSML tags", matches: all("DSML") },
  {
    name: "gpt-oss, early wording",
    codec: "gpt-oss-early",
    why: "it prints harmony channels and an empty line after the instructions",
    matches: (template) => harmony(template) && /developer_message \}\}\s*\{\{- "\\n\\n" \}\}/.test(template)
  },
  {
    name: "gpt-oss",
    codec: "gpt-oss",
    why: "it prints harmony channels",
    hint: "gpt-oss",
    matches: harmony
  },
  {
    name: "DeepSeek V3 in the words of vLLM",
    why: "it prints fenced calls and tools in <tools> tags",
    matches: (template) => fencedSections(template) && template.includes("<tools>")
  },
  {
    name: "DeepSeek R1-0528 in the words of vLLM",
    codec: "deepseek-r1-0528-vllm",
    why: "it prints fenced calls, keeps track of the last speaker and lists tools in code blocks",
    matches: (template) => fencedSections(template) && all("is_last_user", "Make sure the JSON is valid")(template)
  },
  {
    name: "DeepSeek R1-0528 or V3-0324",
    codec: "deepseek-r1-0528",
    why: "it prints fenced calls and keeps track of the last speaker",
    matches: (template) => fencedSections(template) && template.includes("is_last_user")
  },
  {
    name: "DeepSeek R1",
    codec: "deepseek-r1",
    why: "it prints fenced calls and opens every turn with <think>",
    hint: "deepseek-r1",
    matches: (template) => fencedSections(template) && template.includes("<think>")
  },
  {
    name: "DeepSeek V3",
    codec: "deepseek-v3",
    why: "it prints <｜tool▁calls▁begin｜> with fenced arguments",
    matches: fencedSections
  },
  {
    name: "DeepSeek V3.1 in the words of vLLM",
    why: "it prints <｜tool▁calls▁begin｜> with bare arguments and lists tools",
    matches: all("<｜tool▁calls▁begin｜>", "ALWAYS adhere to this exact format")
  },
  {
    name: "DeepSeek V3.1, llama.cpp's edition",
    codec: "deepseek-v3.1-llamacpp",
    why: "it prints <｜tool▁calls▁begin｜> with bare arguments and <think></think> for no reasoning",
    matches: all("<｜tool▁calls▁begin｜>", "<think></think>")
  },
  {
    name: "DeepSeek V3.1",
    codec: "deepseek-v3.1",
    why: "it prints <｜tool▁calls▁begin｜> with bare arguments",
    hint: "deepseek",
    matches: all("<｜tool▁calls▁begin｜>")
  },
  {
    name: "FunctionGemma",
    codec: "functiongemma",
    why: "it prints <start_function_call>",
    hint: "functiongemma",
    matches: all("<start_function_call>")
  },
  {
    name: "Gemma 4 E2B",
    codec: "gemma4-e2b",
    why: "it prints <|tool_call> and never an empty thought channel",
    hint: "gemma-4-e2b",
    matches: (template) => gemmaBraces(template) && !/thought\\n<channel\|>/.test(template)
  },
  {
    name: "Gemma 4",
    codec: "gemma4",
    why: "it prints <|tool_call> and <|turn>",
    hint: "gemma",
    matches: gemmaBraces
  },
  {
    name: "Gemma with Python-like calls",
    why: "it asks for calls as a list of function expressions",
    matches: (template) => template.includes("<start_of_turn>") && /func_name\d?\(/.test(template)
  },
  {
    name: "Gemma 2 or 3",
    codec: "gemma3",
    why: "it marks turns with <start_of_turn> and knows no tools, so calls are JSON lines of our own",
    hint: "gemma",
    matches: all("<start_of_turn>", "<end_of_turn>")
  },
  {
    name: "Mistral v15",
    codec: "mistral-v15",
    why: "it prints [MODEL_SETTINGS]",
    matches: all("[TOOL_CALLS]", "[MODEL_SETTINGS]")
  },
  {
    name: "Mistral v11",
    codec: "mistral-v11",
    why: "it prints [TOOL_CALLS] with [CALL_ID] and counts the questions",
    matches: all("[TOOL_CALLS]", "[CALL_ID]", "max_idx_user")
  },
  {
    name: "Mistral Small 3.2",
    codec: "mistral",
    why: "it prints [TOOL_CALLS] with [CALL_ID]",
    hint: "mistral",
    matches: all("[TOOL_CALLS]", "[CALL_ID]")
  },
  {
    name: "Devstral and other Mistral v13",
    codec: "mistral-v13",
    why: "it prints [TOOL_CALLS] with [ARGS] and no ids",
    hint: "stral",
    matches: all("[TOOL_CALLS]", "[ARGS]")
  },
  {
    name: "Mistral v7",
    codec: "mistral-v7",
    why: "it prints [TOOL_CALLS] with a list of objects and [TOOL_CONTENT]",
    matches: all("[TOOL_CALLS]", "[TOOL_CONTENT]")
  },
  {
    name: "Mistral v3",
    codec: "mistral-v3",
    why: "it prints [TOOL_CALLS] with a list of objects and counts the questions",
    matches: all("[TOOL_CALLS]", "max_idx_user")
  },
  {
    name: "Mistral Small 3 or 3.1",
    codec: "mistral-small-3",
    why: "it prints [TOOL_CALLS] with a list of objects, [SYSTEM_PROMPT] and words on several calls",
    matches: all("[TOOL_CALLS] [", "[SYSTEM_PROMPT]", "parallel_tool_prompt")
  },
  {
    name: "Mistral 7B in the words of vLLM",
    codec: "mistral-7b-parallel",
    why: "it prints [TOOL_CALLS], a space, a list of objects and words on several calls",
    matches: all("[TOOL_CALLS] [", "parallel_tool_prompt")
  },
  {
    name: "Mistral 7B",
    codec: "mistral-7b",
    why: "it prints [TOOL_CALLS], a space and a list of objects",
    matches: all("[TOOL_CALLS] [")
  },
  {
    name: "Mistral Nemo",
    codec: "mistral-nemo",
    why: "it prints [TOOL_CALLS] with a list of objects",
    hint: "nemo",
    matches: all("[TOOL_CALLS]")
  },
  {
    name: "Llama with Python-like calls",
    why: "it asks for calls as a list of function expressions",
    matches: (template) =>
      template.includes("<|header_start|>") ||
      (template.includes("<|start_header_id|>") && /func_name\d?\(/.test(template))
  },
  {
    name: "Hermes",
    codec: "hermes",
    why: "it asks for JSON in <tool_call> tags in the words of Hermes",
    hint: "hermes",
    matches: (template) => inTags(template) && template.includes("FunctionCall")
  },
  {
    name: "Llama 3 in the words of vLLM",
    codec: "llama3-vllm",
    why: "it prints <|start_header_id|> and results of the role ipython as objects",
    matches: (template) =>
      all("<|start_header_id|>", "ipython", "tools_in_user_message = true")(template) &&
      /"output": ?message/.test(template)
  },
  {
    name: "Llama 3",
    codec: "llama3",
    why: "it prints <|start_header_id|> and results of the role ipython",
    hint: "llama",
    matches: all("<|start_header_id|>", "ipython")
  },
  {
    name: "Qwen3.8",
    codec: "qwen3.8",
    why: "it sets a reasoning effort",
    matches: (template) => xmlInTags(template) && template.includes("Reasoning effort")
  },
  {
    name: "Qwen3.5",
    codec: "qwen3.5",
    why: "it asks for <function=…> in <tool_call> tags and thinks",
    matches: (template) => xmlInTags(template) && thinks(template)
  },
  {
    name: "Qwen3-Coder, speaking of tools",
    codec: "qwen3-coder-tools",
    why: "it asks for <function=…> in <tool_call> tags and speaks of tools",
    matches: (template) => xmlInTags(template) && template.includes("access to the following tools")
  },
  {
    name: "Qwen3-Coder, middle wording",
    codec: "qwen3-coder-functions",
    why: "it asks for <function=…> in <tool_call> tags under the heading Tools",
    matches: (template) => xmlInTags(template) && template.includes("# Tools")
  },
  {
    name: "Qwen3-Coder",
    codec: "qwen3-coder",
    why: "it asks for <function=…> in <tool_call> tags",
    hint: "coder",
    matches: xmlInTags
  },
  {
    name: "Qwen3 Thinking",
    codec: "qwen3-thinking",
    why: "it asks for JSON in <tool_call> tags and opens every turn with <think>",
    matches: (template) => jsonInTags(template) && template.includes("<think>") && !template.includes("enable_thinking")
  },
  {
    name: "Qwen3",
    codec: "qwen3",
    why: "it asks for JSON in <tool_call> tags and thinks",
    hint: "qwen3",
    matches: (template) => jsonInTags(template) && thinks(template)
  },
  { name: "Qwen2.5", codec: "qwen2.5", why: "it asks for JSON in <tool_call> tags", hint: "qwen", matches: jsonInTags }
]
