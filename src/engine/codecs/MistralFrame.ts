/**
 * Reads what follows `[TOOL_CALLS]`: either one array of call objects, or a name, perhaps an id, and the arguments object.
 * Both forms are read whichever of them the prompt showed; models of one generation write only one.
 */
import * as Result from "effect/Result"
import type { JsonFault, JsonObject } from "../../tools/JsonText.ts"
import { isObject } from "../../tools/JsonText.ts"
import { broken, type Frame, type FrameEnd, openFrame } from "./Dialect.ts"
import { type CallBody, callBody, checkName, describeJsonFault, parsePayloadPrefix, readEnvelope } from "./Envelope.ts"
import { JsonSpan } from "./JsonSpan.ts"
import type { Window } from "./Window.ts"

/** Longest name with its id. */
const headChars = 256

const envelope = { key: "arguments", type: "function" } as const

const headShape = /^([^[\]{}]*)(?:\[CALL_ID\]([^[\]{}]*))?(?:\[ARGS\])?\s*$/

export class MistralFrame implements Frame {
  #state: "start" | "head" | "json" = "start"
  readonly #span = new JsonSpan()
  #start = 0
  /** Undefined for the array form. */
  #head: { readonly name: string; readonly id: string | undefined } | undefined

  read(window: Window): FrameEnd | undefined {
    if (this.#state === "start") {
      if (!window.skipSpace()) return this.#ended(window)
      this.#start = window.position
      this.#state = window.text[window.at] === "[" ? "json" : "head"
    }
    if (this.#state === "head") {
      const end = this.#readHead(window)
      if (end !== "json") return end
      this.#state = "json"
      this.#start = window.position
    }
    const stopped = this.#span.read(window)
    if (stopped === "more" && window.ending === undefined) return undefined
    const read = parsePayloadPrefix(this.#span.text, 0)
    if (Result.isFailure(read)) return this.#badJson(window, read.failure)
    const { value } = read.success
    if (this.#head === undefined) return this.#array(value as ReadonlyArray<JsonObject>)
    if (!isObject(value))
      return broken({ code: "arguments_not_object", what: "the arguments must be a JSON object" }, this.#start)
    return { calls: [callBody(this.#head.name, value, this.#head.id)] }
  }

  #readHead(window: Window): FrameEnd | undefined | "json" {
    const rest = window.text.slice(window.at, window.at + headChars)
    const brace = rest.indexOf("{")
    if (brace < 0) {
      if (rest.length >= headChars) return broken(badHead, this.#start)
      return this.#ended(window)
    }
    const found = headShape.exec(rest.slice(0, brace))
    if (found === null) return broken(badHead, this.#start)
    const name = found[1]!.trim()
    const wrong = /\s/.test(name) ? badHead : checkName(name)
    if (wrong !== undefined) return broken(wrong, this.#start)
    this.#head = { name, id: found[2]?.trim() }
    window.at += brace
    return "json"
  }

  #array(items: ReadonlyArray<JsonObject>): FrameEnd {
    const calls: Array<CallBody> = []
    if (items.length === 0) return broken({ code: "empty_call", what: "the list of calls is empty" }, this.#start)
    for (const item of items) {
      const call = readEnvelope(item, envelope)
      if (Result.isFailure(call)) return broken(call.failure, this.#start, calls)
      calls.push(call.success)
    }
    return { calls }
  }

  #badJson(window: Window, fault: JsonFault): FrameEnd {
    if (fault.incomplete === true && window.ending !== undefined) {
      return { calls: [], fault: openFrame(window.ending, window.position) }
    }
    return broken(describeJsonFault(fault), this.#start + fault.position)
  }

  #ended(window: Window): FrameEnd | undefined {
    return window.ending === undefined ? undefined : { calls: [], fault: openFrame(window.ending, window.position) }
  }
}

const badHead = {
  code: "wrong_envelope",
  what: "[TOOL_CALLS] must be followed by a tool's name and its arguments"
} as const
