/** Names that a text can be held to: files with a known ending, web addresses, addresses of mail. Any language. */

const endings = new Set(
  "md txt csv tsv json jsonl yaml yml toml ini cfg conf xml html htm css pdf doc docx xls xlsx ppt pptx odt ods rtf tex log sql db sqlite py js ts mjs cjs jsx tsx java kt c h cpp hpp cs go rs rb php sh bash ps1 swift r ipynb png jpg jpeg gif svg webp bmp mp3 mp4 wav zip tar gz tgz bz2 7z bak lock env gguf parquet eml ics patch diff".split(
    " "
  )
)

/** They look like files and are none. */
const products =
  /^(?:node|next|nuxt|vue|react|three|express|angular|chart|discord|p5|d3|asp|e|i)\.(?:js|ts|net|c|h|r|go|cs)$/i

/** The longest that is looked at. */
const longest = 300

export interface Name {
  readonly kind: "file" | "url" | "mail"
  /** As written, without marks around it. */
  readonly text: string
  /** Comparable. */
  readonly key: string
}

const trimmed = (text: string): string => {
  let [from, to] = [0, text.length]
  while (from < to && /['’.:!?,;*_=&]/.test(text[from]!) && !/^\.{0,2}\//.test(text.slice(from, from + 3))) from += 1
  while (to > from && /['’.:!?,;*_=&/\\]/.test(text[to - 1]!)) to -= 1
  const core = text.slice(from, to)
  return /['’]s$/.test(core) ? core.slice(0, -2) : core
}

const isUrl = (text: string): boolean => /^(?:https?:\/\/|www\.)[^/]/i.test(text)
const urlKey = (text: string): string =>
  text
    .toLowerCase()
    .replace(/^https?:\/\//, "")
    .replace(/^www\./, "")

/** A piece of text without blanks as a name, if it is one. */
export const nameOf = (piece: string): Name | undefined => {
  if (piece.length < 3 || piece.length > longest || !piece.includes(".")) return undefined
  const text = trimmed(piece)
  if (isUrl(text)) return { kind: "url", text, key: urlKey(text) }
  const dot = text.lastIndexOf(".")
  const at = text.indexOf("@")
  if (at > 0 && at < dot && dot < text.length - 1 && !text.includes("/"))
    return { kind: "mail", text, key: text.toLowerCase() }
  if (dot < 1 || !endings.has(text.slice(dot + 1).toLowerCase()) || products.test(text)) return undefined
  // A path: what matters is where it ends, since a workspace may be named or not.
  const key = text
    .toLowerCase()
    .replaceAll("\\", "/")
    .replace(/^(?:\.{0,2}\/)+/, "")
  return /[\p{L}\p{N}_]/u.test(key.slice(0, key.lastIndexOf("."))) ? { kind: "file", text, key } : undefined
}

/** Is it a name? */
export const isName = (piece: string): boolean => nameOf(piece) !== undefined

/** The keys under which a name in a source can be found: a file also by the ends of its path, an address also by its host. */
export const keysOf = ({ key, kind }: Name): ReadonlyArray<string> => {
  if (kind === "mail") return [key]
  const parts = key.split("/")
  if (kind === "url") return parts.length > 1 ? [key, parts[0]!] : [key]
  return Array.from({ length: Math.min(parts.length, 6) }, (_, at) => parts.slice(parts.length - 1 - at).join("/"))
}

/** What no piece of text goes across. */
const between = /[\s"“”`<>()[\]{}|,;]/

/** The names in any text. Looks around dots only, and once at each character. */
export function* namesIn(text: string): Iterable<Name> {
  let from = 0
  for (let dot = text.indexOf("."); dot >= 0; dot = text.indexOf(".", from)) {
    let start = dot
    const first = Math.max(from, dot - longest)
    while (start > first && !between.test(text[start - 1]!)) start -= 1
    let end = dot + 1
    while (end < text.length && !between.test(text[end]!)) end += 1
    from = end
    const name = end - start > longest ? undefined : nameOf(text.slice(start, end))
    if (name !== undefined) yield name
  }
}
