/** Bytes of a file as text, or in words what they are instead. Only UTF-8 is text. */

/** `ignoreBOM`: a byte order mark is part of the text, not dropped. */
const strict = () => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const whole = strict()

/** Beginnings of files that people keep beside their texts. */
const beginnings: ReadonlyArray<readonly [string, ReadonlyArray<number>]> = [
  ["a PNG picture", [0x89, 0x50, 0x4e, 0x47]],
  ["a JPEG picture", [0xff, 0xd8, 0xff]],
  ["a GIF picture", [0x47, 0x49, 0x46, 0x38]],
  ["a PDF document", [0x25, 0x50, 0x44, 0x46, 0x2d]],
  ["a ZIP archive or an office document", [0x50, 0x4b, 0x03, 0x04]],
  ["a gzip archive", [0x1f, 0x8b]],
  ["an SQLite database", [0x53, 0x51, 0x4c, 0x69, 0x74, 0x65, 0x20, 0x66]],
  ["a program", [0x7f, 0x45, 0x4c, 0x46]],
  ["text in UTF-16, and only UTF-8 is read", [0xff, 0xfe]],
  ["text in UTF-16, and only UTF-8 is read", [0xfe, 0xff]]
]

const kindOf = (bytes: Uint8Array): string => {
  const found = beginnings.find(([, start]) => start.every((byte, at) => bytes[at] === byte))
  return found === undefined ? "" : `; it looks like ${found[0]}`
}

export interface NotText {
  readonly reason: string
}

/** The text, or why it is none and from which byte on. `beginning`: the first bytes of the file these are from. */
export const decode = (bytes: Uint8Array, beginning: Uint8Array = bytes, offset = 0): string | NotText => {
  let text: string
  try {
    text = whole.decode(bytes)
  } catch {
    return { reason: `it is not UTF-8 text (byte ${offset + firstInvalid(bytes)})${kindOf(beginning)}` }
  }
  const nul = text.indexOf("\0")
  if (nul < 0) return text
  const at = offset + Buffer.byteLength(text.slice(0, nul))
  return { reason: `it is a binary file (a NUL at byte ${at})${kindOf(beginning)}` }
}

/** The first byte of the first sequence that is not UTF-8: found by halving, since prefixes of text are text. */
const firstInvalid = (bytes: Uint8Array): number => {
  let [low, high] = [0, bytes.length]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (decodes(bytes.subarray(0, middle + 1), true)) low = middle + 1
    else high = middle
  }
  if (decodes(bytes.subarray(0, low), false)) return low
  // The sequence before the offending byte was never finished: it starts at its lead byte.
  let start = low - 1
  while (start > 0 && (bytes[start]! & 0xc0) === 0x80) start -= 1
  return start
}

/** `open`: the last sequence may be unfinished. */
const decodes = (bytes: Uint8Array, open: boolean): boolean => {
  try {
    strict().decode(bytes, { stream: open })
    return true
  } catch {
    return false
  }
}
