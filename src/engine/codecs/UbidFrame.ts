/** Reads one call `CALL([ID]) WITH {…}` from behind `CALL([`. It ends with its object: there is no closing mark. */
import * as Result from "effect/Result"
import { isObject } from "../../tools/JsonText.ts"
import type { ToolSpec } from "../../tools/ToolCall.ts"
import { broken, type Frame, type FrameEnd, openFrame } from "./Dialect.ts"
import { callBody, checkName, describeJsonFault, parsePayloadPrefix } from "./Envelope.ts"
import { JsonSpan } from "./JsonSpan.ts"
import type { Window } from "./Window.ts"

/** Longest head: id, bracket, `WITH`. */
const headChars = 160

export class UbidFrame implements Frame {
  readonly #tools: ReadonlyArray<ToolSpec>
  readonly #span = new JsonSpan()
  #name: string | undefined
  #start: number | undefined

  constructor(tools: ReadonlyArray<ToolSpec>) {
    this.#tools = tools
  }

  read(window: Window): FrameEnd | undefined {
    this.#start ??= window.position
    if (this.#name === undefined) {
      const end = this.#head(window)
      if (end !== "json") return end
      this.#start = window.position
    }
    const stopped = this.#span.read(window)
    if (stopped === "more" && window.ending === undefined) return undefined
    const read = parsePayloadPrefix(this.#span.text, 0)
    if (Result.isFailure(read)) {
      if (read.failure.incomplete === true && window.ending !== undefined) return ended(window)
      return broken(describeJsonFault(read.failure), this.#start + read.failure.position)
    }
    return isObject(read.success.value)
      ? { calls: [callBody(this.#name!, read.success.value)] }
      : broken({ code: "arguments_not_object", what: "WITH must be followed by a JSON object" }, this.#start)
  }

  #head(window: Window): FrameEnd | undefined | "json" {
    const rest = window.text.slice(window.at, window.at + headChars)
    const brace = rest.indexOf("{")
    if (brace < 0) {
      if (rest.length < headChars && !/\n.*\n/.test(rest)) return ended(window)
      return broken(badHead, this.#start!)
    }
    const found = /^\s*([^\]\s]+)\s*\]\)\s*WITH\s*$/.exec(rest.slice(0, brace))
    if (found === null) return broken(badHead, this.#start!)
    const id = found[1]!
    // A number that no tool has stays what it is, and the loop answers with the names there are.
    const name = /^\d{1,4}$/.test(id) ? (this.#tools[Number(id) - 1]?.name ?? id) : id
    const wrong = checkName(name)
    if (wrong !== undefined) return broken(wrong, this.#start!)
    this.#name = name
    window.at += brace
    return "json"
  }
}

const ended = (window: Window): FrameEnd | undefined =>
  window.ending === undefined ? undefined : { calls: [], fault: openFrame(window.ending, window.position) }

const badHead = {
  code: "wrong_envelope",
  what: "CALL([ must be followed by a tool's number, ]) WITH and a JSON object"
} as const
