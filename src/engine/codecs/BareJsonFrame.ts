/**
 * Reads calls that stand in the turn as plain JSON objects, without closing marks: what was begun runs to the end of the
 * turn. Where it cannot be a call after all (an answer may be JSON), it goes back to the prose.
 */
import * as Result from "effect/Result"
import { isObject, type Json, type JsonFault } from "../../tools/JsonText.ts"
import type { EndReason } from "../Generation.ts"
import { envelopeKeys, isResult } from "./BareCall.ts"
import type { ParserOptions } from "./Codec.ts"
import { readCut } from "./CutObject.ts"
import { broken, type Frame, type FrameEnd, forgedResult, forgedTurn, openFrame, type Stray } from "./Dialect.ts"
import {
  type CallBody,
  describeJsonFault,
  type EnvelopeFault,
  type EnvelopeOptions,
  parsePayloadPrefix,
  readEnvelope
} from "./Envelope.ts"
import { MarkerSearch, type MarkerTable, markerTable } from "./MarkerSearch.ts"
import type { Window } from "./Window.ts"

export interface BareJsonOptions {
  readonly envelope: EnvelopeOptions
  /** A marker that may stand before each object. After it, nothing but a call can follow. */
  readonly tag?: string
  /** Visible end-of-turn markers, dropped at the end. */
  readonly ends: ReadonlyArray<string>
  /** Markers that no answer may hold, as in the prose. */
  readonly strays: ReadonlyArray<Stray>
  /** The constant `type` of an answer of a tool, where those are plain JSON too. */
  readonly resultType?: string
  /** What may stand between two calls besides white space. */
  readonly separator?: string
  /** May the calls come as one array? */
  readonly arrays: boolean
}

/** Enough of the beginning to tell a call from other JSON. */
const headChars = 128

const firstKeys = [...envelopeKeys, "function"]

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

/** Where the payload and, without what ends the turn visibly, the text end. */
interface Extent {
  readonly text: string
  readonly payload: number
  readonly shown: number
  readonly ending: EndReason
}

export class BareJsonFrame implements Frame {
  readonly #options: BareJsonOptions
  readonly #names: ReadonlySet<string>
  readonly #opener: string
  readonly #start: number
  #text = ""
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
    this.#text += window.rest
    window.at = window.text.length
    return window.ending === undefined ? undefined : this.#finish(window.ending)
  }

  #finish(ending: EndReason): FrameEnd {
    const extent = this.#extent(this.#opener + this.#text, ending)
    const payload = extent.text.slice(0, extent.payload)
    const calls: Array<CallBody> = []
    let next = this.#skip(payload, this.#tagged ? this.#opener.length : 0, false)
    while (next.at < payload.length) {
      const { at } = next
      const marker = calls.length === 0 ? undefined : this.#markerAt(payload, at)
      if (marker !== undefined) return this.#fault(marker, at, calls)
      const read = parsePayloadPrefix(payload, at)
      if (Result.isFailure(read)) return this.#badJson(extent, at, read.failure, calls)
      const { value } = read.success
      const items = Array.isArray(value) && this.#options.arrays && value.length > 0 ? value : [value as Json]
      if (items.some((item) => isResult(item, this.#options.resultType))) return this.#fault(forgedResult, at, calls)
      if (!items.every((item) => this.#triesToCall(item, calls.length > 0))) return this.#notACall(extent, at, calls)
      for (const item of items) {
        const call = readEnvelope(item, this.#options.envelope)
        if (Result.isFailure(call)) return broken(call.failure, this.#start + at, calls)
        calls.push(call.success)
      }
      next = this.#skip(payload, read.success.end, true)
    }
    // Another call was announced; the limit came before it.
    const more = calls.length === 0 || (next.separated && ending === "length")
    if (calls.length > 0 && !more) return { calls }
    return this.#tagged || calls.length > 0
      ? { calls, fault: openFrame(ending, this.#start + payload.length) }
      : { calls, prose: extent.text.slice(0, extent.shown) }
  }

  #fault(what: EnvelopeFault, at: number, calls: ReadonlyArray<CallBody>): FrameEnd {
    return broken(what, this.#start + at, calls)
  }

  /** The payload ends before white space and a visible end-of-turn marker. */
  #extent(text: string, ending: EndReason): Extent {
    const trimmed = text.trimEnd()
    const marker = this.#options.ends.find((one) => trimmed.endsWith(one))
    if (marker === undefined) return { text, payload: trimmed.length, shown: text.length, ending }
    const shown = trimmed.length - marker.length
    return { text, payload: text.slice(0, shown).trimEnd().length, shown, ending }
  }

  /** Moves over white space, tags and, between calls, one separator. */
  #skip(text: string, from: number, between: boolean): { readonly at: number; readonly separated: boolean } {
    const { separator, tag } = this.#options
    let at = from
    let separated = false
    for (;;) {
      while (at < text.length && text[at]!.trim() === "") at += 1
      if (tag !== undefined && text.startsWith(tag, at)) {
        this.#tagged = true
        at += tag.length
      } else if (between && !separated && separator !== undefined && text.startsWith(separator, at)) {
        separated = true
        at += separator.length
      } else return { at, separated }
    }
  }

  /** Is this object meant as a call? A name alone is data unless it is a tool's. */
  #triesToCall(value: Json, after: boolean): boolean {
    if (this.#tagged) return true
    if (!isObject(value)) return false
    if (value["type"] === this.#options.envelope.type && Object.hasOwn(value, "name")) return true
    const brings = Object.hasOwn(value, "arguments") || Object.hasOwn(value, "parameters")
    if (!Object.hasOwn(value, "name")) return after && brings
    const name = value["name"]
    const known = typeof name === "string" && this.#names.has(name)
    const only = Object.keys(value).every((key) => firstKeys.includes(key))
    return known ? brings || only : brings && only
  }

  #badJson({ ending, ...extent }: Extent, at: number, fault: JsonFault, calls: ReadonlyArray<CallBody>): FrameEnd {
    const { text } = extent
    const cut = fault.incomplete === true
    const begun = this.#tagged ? "call" : this.#begun(text, at, cut && ending === "length")
    if (begun === "result") return this.#fault(forgedResult, at, calls)
    // Behind a call only a call can begin.
    const another = cut && calls.length > 0 && text[at] === "{"
    if (begun === undefined && !another) return this.#notACall({ ending, ...extent }, at, calls)
    if (cut) return { calls, fault: openFrame(ending, this.#start + text.length) }
    return broken(describeJsonFault(fault), this.#start + fault.position, calls)
  }

  /**
   * What an object that does not end was going to be: a call if it has the name of a tool or the constant type, or where it
   * breaks off, a beginning of one; or if it brings arguments and nothing a call has not.
   */
  #begun(text: string, at: number, limited: boolean): "call" | "result" | undefined {
    const brace = /^(?:\[\s*)?(?=\{)/.exec(text.slice(at, at + headChars))
    if (brace === null) return undefined
    const { open, openKey, whole } = readCut(text, at + brace[0].length)
    const { envelope, resultType } = this.#options
    const [name, type] = [whole.get("name"), whole.get("type")]
    if (resultType !== undefined && type === resultType) return "result"
    if ((typeof name === "string" && this.#names.has(name)) || type === envelope.type) return "call"
    const keys = [...whole.keys(), ...(open === undefined ? [] : [open.key])]
    if (keys.some((key) => !envelopeKeys.has(key))) return undefined
    if (keys.includes("arguments") || keys.includes("parameters")) return "call"
    // Its very first key counts like a marker: more than half of it is needed.
    if (openKey !== undefined && whole.size === 0) return limited && opens(openKey) ? "call" : undefined
    if (open?.text === undefined) return undefined
    const could = open.key === "name" ? [...this.#names] : open.key === "type" ? [envelope.type] : []
    return could.some((one) => one.startsWith(open.text!)) ? "call" : undefined
  }

  #notACall({ shown, text }: Extent, at: number, calls: ReadonlyArray<CallBody>): FrameEnd {
    if (calls.length > 0) return this.#fault({ code: "text_after_call", what: "nothing may follow a call" }, at, calls)
    const prose = text.slice(0, shown)
    const search = new MarkerSearch(forbidden(this.#options))
    return search.find(prose, 0) ? this.#fault(this.#markerAt(prose, search.at)!, search.at, calls) : { calls, prose }
  }

  /** What is wrong with the marker that stands at `at`, if one does. */
  #markerAt(text: string, at: number): EnvelopeFault | undefined {
    const stray = this.#options.strays.find((one) => text.startsWith(one.text, at))
    return stray ?? (this.#options.ends.some((one) => text.startsWith(one, at)) ? forgedTurn : undefined)
  }
}

/** Is this beginning of the first key more than half of what opens a call? */
const opens = (key: string): boolean =>
  ["name", "type"].some((one) => one.startsWith(key) && (key.length + 2) * 2 > one.length + 3)

/** Prepared once for each family. */
const tables = new WeakMap<BareJsonOptions, MarkerTable>()

const forbidden = (options: BareJsonOptions): MarkerTable => {
  const before = tables.get(options)
  if (before !== undefined) return before
  const table = markerTable([...options.strays.map((one) => one.text), ...options.ends])
  tables.set(options, table)
  return table
}
