/**
 * Bytes to text: a byte order mark outweighs the header, the header outweighs what the document says about itself, as in
 * the Encoding and HTML standards. Nothing said: UTF-8 if it is that, else windows-1252, as browsers do.
 */
import type { TextForm } from "./MediaType.ts"

/** Bytes in which a document may declare its own encoding. */
const prescan = 1024

const marks: ReadonlyArray<readonly [bytes: ReadonlyArray<number>, label: string]> = [
  [[0xef, 0xbb, 0xbf], "utf-8"],
  [[0xfe, 0xff], "utf-16be"],
  [[0xff, 0xfe], "utf-16le"]
]

const decoderOf = (label: string | undefined) => {
  if (label === undefined) return undefined
  try {
    return new TextDecoder(label)
  } catch {
    // A label nobody knows says nothing.
    return undefined
  }
}

/** What the document says itself: an XML declaration, or a `meta` element. */
const declaredInside = (bytes: Uint8Array, form: TextForm): string | undefined => {
  if (form === "text") return undefined
  const head = Buffer.from(bytes.subarray(0, prescan)).toString("latin1")
  const xml = /^\s*<\?xml[^>]*?\bencoding\s*=\s*["']([\w.:-]+)["']/i.exec(head)?.[1]
  const meta = form === "html" ? /<meta\b[^>]*?\bcharset\s*=\s*["']?\s*([\w.:-]+)/i.exec(head)?.[1] : undefined
  const label = meta ?? xml
  // It was read as ASCII, so it is not what it says.
  return label !== undefined && /^utf-?16/i.test(label) ? "utf-8" : label
}

/** The text, with U+FFFD where bytes mean nothing, without a byte order mark. */
export const decode = (bytes: Uint8Array, form: TextForm, declared: string | undefined): string => {
  const mark = marks.find(([start]) => start.every((byte, index) => bytes[index] === byte))?.[1]
  const said = decoderOf(mark) ?? decoderOf(declared) ?? decoderOf(declaredInside(bytes, form))
  if (said !== undefined) return said.decode(bytes)
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch {
    return new TextDecoder("windows-1252").decode(bytes)
  }
}

/** NUL is in no text, whatever the header says. */
export const isBinary = (text: string): boolean => text.slice(0, 4096).includes("\0")
