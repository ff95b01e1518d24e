/** What a body is, by its `Content-Type`: text that can be read and in which way, or something else, named for what it is. */

/** `essence`: type and subtype in lower case; `charset`: as declared. */
export interface MediaType {
  readonly essence: string
  readonly charset: string | undefined
}

export type TextForm = "html" | "xml" | "text"

export const parse = (header: string): MediaType => {
  const [essence = "", ...parameters] = header.split(";").map((part) => part.trim())
  const charset = parameters.map((part) => /^charset\s*=\s*"?([^"\s]+)"?$/i.exec(part)?.[1]).find(Boolean)
  return { essence: essence.toLowerCase(), charset }
}

const texts = new Set([
  "application/json",
  "application/x-ndjson",
  "application/jsonl",
  "application/javascript",
  "application/ecmascript",
  "application/yaml",
  "application/x-yaml",
  "application/toml",
  "application/sql",
  "application/graphql",
  "application/x-sh"
])

/** How to read it, or nothing if it is no text. */
export const textForm = (essence: string): TextForm | undefined => {
  if (essence === "text/html" || essence === "application/xhtml+xml") return "html"
  if (essence === "text/xml" || essence === "application/xml") return "xml"
  if (/^application\/[^/]+\+xml$/.test(essence)) return "xml"
  if (essence.startsWith("text/") || texts.has(essence)) return "text"
  return /^application\/[^/]+\+(?:json|yaml)$/.test(essence) ? "text" : undefined
}

const named: ReadonlyArray<readonly [RegExp, string]> = [
  [/^application\/pdf$/, "a PDF document"],
  [/^image\//, "a picture"],
  [/^audio\//, "a sound recording"],
  [/^video\//, "a video"],
  [/^font\//, "a font"],
  [/^application\/(?:zip|gzip|x-gzip|x-tar|x-7z-compressed|x-rar-compressed|vnd\.rar|x-bzip2?|zstd)$/, "an archive"],
  [/^application\/(?:msword|vnd\.(?:ms-|openxmlformats-officedocument|oasis\.opendocument))/, "an office document"],
  [/^application\/(?:wasm|x-executable|x-msdownload|vnd\.microsoft\.portable-executable)/, "a program"],
  [/^multipart\//, "a message of several parts"],
  [/^application\/octet-stream$/, "binary data"]
]

/** What it is instead, for whoever wanted text. */
export const describe = (essence: string): string =>
  named.find(([pattern]) => pattern.test(essence))?.[1] ?? "data of a kind that is not read"

/** Without a declared type: does it begin like a page? */
export const looksLikeHtml = (text: string): boolean =>
  /^\s*(?:<!--[\s\S]{0,1000}?-->\s*)?<(?:!doctype html|html|head|body)\b/i.test(text)
