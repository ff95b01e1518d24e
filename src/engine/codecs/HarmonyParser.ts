/**
 * Parses a turn of gpt-oss, which is a list of messages: reasoning on the channel `analysis`, prose for the reader on
 * `commentary` and `final`, and calls as messages to `functions.NAME` whose whole body is the arguments object.
 *
 * ```text
 *   header --<|message|>--> body --<|end|> | <|call|> | <|return|>--> between --<|start|>--> header
 * ```
 *
 * The end of a call is an end-of-turn token and so never part of the text: a call that the end of the turn closes is whole.
 */
import * as Result from "effect/Result"
import { isObject } from "../../tools/JsonText.ts"
import type { ProposedCall } from "../../tools/ToolCall.ts"
import type { EndReason } from "../Generation.ts"
import { findBare } from "./BareCall.ts"
import type { Action, ParserOptions, TurnParser, Visible } from "./Codec.ts"
import { CodeFence } from "./CodeFence.ts"
import { openFrame } from "./Dialect.ts"
import { checkName, describeJsonFault, parsePayload } from "./Envelope.ts"
import { type Fault, first, malformed, TurnPieces } from "./Fault.ts"
import { type HarmonyHeader, readHeader } from "./HarmonyHeader.ts"
import { markerTable, undecided } from "./MarkerSearch.ts"
import { trimReasoning } from "./Thinking.ts"
import { Window } from "./Window.ts"

const form =
  'write a call as <|channel|>commentary to=functions.TOOL <|constrain|>json<|message|>{"KEY": VALUE}<|call|>'

/** Longest header. */
const headerChars = 512

const bodyEnds = markerTable(["<|end|>", "<|call|>", "<|return|>", "<|start|>", "<|channel|>", "<|message|>"])
const bodyEnd = /<\|(?:end|call|return|start|channel|message)\|>/g

/** What ends a header, rightly or not. */
const headerEnd = /<\|(?:message|end|call|return|start)\|>/

/** What begins a message, and so what a call may begin with. */
const begins = ["<|start|>", "<|channel|>", "<|message|>"]

type Kind = "reasoning" | "text" | "call"

/** The text of one message for the reader: where it starts in the turn, and how many calls came before it. */
interface Prose {
  readonly start: number
  readonly calls: number
  text: string
}

export class HarmonyParser implements TurnParser {
  readonly #options: ParserOptions
  readonly #window = new Window()
  readonly #turn = new TurnPieces()
  readonly #reasoning: Array<string> = []
  readonly #prose: Array<Prose> = []
  /** Of the message that is read. */
  #fence = new CodeFence()
  readonly #calls: Array<ProposedCall> = []
  #visible: Array<Visible> = []
  #state: "first" | "header" | "body" | "between" = "first"
  #kind: Kind = "text"
  #name = ""
  #body: Array<string> = []
  #bodyStart = 0
  #fault: Fault | undefined
  /** The turn is an answer without markup: then no message may follow. */
  #plain = false

  constructor(options: ParserOptions) {
    this.#options = options
  }

  push(text: string): ReadonlyArray<Visible> {
    this.#turn.add(text, this.#fault)
    if (this.#fault !== undefined) return this.#shown()
    this.#window.push(text)
    this.#scan()
    return this.#shown()
  }

  end(reason: EndReason): { readonly visible: ReadonlyArray<Visible>; readonly action: Action } {
    this.#window.ending = reason
    this.#scan()
    if (this.#fault === undefined) this.#finish(reason)
    return { action: this.#action(), visible: this.#shown() }
  }

  #shown(): ReadonlyArray<Visible> {
    const shown = this.#visible
    this.#visible = []
    return shown
  }

  #scan(): void {
    while (this.#fault === undefined && this.#step()) {}
    if (this.#fault !== undefined) this.#window.at = this.#window.text.length
  }

  /** One decision; false when more text is needed. */
  #step(): boolean {
    if (this.#state === "first") return this.#first()
    if (this.#state === "header") return this.#header(false)
    if (this.#state === "body") return this.#readBody()
    return this.#between()
  }

  #fail(code: Fault["code"], what: string, at: number, aboutCall = false): false {
    this.#fault = { code, what, at, ...(aboutCall ? { ordinal: this.#calls.length } : {}) }
    return false
  }

  /** A turn begins inside a header; one that begins with neither header nor marker is an answer without markup. */
  #first(): boolean {
    const window = this.#window
    const rest = window.rest
    const start = rest.trimStart()
    if (start === "" && window.ending === undefined && rest.length < headerChars) return false
    if (start.startsWith("<|start|>")) {
      window.at += rest.length - start.length + "<|start|>".length
      this.#state = "header"
      return true
    }
    const starts = [...begins, "to="]
    if (starts.slice(1).some((one) => start.startsWith(one))) return this.#header(true)
    if (window.ending === undefined && start !== "" && starts.some((one) => one.startsWith(start))) return false
    if (this.#cutMarker(start)) return false
    this.#open("text")
    this.#plain = true
    return true
  }

  /** At the output limit, more than half of what begins a message is a call that began, not prose. */
  #cutMarker(tail: string): boolean {
    const window = this.#window
    if (window.ending !== "length" || this.#options.tools.length === 0) return false
    if (!begins.some((one) => one.length > tail.length && one.startsWith(tail) && tail.length * 2 > one.length))
      return false
    const at = window.base + window.text.length - tail.length
    return !this.#fail("truncated", openFrame("length", at).what, at, true)
  }

  #header(first: boolean): boolean {
    const window = this.#window
    const at = window.position
    const found = headerEnd.exec(window.text.slice(window.at, window.at + headerChars))
    if (found === null) {
      const more = window.ending === undefined && window.text.length - window.at < headerChars
      if (more) return false
      if (window.ending === "length") return this.#fail("truncated", openFrame("length", at).what, at)
    }
    if (found?.[0] !== "<|message|>")
      return this.#fail("wrong_envelope", "a message has no <|message|> after its header", at)
    const header = readHeader(window.text.slice(window.at, window.at + found.index), first)
    if (header === undefined) return this.#fail("wrong_envelope", "the header of a message cannot be read", at)
    window.at += found.index + found[0].length
    return this.#meet(header, at)
  }

  #meet(header: HarmonyHeader, at: number): boolean {
    const { channel, recipient, role } = header
    if (role !== "assistant") {
      return role.includes(".") || recipient === "assistant"
        ? this.#fail(
            "forged_tool_response",
            "only the runtime writes what a tool answers, so end your turn after the call",
            at
          )
        : this.#fail("forged_turn", "a turn must not write another speaker's turn", at)
    }
    const calls = recipient !== undefined && recipient !== "assistant" && recipient !== "user" && recipient !== "all"
    if (!calls || this.#options.tools.length === 0) {
      this.#open(channel === "analysis" ? "reasoning" : "text")
      return true
    }
    const name = recipient.startsWith("functions.") ? recipient.slice("functions.".length) : recipient
    const wrong = checkName(name)
    if (wrong !== undefined) return this.#fail(wrong.code, wrong.what, at, true)
    this.#open("call")
    this.#name = name
    return true
  }

  #open(kind: Kind): void {
    this.#kind = kind
    this.#body = []
    this.#bodyStart = this.#window.position
    this.#state = "body"
    this.#fence = new CodeFence()
    if (kind === "text") this.#prose.push({ start: this.#bodyStart, calls: this.#calls.length, text: "" })
  }

  #readBody(): boolean {
    const window = this.#window
    bodyEnd.lastIndex = window.at
    const found = bodyEnd.exec(window.text)
    if (found === null) {
      const held = undecided(bodyEnds, window.text, window.at)
      const cut = held > 0 && this.#kind === "text" && this.#cutMarker(window.text.slice(-held))
      this.#give(window.text.length - (cut || window.ending === undefined ? held : 0))
      return false
    }
    this.#give(found.index)
    const at = window.position
    window.at += found[0].length
    if (this.#fence.inside && begins.includes(found[0]) && this.#options.tools.length > 0) {
      return this.#fail("call_in_code_block", "a message inside a code block is not run", at, true)
    }
    if (this.#plain && found[0] !== "<|end|>" && found[0] !== "<|return|>") {
      return this.#fail("wrong_envelope", "a message has no header", 0)
    }
    if (found[0] === "<|channel|>" || found[0] === "<|message|>") {
      return this.#fail("wrong_envelope", `${found[0]} stands inside a message`, at)
    }
    if (!this.#close()) return false
    this.#state = found[0] === "<|start|>" ? "header" : "between"
    return true
  }

  /** Decides the body up to `end`. */
  #give(end: number): void {
    const window = this.#window
    if (end <= window.at) return
    const text = window.text.slice(window.at, end)
    window.at = end
    if (this.#kind === "call") this.#body.push(text)
    else {
      if (this.#kind === "reasoning") this.#reasoning.push(text)
      else {
        this.#prose[this.#prose.length - 1]!.text += text
        this.#fence.take(text)
      }
      this.#visible.push({ _tag: this.#kind === "reasoning" ? "Reasoning" : "Text", text })
    }
  }

  /** Ends a message; false when its call is broken. */
  #close(): boolean {
    if (this.#kind === "reasoning") this.#reasoning.push("\n")
    if (this.#kind !== "call") return true
    const text = this.#body.join("")
    const read = parsePayload(text)
    if (Result.isFailure(read)) {
      const { code, what } = describeJsonFault(read.failure)
      return this.#fail(text.trim() === "" ? "empty_call" : code, what, this.#bodyStart + read.failure.position, true)
    }
    if (!isObject(read.success)) {
      return this.#fail("arguments_not_object", "the body of a call must be a JSON object", this.#bodyStart, true)
    }
    this.#calls.push({ ordinal: this.#calls.length, name: this.#name, arguments: read.success })
    return true
  }

  #between(): boolean {
    const window = this.#window
    if (!window.skipSpace()) return false
    const at = window.position
    const seen = window.expect("<|start|>")
    if (seen === "maybe" || (seen === "no" && this.#cutMarker(window.rest))) return false
    if (seen === "no") return this.#fail("wrong_envelope", "a message does not begin with <|start|>", at)
    if (this.#plain) return this.#fail("wrong_envelope", "a message has no header", 0)
    this.#state = "header"
    return true
  }

  /** What the end of the turn means for the message that is open. */
  #finish(reason: EndReason): void {
    if (this.#state !== "body") return
    if (this.#kind === "reasoning" && this.#calls.length === 0 && this.#text(false).trim() === "") {
      if (reason === "length")
        this.#fail(
          "truncated",
          "the output limit cut the turn inside the reasoning, so think less before you act",
          this.#bodyStart
        )
      else
        this.#fail(
          "unclosed_reasoning",
          "the turn ended on the channel analysis without an answer or a call",
          this.#bodyStart
        )
    } else if (this.#kind === "call" && reason === "length") {
      this.#fault = { ...openFrame("length", this.#window.position), ordinal: this.#calls.length }
    } else this.#close()
  }

  /** What stands before the first call, or what stands after it. */
  #text(after: boolean): string {
    return this.#prose
      .filter(({ calls }) => calls > 0 === after)
      .map(({ text }) => text)
      .join("")
  }

  /** A call in a message for the reader, where no call can stand. */
  #bare(): Fault | undefined {
    const tools = new Set(this.#options.tools.map((tool) => tool.name))
    if (tools.size === 0) return undefined
    for (const { calls, start, text } of this.#prose) {
      const found = findBare(text, { tools })
      if (found === undefined) continue
      const what = "the call is not a message to functions.TOOL"
      return { code: "wrong_envelope", what, at: start + found.at, ordinal: calls }
    }
    return undefined
  }

  #action(): Action {
    const reasoning = trimReasoning(this.#reasoning.join(""))
    const reasoned = reasoning === "" ? {} : { reasoning }
    const textBefore = this.#text(false)
    const empty = this.#calls.length === 0 && textBefore.trim() === ""
    const fault: Fault | undefined =
      first([this.#fault, this.#bare()]) ??
      (empty ? { code: "empty_turn", what: "the turn has neither an answer nor a call", at: 0 } : undefined)
    if (fault !== undefined) return malformed(fault, form, this.#turn.text, this.#calls, reasoning)
    if (this.#calls.length === 0) return { _tag: "FinalText", text: textBefore, ...reasoned }
    return { _tag: "ToolCalls", calls: this.#calls, textBefore, textAfter: this.#text(true), ...reasoned }
  }
}
