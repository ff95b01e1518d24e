/**
 * A bounded reader over a GGUF header: every length is checked against the file before it is believed, and large arrays
 * are stepped over without being kept. Knows the encoding, not what a model needs.
 */
import * as Crypto from "node:crypto"
import * as Fs from "node:fs"

/** The file is not what its header claims; the message completes the sentence "the file cannot be used: …". */
export class Damaged extends Error {}

/** A metadata value. Arrays are places in the file, not contents. */
export type GgufValue =
  | { readonly kind: "number"; readonly number: number }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "array"; readonly type: number; readonly length: number; readonly at: number }

/** Bytes of the fixed-size value types, by type number; 0: not fixed. */
const widths = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8]
const typeString = 8
const typeArray = 9
const maxText = 16 << 20
const windowBytes = 256 << 10

export class GgufReader {
  readonly size: number
  position = 0
  readonly #fd: number
  #window: Buffer = Buffer.alloc(0)
  #start = 0

  constructor(fd: number, size: number) {
    this.#fd = fd
    this.size = size
  }

  magic(): string {
    const at = this.#take(4, "the magic")
    return this.#window.toString("latin1", at, at + 4)
  }

  u32(): number {
    return this.#window.readUInt32LE(this.#take(4, "a number"))
  }

  u64(): number {
    const at = this.#take(8, "a number")
    const value = this.#window.readUInt32LE(at + 4) * 2 ** 32 + this.#window.readUInt32LE(at)
    if (!Number.isSafeInteger(value)) throw new Damaged("its header holds an absurd number")
    return value
  }

  /** A count that must not exceed `max`. */
  count(max: number, what: string): number {
    const value = this.u64()
    if (value > max) throw new Damaged(`it claims ${value} ${what}`)
    return value
  }

  text(max: number, what: string): string {
    const length = this.u64()
    if (length > max) throw new Damaged(`${what} claims ${length} bytes`)
    const at = this.#take(length, what)
    return this.#window.toString("utf8", at, at + length)
  }

  /** The value of metadata entry `key`; arrays are stepped over. */
  value(type: number, key: string): GgufValue {
    if (type === typeString) return { kind: "text", text: this.text(maxText, `metadata entry ${key}`) }
    if (type === typeArray) return this.#array(key)
    return { kind: "number", number: this.#number(type, key) }
  }

  /** Element `index` of an array of texts, or `undefined` where there is none. Does not move the reader. */
  arrayText(array: GgufValue & { readonly kind: "array" }, index: number): string | undefined {
    if (array.type !== typeString || index >= array.length) return undefined
    const back = this.position
    this.position = array.at
    for (let i = 0; i < index; i++) this.#skip(this.u64(), "a text")
    const found = this.text(maxText, "a token")
    this.position = back
    return found
  }

  /** SHA-256, in hex, of the file's first `length` bytes. */
  hash(length: number): string {
    const hash = Crypto.createHash("sha256")
    const buffer = Buffer.alloc(Math.min(length, 1 << 20))
    for (let at = 0; at < length; ) {
      const got = Fs.readSync(this.#fd, buffer, 0, Math.min(buffer.length, length - at), at)
      if (got === 0) throw new Damaged("it became shorter while it was read")
      hash.update(buffer.subarray(0, got))
      at += got
    }
    return hash.digest("hex")
  }

  #number(type: number, key: string): number {
    const width = widths[type] ?? 0
    if (width === 0) throw new Damaged(`metadata entry ${key} has the unknown type ${type}`)
    const at = this.#take(width, `metadata entry ${key}`)
    const window = this.#window
    switch (type) {
      case 1:
        return window.readInt8(at)
      case 2:
        return window.readUInt16LE(at)
      case 3:
        return window.readInt16LE(at)
      case 4:
        return window.readUInt32LE(at)
      case 5:
        return window.readInt32LE(at)
      case 6:
        return window.readFloatLE(at)
      case 10:
        return Number(window.readBigUInt64LE(at))
      case 11:
        return Number(window.readBigInt64LE(at))
      case 12:
        return window.readDoubleLE(at)
      default:
        return window.readUInt8(at)
    }
  }

  #array(key: string): GgufValue {
    const type = this.u32()
    const length = this.u64()
    const at = this.position
    if (type === typeString) {
      // each text needs at least its eight length bytes, which bounds the loop by the file's size
      if (length * 8 > this.size - at) throw new Damaged(`metadata entry ${key} claims ${length} texts`)
      for (let i = 0; i < length; i++) this.#skip(this.u64(), `metadata entry ${key}`)
    } else {
      const width = widths[type] ?? 0
      if (width === 0) throw new Damaged(`metadata entry ${key} is an array of the unknown type ${type}`)
      this.#skip(length * width, `metadata entry ${key}`)
    }
    return { kind: "array", type, length, at }
  }

  #skip(bytes: number, what: string): void {
    if (bytes > this.size - this.position) throw new Damaged(`its header ends inside ${what}`)
    this.position += bytes
  }

  /** Makes `bytes` bytes available in the window, moves past them, and returns where they are. */
  #take(bytes: number, what: string): number {
    const at = this.position
    this.#skip(bytes, what)
    if (at < this.#start || at + bytes > this.#start + this.#window.length) this.#load(at, bytes)
    return at - this.#start
  }

  #load(at: number, bytes: number): void {
    const window = Buffer.alloc(Math.min(Math.max(bytes, windowBytes), this.size - at))
    let filled = 0
    while (filled < window.length) {
      const got = Fs.readSync(this.#fd, window, filled, window.length - filled, at + filled)
      if (got === 0) throw new Damaged("it became shorter while it was read")
      filled += got
    }
    this.#window = window
    this.#start = at
  }
}
