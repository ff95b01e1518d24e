/**
 * Reads one call written as `<function=NAME>` with a `<parameter=NAME>` block per argument, up to `</tool_call>`. Values
 * have no escape, so delimiters count only on lines of their own and a value that holds such a line is refused: it could
 * be read in two ways, and the wrong one would shorten it. A parameter may also stand whole on one line.
 */
import type { Json, JsonObject } from "../../tools/JsonText.ts"
import type { ParserOptions } from "./Codec.ts"
import { broken, type Frame, type FrameEnd, openFrame } from "./Dialect.ts"
import { callBody, checkName } from "./Envelope.ts"
import type { Window } from "./Window.ts"
import { declaredAs, decodeValue } from "./XmlValue.ts"

/** Longest tag with a name. */
const tagChars = 256

const delimiterLine = /^(?:<parameter=[^>]*>.*|<\/parameter>|<function=[^>]*>|<\/function>|<\/?tool_call>)\s*$/

const fault = {
  function: { code: "wrong_envelope", what: "<tool_call> must be followed by a line <function=NAME>" },
  empty: { code: "empty_call", what: "there is no call between the tags" },
  parameter: {
    code: "wrong_envelope",
    what: "a parameter must be a line <parameter=NAME>, its value, and a line </parameter>"
  },
  body: { code: "wrong_envelope", what: "only parameters and </function> may stand inside a function" },
  unclosedFunction: { code: "missing_closer", what: "</function> is missing before </tool_call>" },
  ambiguous: {
    code: "ambiguous_delimiter",
    what: "a parameter's value has a line that looks like a tag, so where it ends cannot be told: write it another way"
  },
  trailing: {
    code: "trailing_characters",
    what: "only </tool_call> may follow </function>, one call in each <tool_call>"
  },
  duplicate: { code: "duplicate_parameter", what: "a parameter is given twice" }
} as const

type State = "function" | "name" | "body" | "tag" | "value" | "after"

export class XmlFrame implements Frame {
  readonly #options: ParserOptions
  #state: State = "function"
  #start = 0
  #name = ""
  #parameter = ""
  #values = new Map<string, string>()
  #lines: Array<string> = []
  #line: Array<string> = []

  constructor(options: ParserOptions) {
    this.#options = options
  }

  read(window: Window): FrameEnd | undefined {
    for (;;) {
      const end = this.#step(window)
      if (end === "more")
        return window.ending === undefined ? undefined : { calls: [], fault: openFrame(window.ending, window.position) }
      if (end !== undefined) return end
    }
  }

  /** One decision: nothing to go on with, an end, or `"more"` text needed. */
  #step(window: Window): FrameEnd | "more" | undefined {
    if (this.#state === "name" || this.#state === "tag") return this.#tag(window)
    if (this.#state === "value") return this.#value(window)
    if (!window.skipSpace()) return "more"
    this.#start = window.position
    if (this.#state === "function")
      return this.#expect(window, ["<function=", "name"], ["</tool_call>", fault.empty], fault.function)
    if (this.#state === "after") return this.#close(window)
    const isTag = this.#expect(window, ["<parameter=", "tag"], ["</tool_call>", fault.unclosedFunction], undefined)
    if (isTag !== "no") return isTag
    const afterValue = this.#values.size > 0 ? fault.ambiguous : fault.body
    return this.#expect(window, ["</function>", "after"], undefined, afterValue)
  }

  /** Moves on at a token, fails at another, and at anything else fails or says `"no"`. */
  #expect<Other extends { readonly code: FaultCode; readonly what: string } | undefined>(
    window: Window,
    [token, next]: readonly [string, State],
    bad: readonly [string, { readonly code: FaultCode; readonly what: string }] | undefined,
    other: Other
  ): FrameEnd | "more" | undefined | (Other extends undefined ? "no" : never) {
    const seen = window.expect(token)
    if (seen === "yes") {
      this.#state = next
      return undefined
    }
    const wrong = seen === "no" && bad !== undefined ? window.expect(bad[0]) : seen
    if (wrong === "maybe") return "more"
    if (wrong === "yes") return broken(bad![1], this.#start)
    const cut = window.endsWithin(token) || (bad !== undefined && window.endsWithin(bad[0]))
    if (cut) return "more"
    if (other === undefined) return "no" as Other extends undefined ? "no" : never
    return broken(other, this.#start)
  }

  /** The rest of an opening tag. A parameter's value may follow on its line. */
  #tag(window: Window): FrameEnd | "more" | undefined {
    const end = window.text.indexOf("\n", window.at)
    const shown = end < 0 ? window.rest : window.text.slice(window.at, end)
    const bad = this.#state === "name" ? fault.function : fault.parameter
    const close = shown.slice(0, tagChars).indexOf(">")
    if (close < 0) return end < 0 && shown.length < tagChars ? "more" : broken(bad, this.#start)
    const name = shown.slice(0, close)
    if (this.#state === "tag") return this.#parameterTag(window, name, close)
    if (end < 0) return shown.length < 2 * tagChars ? "more" : broken(bad, this.#start)
    const wrong = shown.slice(close + 1).trim() === "" ? checkName(name) : bad
    if (wrong !== undefined) return broken(wrong, this.#start)
    this.#name = name
    window.at = end + 1
    this.#state = "body"
    return undefined
  }

  #parameterTag(window: Window, name: string, close: number): FrameEnd | undefined {
    if (name.trim() === "" || /[<=]/.test(name)) return broken(fault.parameter, this.#start)
    if (this.#values.has(name)) return broken(fault.duplicate, this.#start)
    this.#parameter = name
    this.#lines = []
    this.#line = []
    window.at += close + 1
    this.#state = "value"
    return undefined
  }

  /** Takes a line of the value; the first is what stands behind the opening tag. */
  #value(window: Window): FrameEnd | "more" | undefined {
    const end = window.text.indexOf("\n", window.at)
    this.#line.push(window.text.slice(window.at, end < 0 ? window.text.length : end))
    window.at = end < 0 ? window.text.length : end + 1
    if (end < 0) return "more"
    const line = this.#line.join("")
    this.#line = []
    if (this.#lines.length === 0 && line.trim() !== "") return this.#oneLine(line)
    if (this.#lines.length > 0 && line === "</parameter>") {
      // Behind the opening tag and before the closing one there is one newline each that is not the value's.
      this.#keep(this.#lines.slice(1).join("\n"))
      return undefined
    }
    if (delimiterLine.test(line)) return broken(fault.ambiguous, this.#start)
    this.#lines.push(line)
    return undefined
  }

  #oneLine(line: string): FrameEnd | undefined {
    const text = line.trimEnd()
    const value = text.slice(0, -"</parameter>".length)
    if (!text.endsWith("</parameter>") || value.includes("parameter>") || value.includes("<parameter=")) {
      return broken(fault.parameter, this.#start)
    }
    this.#keep(value)
    return undefined
  }

  #keep(value: string): void {
    this.#values.set(this.#parameter, value)
    this.#state = "body"
  }

  #close(window: Window): FrameEnd | "more" | undefined {
    const seen = window.expect("</tool_call>")
    if (seen === "maybe" || (seen === "no" && window.endsWithin("</tool_call>"))) return "more"
    if (seen === "no") return broken(fault.trailing, this.#start)
    const schema: JsonObject = this.#options.tools.find((tool) => tool.name === this.#name)?.parameters ?? {}
    const args = Object.fromEntries(
      Array.from(this.#values, ([name, text]): [string, Json] => [
        name,
        decodeValue(text, declaredAs(name, schema), schema)
      ])
    )
    return { calls: [callBody(this.#name, args)] }
  }
}

type FaultCode = (typeof fault)[keyof typeof fault]["code"]
