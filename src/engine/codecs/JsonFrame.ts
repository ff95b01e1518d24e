/**
 * Reads one JSON call between two tags. The end of the payload is found by following strings and brackets, so a closing
 * tag inside a string is data; the payload as a whole then goes through strict JSON once.
 */
import * as Result from "effect/Result"
import type { JsonFault } from "../../tools/JsonText.ts"
import { broken, type Frame, type FrameEnd, openFrame } from "./Dialect.ts"
import { type CallBody, describeJsonFault, type EnvelopeOptions, parsePayloadPrefix, readEnvelope } from "./Envelope.ts"
import { JsonSpan } from "./JsonSpan.ts"
import type { Window } from "./Window.ts"

export interface JsonFrameOptions {
  readonly opener: string
  readonly closer: string
  readonly envelope: EnvelopeOptions
}

export class JsonFrame implements Frame {
  readonly #options: JsonFrameOptions
  #state: "before" | "object" | "after" = "before"
  #span = new JsonSpan()
  #start = 0
  #call: CallBody | undefined

  constructor(options: JsonFrameOptions) {
    this.#options = options
  }

  read(window: Window): FrameEnd | undefined {
    if (this.#state === "before") {
      const end = this.#before(window)
      if (end !== "object") return end
      this.#state = "object"
    }
    if (this.#state === "object") {
      const end = this.#object(window)
      if (end !== "after") return end
      this.#state = "after"
    }
    return this.#after(window)
  }

  #before(window: Window): FrameEnd | undefined | "object" {
    if (!window.skipSpace()) return this.#ended(window)
    const first = window.text[window.at]!
    this.#start = window.position
    if (first === "{") return "object"
    const closed = window.expect(this.#options.closer)
    if (closed === "maybe") return undefined
    if (closed === "yes") return broken({ code: "empty_call", what: "there is no call between the tags" }, this.#start)
    if (window.endsWithin(this.#options.closer)) return this.#ended(window)
    return broken(notAnObject(first), this.#start)
  }

  #object(window: Window): FrameEnd | undefined | "after" {
    const stopped = this.#span.read(window)
    if (stopped === "more" && window.ending === undefined) return undefined
    const read = Result.flatMap(parsePayloadPrefix(this.#span.text, 0), ({ value }) => Result.succeed(value))
    if (Result.isFailure(read)) return this.#badPayload(window, read.failure)
    const call = readEnvelope(read.success, this.#options.envelope)
    if (Result.isFailure(call)) return broken(call.failure, this.#start)
    this.#call = call.success
    return "after"
  }

  #badPayload(window: Window, fault: JsonFault): FrameEnd {
    if (fault.incomplete === true && window.ending !== undefined)
      return { calls: [], fault: openFrame(window.ending, window.position) }
    return broken(describeJsonFault(fault), this.#start + fault.position)
  }

  #after(window: Window): FrameEnd | undefined {
    if (!window.skipSpace()) return this.#ended(window)
    const at = window.position
    const { closer, opener } = this.#options
    const closed = window.expect(closer)
    if (closed === "yes") return { calls: [this.#call!] }
    const again = closed === "no" ? window.expect(opener) : closed
    if (again === "maybe") return undefined
    if (again === "yes") {
      return broken({ code: "missing_closer", what: `a second ${opener} came before ${closer}` }, at)
    }
    if (window.endsWithin(closer)) return this.#ended(window)
    return broken({ code: "trailing_characters", what: `only ${closer} may follow the JSON object of a call` }, at)
  }

  #ended(window: Window): FrameEnd | undefined {
    return window.ending === undefined ? undefined : { calls: [], fault: openFrame(window.ending, window.position) }
  }
}

const notAnObject = (first: string) => {
  if (first === "`") return { code: "invalid_json", what: "there is a code fence inside the call" } as const
  if (first === "<")
    return { code: "wrong_envelope", what: "there are tags where the JSON object of the call should be" } as const
  if (/[["\d\-tfn]/.test(first))
    return { code: "not_an_object", what: "the call must be exactly one JSON object" } as const
  return { code: "invalid_json", what: "the call does not start with a JSON object" } as const
}
