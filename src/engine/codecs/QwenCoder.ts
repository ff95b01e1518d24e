/**
 * Qwen3-Coder: calls as functions with parameter blocks, tools described in XML. Three wordings of its template circulate;
 * `qwen3-coder` is the one inside published GGUF files, except that objects and arrays in arguments are printed as JSON, as
 * the later revisions do (as Python text they could not be read back).
 */
import { isObject, type Json, type JsonObject } from "../../tools/JsonText.ts"
import type { ToolSpec } from "../../tools/ToolCall.ts"
import { CallScanner } from "./CallScanner.ts"
import * as ChatMl from "./ChatMl.ts"
import type { AssistantTurn, Codec, RenderOptions, ToolAnswer } from "./Codec.ts"
import { renderAppended, type Turns } from "./Conversation.ts"
import { pythonJson } from "./PythonJson.ts"
import { str, strip } from "./PythonText.ts"
import { currentWording, dialect, grammar, instructions, writeCalls } from "./TaggedXml.ts"

const ownSystem = "You are Qwen, a helpful AI assistant that can interact with a computer to solve tasks."

interface Wording {
  readonly id: string
  readonly heading: string
  readonly instructions: string
  readonly parameters: (tool: ToolSpec) => string
}

const element = (name: string, text: string): string => `\n<${name}>${text}</${name}>`

const elementName = (key: string): string => key.replace(/[- ]/g, "_").replaceAll("$", "")

const described = (schema: JsonObject): string =>
  Object.hasOwn(schema, "description") ? element("description", strip(str(schema["description"]!))) : ""

const typed = (schema: JsonObject): string =>
  Object.hasOwn(schema, "type") ? element("type", str(schema["type"]!)) : ""

/** A list with its texts in backticks; nothing at all when it is empty. */
const ticked = (name: string, list: Json | undefined): string =>
  Array.isArray(list) && list.length > 0
    ? element(name, `[${list.map((item) => (typeof item === "string" ? `\`${item}\`` : str(item))).join(", ")}]`)
    : ""

const otherKeys = (schema: JsonObject, handled: ReadonlyArray<string>, value: (value: Json) => string): string =>
  Object.keys(schema)
    .filter((key) => !handled.includes(key))
    .map((key) => element(elementName(key), value(schema[key]!)))
    .join("")

const propertiesOf = (tool: ToolSpec): ReadonlyArray<readonly [string, JsonObject]> =>
  Object.entries((tool.parameters["properties"] ?? {}) as JsonObject).map(([name, schema]) => [
    name,
    isObject(schema) ? schema : {}
  ])

const currentParameters = (tool: ToolSpec): string => {
  const value = (one: Json): string => (isObject(one) ? pythonJson(one) : str(one))
  const each = propertiesOf(tool).map(
    ([name, schema]) =>
      `\n<parameter>${element("name", name)}${typed(schema)}${described(schema)}${ticked("enum", schema["enum"])}` +
      `${otherKeys(schema, ["type", "description", "enum", "required"], value)}${ticked("required", schema["required"])}\n</parameter>`
  )
  return each.join("") + ticked("required", tool.parameters["required"])
}

const earlyParameters = (tool: ToolSpec): string => {
  const value = (one: Json): string => (typeof one === "object" && one !== null ? pythonJson(one) : str(one))
  const each = propertiesOf(tool).map(
    ([name, schema]) =>
      `\n<parameter>${element("name", name)}${typed(schema)}${described(schema)}` +
      `${otherKeys(schema, ["type", "description"], value)}\n</parameter>`
  )
  return each.join("") + otherKeys(tool.parameters, ["type", "properties"], value)
}

const answers = (list: ReadonlyArray<ToolAnswer>) => {
  const out = ChatMl.markup().mark("<|im_start|>user\n")
  for (const answer of list) out.mark("<tool_response>\n").say(answer.text).mark("\n</tool_response>\n")
  return out.mark("<|im_end|>\n").done()
}

const coder = (wording: Wording): Codec => {
  const system = (text: string | undefined, { tools }: RenderOptions) => {
    if (text === undefined && tools.length === 0) return []
    const out = ChatMl.markup()
      .mark("<|im_start|>system\n")
      .say(text ?? ownSystem)
    if (tools.length > 0) {
      out.mark(`${wording.heading}\n\n<tools>`)
      for (const tool of tools) {
        out
          .mark("\n")
          .say(
            `<function>\n<name>${tool.name}</name>${element("description", strip(tool.description))}\n<parameters>` +
              `${wording.parameters(tool)}\n</parameters>\n</function>`
          )
      }
      out.mark(`\n</tools>${wording.instructions}`)
    }
    return out.mark("<|im_end|>\n").done()
  }
  const written = (turn: AssistantTurn) => {
    const calls = turn.calls ?? []
    if (calls.length === 0) return ChatMl.markup().say(turn.content).done()
    const content = strip(turn.content)
    return writeCalls(
      ChatMl.markup()
        .say(content)
        .mark(content === "" ? "" : "\n\n"),
      calls
    ).done()
  }
  const turns: Turns = {
    system,
    laterSystem: (content) => ChatMl.turn("system", content),
    user: (content) => ChatMl.turn("user", content),
    answers,
    opening: () => ChatMl.opening,
    closing: ChatMl.closing,
    written
  }
  return {
    id: wording.id,
    stops: [],
    ends: ChatMl.ends,
    reasoning: ChatMl.thinkTags,
    system,
    user: turns.user,
    answers,
    opening: turns.opening,
    closing: turns.closing,
    written,
    render: (messages, options) => renderAppended(turns, messages, options),
    parser: (options) => new CallScanner(dialect, options),
    grammar
  }
}

export const qwenCoder: Codec = coder({
  id: "qwen3-coder",
  heading: "\n\nYou have access to the following functions:",
  instructions: instructions(currentWording),
  parameters: currentParameters
})

/** The first wording, which speaks of tools. */
export const qwenCoderTools: Codec = coder({
  id: "qwen3-coder-tools",
  heading: "\n\n# Tools\n\nYou have access to the following tools:",
  instructions: instructions({
    what: "tool",
    second: "value_2",
    reminder:
      "the tool calling block MUST begin with an opening <tool_call> tag and end with a closing </tool_call> tag."
  }),
  parameters: earlyParameters
})

/** The wording in between, which other servers ship. */
export const qwenCoderFunctions: Codec = coder({
  id: "qwen3-coder-functions",
  heading: "\n\n# Tools\n\nYou have access to the following functions:",
  instructions: instructions(currentWording),
  parameters: earlyParameters
})
