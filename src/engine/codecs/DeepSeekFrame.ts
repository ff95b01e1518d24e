/**
 * Reads a section of calls between `<｜tool▁calls▁begin｜>` and `<｜tool▁calls▁end｜>`. In V3 each call is a type, a name and
 * its arguments in a code fence; in V3.1 it is a name and the arguments as they are.
 */
import * as Result from "effect/Result"
import { isObject, type JsonFault, type JsonObject } from "../../tools/JsonText.ts"
import { broken, type Frame, type FrameEnd, openFrame } from "./Dialect.ts"
import {
  type CallBody,
  callBody,
  checkName,
  describeJsonFault,
  type EnvelopeFault,
  parsePayloadPrefix
} from "./Envelope.ts"
import { JsonSpan } from "./JsonSpan.ts"
import type { Window } from "./Window.ts"

const callBegin = "<｜tool▁call▁begin｜>"
const callEnd = "<｜tool▁call▁end｜>"
const callsEnd = "<｜tool▁calls▁end｜>"
const separator = "<｜tool▁sep｜>"

/** Longest head of a call: type, separator, name, fence. */
const headChars = 256

const fault = {
  empty: { code: "empty_call", what: "the section of calls is empty" },
  head: { code: "wrong_envelope", what: "a call must begin with its name in the form shown" },
  fence: { code: "wrong_envelope", what: "the code fence of the arguments is not closed" },
  between: { code: "wrong_envelope", what: `only ${callBegin} or ${callsEnd} may follow a call` },
  unclosed: { code: "missing_closer", what: `${callEnd} must follow the arguments of a call` },
  object: { code: "arguments_not_object", what: "the arguments must be a JSON object" }
} as const

type State = "between" | "head" | "json" | "fence" | "close"

export class DeepSeekFrame implements Frame {
  readonly #fenced: boolean
  readonly #calls: Array<CallBody> = []
  #state: State = "between"
  #start = 0
  #name = ""
  #arguments: JsonObject = {}
  #span = new JsonSpan()

  constructor(fenced: boolean) {
    this.#fenced = fenced
  }

  read(window: Window): FrameEnd | undefined {
    for (;;) {
      const end = this.#step(window)
      if (end === "more") {
        if (window.ending === undefined) return undefined
        return { calls: this.#calls, fault: openFrame(window.ending, window.position) }
      }
      if (end !== undefined) return end
    }
  }

  #fail(what: EnvelopeFault, at: number): FrameEnd {
    return broken(what, at, this.#calls)
  }

  #step(window: Window): FrameEnd | "more" | undefined {
    if (this.#state === "head") return this.#head(window)
    if (this.#state === "json") return this.#json(window)
    if (!window.skipSpace()) return "more"
    this.#start = window.position
    if (this.#state === "fence") return this.#token(window, "```", "close", fault.fence)
    if (this.#state === "close") return this.#close(window)
    const seen = window.expect(callsEnd)
    if (seen === "yes") return this.#calls.length === 0 ? this.#fail(fault.empty, this.#start) : { calls: this.#calls }
    // Both marks begin alike: what is not a beginning of one may be one of the other.
    if (seen === "maybe" || window.endsWithin(callsEnd)) return "more"
    return this.#token(window, callBegin, "head", fault.between)
  }

  #token(window: Window, token: string, next: State, otherwise: EnvelopeFault): FrameEnd | "more" | undefined {
    const seen = window.expect(token)
    if (seen === "maybe" || (seen === "no" && window.endsWithin(token))) return "more"
    if (seen === "no") return this.#fail(otherwise, this.#start)
    this.#state = next
    return undefined
  }

  #close(window: Window): FrameEnd | "more" | undefined {
    const end = this.#token(window, callEnd, "between", fault.unclosed)
    if (end === undefined) this.#calls.push(callBody(this.#name, this.#arguments))
    return end
  }

  #head(window: Window): FrameEnd | "more" | undefined {
    const rest = window.text.slice(window.at, window.at + headChars)
    const shape = this.#fenced ? /^\s*function<｜tool▁sep｜>([^\n{]*)\n\s*```json\s/ : /^\s*([^\n{]*?)<｜tool▁sep｜>/
    const found = shape.exec(rest)
    if (found === null) {
      const hopeless = rest.length >= headChars || rest.includes(callEnd) || rest.includes("{")
      return hopeless ? this.#fail(fault.head, window.position) : "more"
    }
    const name = found[1]!.trim()
    // What ends a head that cannot be one ends it also where more of the text is there already.
    const wrong = name.includes(separator) || name.includes(callEnd) ? fault.head : checkName(name)
    if (wrong !== undefined) return this.#fail(wrong, window.position)
    this.#name = name
    window.at += found[0].length
    this.#span = new JsonSpan()
    this.#start = window.position
    this.#state = "json"
    return undefined
  }

  #json(window: Window): FrameEnd | "more" | undefined {
    const stopped = this.#span.read(window)
    if (stopped === "more" && window.ending === undefined) return "more"
    const read = parsePayloadPrefix(this.#span.text, 0)
    if (Result.isFailure(read)) return this.#badJson(window, read.failure)
    const { end, value } = read.success
    // Scalars end before brackets do: whatever is no object stops here.
    if (!isObject(value)) return this.#fail(fault.object, this.#start)
    if (end < this.#span.text.length) return this.#fail(fault.unclosed, this.#start + end)
    this.#arguments = value
    this.#state = this.#fenced ? "fence" : "close"
    return undefined
  }

  #badJson(window: Window, problem: JsonFault): FrameEnd {
    if (problem.incomplete === true && window.ending !== undefined) {
      return { calls: this.#calls, fault: openFrame(window.ending, window.position) }
    }
    return this.#fail(describeJsonFault(problem), this.#start + problem.position)
  }
}
