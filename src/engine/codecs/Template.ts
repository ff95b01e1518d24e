/**
 * Renders a chat template as the Hugging Face libraries do (blocks trimmed, `tojson` with Python's spacing and no
 * escaping, `raise_exception`, `strftime_now` with a given clock). It is the reference the codecs are checked against and
 * never part of a run: the engine behind it is loaded on first use.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Json } from "../../tools/JsonText.ts"
import type { ToolSpec } from "../../tools/ToolCall.ts"
import type { Message } from "../Message.ts"
import { strftime } from "./Strftime.ts"

export class TemplateError extends Schema.TaggedError<TemplateError>()("TemplateError", {
  /** `syntax`: not a template. `refused`: the template itself raised. `unsupported`: the engine could not run it. */
  reason: Schema.Literals(["syntax", "refused", "unsupported"]),
  message: Schema.String
}) {}

export interface TemplateInput {
  readonly messages: ReadonlyArray<Message>
  readonly tools?: ReadonlyArray<ToolSpec>
  readonly generationPrompt?: boolean
  /** Further variables of the template (`enable_thinking`, `bos_token`). */
  readonly variables?: Readonly<Record<string, Json>>
  /** What `strftime_now` shows, in UTC. A template that asks for the time without one is refused. */
  readonly now?: Date
}

export interface ChatTemplate {
  readonly render: (input: TemplateInput) => Effect.Effect<string, TemplateError>
}

/** What a template raised on purpose, as opposed to what the engine cannot do. */
class Raised extends Error {}

/** Reads a template. Nothing is rendered yet. */
export const compile = (source: string): Effect.Effect<ChatTemplate, TemplateError> =>
  Effect.gen(function* () {
    const { Environment, Interpreter, parse, tokenize } = yield* Effect.promise(() => import("@huggingface/jinja"))
    const program = yield* Effect.try({
      try: () => parse(tokenize(source, { lstrip_blocks: true, trim_blocks: true })),
      catch: (cause) => new TemplateError({ reason: "syntax", message: messageOf(cause) })
    })
    return {
      render: (input) =>
        Effect.try({
          try: () => {
            const environment = new Environment()
            for (const [name, value] of Object.entries(variablesOf(input))) environment.set(name, value)
            return (new Interpreter(environment).run(program) as unknown as { readonly value: string }).value
          },
          catch: (cause) =>
            new TemplateError({
              reason: cause instanceof Raised ? "refused" : "unsupported",
              message: messageOf(cause)
            })
        })
    }
  })

const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

const constants = { true: true, True: true, false: false, False: false, none: null, None: null }

const variablesOf = (input: TemplateInput): Record<string, unknown> => ({
  ...constants,
  range,
  ...input.variables,
  messages: input.messages.map(plainMessage),
  ...(input.tools === undefined || input.tools.length === 0 ? {} : { tools: input.tools.map(plainTool) }),
  add_generation_prompt: input.generationPrompt === true,
  raise_exception: (message: unknown): never => {
    throw new Raised(String(message))
  },
  strftime_now: (format: string): string => {
    if (input.now === undefined) throw new Raised("the template prints the time and none was given")
    return strftime(input.now, format)
  }
})

/** Python's `range`, as far as templates count. */
const range = (start: number, stop?: number, step = 1): ReadonlyArray<number> => {
  const [from, to] = stop === undefined ? [0, start] : [start, stop]
  return Array.from({ length: Math.max(0, Math.ceil((to - from) / step)) }, (_, index) => from + index * step)
}

const plainTool = (tool: ToolSpec) => ({
  type: "function",
  function: { name: tool.name, description: tool.description, parameters: tool.parameters }
})

/** A message in the form templates expect. */
const plainMessage = (message: Message): Record<string, unknown> => {
  if (message.role === "tool") {
    return {
      role: "tool",
      name: message.name,
      content: message.content,
      ...(message.id === undefined ? {} : { tool_call_id: message.id })
    }
  }
  if (message.role !== "assistant") return { role: message.role, content: message.content }
  return {
    role: "assistant",
    content: message.content,
    ...(message.reasoning === undefined ? {} : { reasoning_content: message.reasoning }),
    ...(message.calls === undefined || message.calls.length === 0
      ? {}
      : {
          tool_calls: message.calls.map((call) => ({
            type: "function",
            ...(call.id === undefined ? {} : { id: call.id }),
            function: { name: call.name, arguments: call.arguments }
          }))
        })
  }
}
