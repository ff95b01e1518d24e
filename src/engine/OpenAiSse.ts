/**
 * Server-sent events as bytes arrive: lines may end in any of three ways and be cut anywhere. What is longer than it may be,
 * or no UTF-8, is refused by name. Knows nothing of what the events mean.
 */

/** Why bytes are no events. */
export class SseFault {
  readonly _tag = "SseFault"
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

export interface SseEvent {
  /** The kind the server gave it; `message` where it gave none. */
  readonly event: string
  readonly data: string
}

/** Characters one event may have. */
const mostEventChars = 4 * 1024 * 1024

export class SseReader {
  readonly #decoder = new TextDecoder("utf-8", { fatal: true })
  readonly #most: number
  /** What of the present line has come, in parts. */
  #line: Array<string> = []
  #lineChars = 0
  #data: Array<string> | undefined
  #dataChars = 0
  #event = ""
  /** A carriage return ended the last line; a line feed right after it belongs to it. */
  #returned = false

  /** Something that is more than a sign of life has come. */
  #begun = false

  constructor(most: number = mostEventChars) {
    this.#most = most
  }

  get begun(): boolean {
    return this.#begun
  }

  /** The events that are whole with these bytes. Throws a `SseFault`. */
  push(bytes: Uint8Array): ReadonlyArray<SseEvent> {
    return this.#read(this.#decode(bytes, true))
  }

  /** The stream is over. An event that no empty line ended is given all the same: servers that close do leave it out. */
  end(): ReadonlyArray<SseEvent> {
    const out = [...this.#read(this.#decode(new Uint8Array(), false))]
    if (this.#lineChars > 0) this.#takeLine(this.#line.join(""), out)
    this.#line = []
    this.#lineChars = 0
    this.#dispatch(out)
    return out
  }

  #decode(bytes: Uint8Array, more: boolean): string {
    try {
      return this.#decoder.decode(bytes, { stream: more })
    } catch {
      throw new SseFault("what it sends is not UTF-8")
    }
  }

  #read(text: string): ReadonlyArray<SseEvent> {
    const out: Array<SseEvent> = []
    let from = 0
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at)
      if (unit !== 0x0a && unit !== 0x0d) {
        this.#returned = false
        continue
      }
      if (unit === 0x0a && this.#returned) {
        this.#returned = false
        from = at + 1
        continue
      }
      this.#returned = unit === 0x0d
      this.#hold(text.slice(from, at))
      this.#takeLine(this.#line.join(""), out)
      this.#line = []
      this.#lineChars = 0
      from = at + 1
    }
    this.#hold(text.slice(from))
    return out
  }

  #hold(text: string): void {
    if (text === "") return
    this.#lineChars += text.length
    if (this.#lineChars + this.#dataChars > this.#most) throw new SseFault("one of its events is too long")
    this.#line.push(text)
  }

  #takeLine(line: string, out: Array<SseEvent>): void {
    if (line === "") {
      this.#dispatch(out)
      return
    }
    const colon = line.indexOf(":")
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1)
    if (name === "event") this.#event = value
    // Some servers put a failure into a field of its own.
    else if (name === "error") {
      this.#event = "error"
      this.#keep(value)
    } else if (name === "data") this.#keep(value)
  }

  #keep(value: string): void {
    this.#data ??= []
    this.#data.push(value)
    this.#dataChars += value.length + 1
  }

  #dispatch(out: Array<SseEvent>): void {
    if (this.#data !== undefined) {
      this.#begun = true
      out.push({ event: this.#event === "" ? "message" : this.#event, data: this.#data.join("\n") })
    }
    this.#data = undefined
    this.#dataChars = 0
    this.#event = ""
  }
}
