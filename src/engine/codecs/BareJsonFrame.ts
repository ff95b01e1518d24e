/**
 * Reads calls that stand in the turn as plain JSON objects, without closing marks: what was begun runs to the end of the
 * turn. Where it cannot be a call after all (an answer may be JSON), it goes back to the prose.
 */
import * as Result from "effect/Result"
import { isObject, type Json, type JsonFault } from "../../tools/JsonText.ts"
import type { EndReason } from "../Generation.ts"
import type { ParserOptions } from "./Codec.ts"
import { broken, type Frame, type FrameEnd, openFrame } from "./Dialect.ts"
import { type CallBody, describeJsonFault, type EnvelopeOptions, parsePayloadPrefix, readEnvelope } from "./Envelope.ts"
import type { Window } from "./Window.ts"

export interface BareJsonOptions {
  readonly envelope: EnvelopeOptions
  /** A marker that may stand before each object. After it, nothing but a call can follow. */
  readonly tag?: string
  /** Visible end-of-turn markers, dropped at the end. */
  readonly ends: ReadonlyArray<string>
  /** What may stand between two calls besides white space. */
  readonly separator?: string
  /** May the calls come as one array? */
  readonly arrays: boolean
}

/** Enough of the beginning to tell a call from other JSON. */
const headChars = 128

const firstKeys = ["name", "type", "id", "arguments", "parameters", "function"]

/** Could a text with this beginning be a call? */
const couldBeCall = (head: string): "yes" | "maybe" | "no" => {
  const tight = head.replace(/\s+/g, "").replace(/^\s*\[/, "")
  for (const key of firstKeys) {
    const start = `{"${key}":`
    if (tight.startsWith(start)) return "yes"
    if (start.startsWith(tight)) return "maybe"
  }
  return "no"
}

export class BareJsonFrame implements Frame {
  readonly #options: BareJsonOptions
  readonly #names: ReadonlySet<string>
  readonly #opener: string
  readonly #start: number
  readonly #parts: Array<string> = []
  #tagged: boolean
  #decided: boolean

  /** `opener`: the text that began the frame, and where it stands in the turn. */
  constructor(options: BareJsonOptions, parser: ParserOptions, opener: string, start: number) {
    this.#options = options
    this.#names = new Set(parser.tools.map((tool) => tool.name))
    this.#opener = opener
    this.#start = start
    this.#tagged = opener === options.tag
    this.#decided = this.#tagged
  }

  read(window: Window): FrameEnd | undefined {
    if (!this.#decided) {
      const head = (this.#opener + window.text.slice(window.at, window.at + headChars)).trimStart()
      const could = couldBeCall(head)
      if (could === "no" || (could === "maybe" && head.length >= headChars)) return { calls: [], prose: this.#opener }
      if (could === "maybe" && window.ending === undefined) return undefined
      this.#decided = true
    }
    this.#parts.push(window.rest)
    window.at = window.text.length
    return window.ending === undefined ? undefined : this.#finish(window.ending)
  }

  #finish(ending: EndReason): FrameEnd {
    const text = this.#opener + this.#parts.join("")
    const end = this.#withoutEnds(text)
    const payload = text.slice(0, end)
    const calls: Array<CallBody> = []
    let at = this.#skip(text, this.#tagged ? this.#opener.length : 0, end, false)
    while (at < end) {
      const read = parsePayloadPrefix(payload, at)
      if (Result.isFailure(read)) return this.#badJson(text, at, read.failure, calls, ending)
      const { end: next, value } = read.success
      const items = Array.isArray(value) && this.#options.arrays && value.length > 0 ? value : [value as Json]
      if (!items.every((item) => this.#triesToCall(item, calls.length > 0))) return this.#notACall(text, at, calls)
      for (const item of items) {
        const call = readEnvelope(item, this.#options.envelope)
        if (Result.isFailure(call)) return broken(call.failure, this.#start + at, calls)
        calls.push(call.success)
      }
      at = this.#skip(text, next, end, true)
    }
    if (calls.length > 0) return { calls }
    return this.#tagged ? { calls, fault: openFrame(ending, this.#start + end) } : { calls, prose: text }
  }

  /** Where the payload ends: before white space and visible end-of-turn markers. */
  #withoutEnds(text: string): number {
    const trimmed = text.trimEnd()
    const marker = this.#options.ends.find((one) => trimmed.endsWith(one))
    return marker === undefined ? trimmed.length : trimmed.slice(0, -marker.length).trimEnd().length
  }

  /** Moves over white space, tags and, between calls, one separator. */
  #skip(text: string, from: number, end: number, between: boolean): number {
    const { separator, tag } = this.#options
    let at = from
    let separated = !between
    for (;;) {
      while (at < end && text[at]!.trim() === "") at += 1
      if (tag !== undefined && text.startsWith(tag, at)) {
        this.#tagged = true
        at += tag.length
      } else if (!separated && separator !== undefined && text.startsWith(separator, at)) {
        separated = true
        at += separator.length
      } else return at
    }
  }

  /** Is this object meant as a call? A name alone is data unless it is a tool's. */
  #triesToCall(value: Json, after: boolean): boolean {
    if (this.#tagged) return true
    if (!isObject(value)) return false
    if (value["type"] === this.#options.envelope.type && Object.hasOwn(value, "name")) return true
    if (!Object.hasOwn(value, "name"))
      return after && (Object.hasOwn(value, "arguments") || Object.hasOwn(value, "parameters"))
    const name = value["name"]
    const known = typeof name === "string" && this.#names.has(name)
    const brings = Object.hasOwn(value, "arguments") || Object.hasOwn(value, "parameters")
    const only = Object.keys(value).every((key) => firstKeys.includes(key))
    return known ? brings || only : brings && only
  }

  #badJson(text: string, at: number, fault: JsonFault, calls: ReadonlyArray<CallBody>, ending: EndReason): FrameEnd {
    const meant = this.#tagged || this.#beginsCall(text.slice(at, at + 400))
    if (!meant) return this.#notACall(text, at, calls)
    if (fault.incomplete === true) return { calls, fault: openFrame(ending, this.#start + text.length) }
    return broken(describeJsonFault(fault), this.#start + fault.position, calls)
  }

  #beginsCall(head: string): boolean {
    const found = /^\[?\s*\{\s*"(name|type)"\s*:\s*"([^"\\]{1,64})"/.exec(head)
    if (found === null) return false
    if (/^[^:]*:\s*"[^"]*"\s*,\s*"(?:arguments|parameters)"\s*:/.test(head)) return true
    return found[1] === "name" ? this.#names.has(found[2]!) : found[2] === this.#options.envelope.type
  }

  #notACall(text: string, at: number, calls: ReadonlyArray<CallBody>): FrameEnd {
    if (calls.length === 0) return { calls: [], prose: text }
    return { calls, fault: { code: "text_after_call", what: "nothing may follow a call", at: this.#start + at } }
  }
}
