/** Content codings: undoes what `Content-Encoding` says was done, as streams, so that a bound can be kept while reading. */
import type { Transform } from "node:stream"
import * as zlib from "node:zlib"

/** What we ask for. A server that sends something else is refused. */
export const accepted = "gzip, deflate, br, zstd"

/** More than this is no use to anybody but an attacker. */
const maxCodings = 3

/** Windows of at most 8 MiB, as RFC 9659 has it for the web: the window is memory before the first byte is out. */
const zstdWindowLog = 23

const make = (coding: string, first: number): Transform | undefined => {
  switch (coding) {
    case "gzip":
    case "x-gzip":
      return zlib.createGunzip()
    case "deflate":
      // Some servers leave the zlib wrapper out; the wrapper's first byte tells.
      return (first & 0x0f) === 8 ? zlib.createInflate() : zlib.createInflateRaw()
    case "br":
      return zlib.createBrotliDecompress()
    case "zstd":
      return zlib.createZstdDecompress({ params: { [zlib.constants.ZSTD_d_windowLogMax]: zstdWindowLog } })
    default:
      return undefined
  }
}

/** The names in a `Content-Encoding` header, or what is wrong with it. */
export const codingsOf = (header: string | undefined): ReadonlyArray<string> | string => {
  const names = (header ?? "")
    .toLowerCase()
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "" && name !== "identity")
  if (names.length > maxCodings) return `it is compressed ${names.length} times over`
  const unknown = names.find((name) => !["gzip", "x-gzip", "deflate", "br", "zstd"].includes(name))
  return unknown === undefined ? names : `it is compressed as "${unknown.slice(0, 40)}", which nobody asked for`
}

/** The streams that undo the codings, last applied first. `first` is the first byte that arrives. */
export const decoders = (names: ReadonlyArray<string>, first: number): ReadonlyArray<Transform> =>
  names.toReversed().flatMap((name, index) => make(name, index === 0 ? first : 0x78) ?? [])
