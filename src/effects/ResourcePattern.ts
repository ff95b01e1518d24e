/**
 * Resources as text (`workspace:notes/a.md`, `https://host/path`) and patterns over them, compared part by part. Whatever
 * can be read in two ways (encoded separators, a way out by `..`, backslashes) is not read at all. No file and no host is looked up.
 */

/** `host`: its labels, or `undefined` where the form has none. `path`: its parts; a leading empty one marks an absolute path. */
export interface Resource {
  readonly scheme: string
  readonly host: ReadonlyArray<string> | undefined
  readonly port: string
  readonly path: ReadonlyArray<string>
}

/** Most UTF-16 units a resource may have. */
export const maxResourceLength = 4096

/** Schemes that are read as a URL even without `//`, as every client does. */
const web = new Set(["http", "https", "ws", "wss", "ftp", "file"])

/** The parts of a resource or pattern, or why it cannot be read, in words. */
export const read = (text: string): Resource | string => {
  if (text.length > maxResourceLength) return `it is longer than ${maxResourceLength} characters`
  if (/[\\\u0000-\u001f\u007f]/.test(text)) return "it contains a backslash or a control character"
  const colon = text.indexOf(":")
  const scheme = text.slice(0, Math.max(colon, 0)).toLowerCase()
  if (!/^[a-z][a-z0-9+.-]*$/.test(scheme)) return "it does not begin with a kind, as in workspace:notes/a.md"
  const rest = text.slice(colon + 1)
  return web.has(scheme) || rest.startsWith("//") ? readUrl(scheme, rest) : readName(scheme, rest)
}

const encoded = "it contains an encoded separator"

const readName = (scheme: string, rest: string): Resource | string => {
  // A name is not decoded here; a tool that does must not find a separator where we saw none.
  if (/%(?:25|2e|2f|5c|00)/i.test(rest)) return encoded
  const path = resolve(rest.split("/"))
  return path === undefined ? "it leads out of where it begins" : { scheme, host: undefined, port: "", path }
}

const readUrl = (scheme: string, rest: string): Resource | string => {
  // Query and fragment do not decide whose resource it is.
  const place = rest.split(/[?#]/, 1)[0]!
  if (/%(?:25|2f|5c|00)/i.test(place)) return encoded
  const url = URL.parse(`${scheme}:${place}`)
  if (url === null) return "it is not a URL"
  if (url.username !== "" || url.password !== "") return "it contains a user name"
  const name = decode(url.hostname.toLowerCase().replace(/\.$/, ""))
  const parts = url.pathname.split("/").map(decode)
  if (name === undefined || parts.includes(undefined)) return "its percent-encoding is broken"
  const path = resolve((parts as ReadonlyArray<string>).slice(1))
  if (path === undefined) return "it leads out of where it begins"
  return { scheme, host: name.startsWith("[") ? [name] : name.split("."), port: url.port, path }
}

const decode = (part: string): string | undefined => {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}

/** Without `.`, `..` and empty parts; `undefined` if it leaves where it began. */
const resolve = (parts: ReadonlyArray<string>): ReadonlyArray<string> | undefined => {
  const path: Array<string> = []
  for (const part of parts) {
    if (part === "..") {
      if (path.pop() === undefined) return undefined
    } else if (part !== "." && part !== "") path.push(part)
  }
  return parts.length > 1 && parts[0] === "" && path.length > 0 ? ["", ...path] : path
}

/** One spelling for each resource, to compare two by; `undefined` if it cannot be read. */
export const canonical = (text: string): string | undefined => {
  const resource = read(text)
  if (typeof resource === "string") return undefined
  const { host, path, port, scheme } = resource
  const place = host === undefined ? "" : `//${host.join(".")}${port === "" ? "" : `:${port}`}/`
  return `${scheme}:${place}${path.join("/")}`
}

/**
 * Does the pattern contain the resource? `*` stands for any characters within one part, `**` for any number of parts,
 * none included. A resource with `*` in it is a set, which is contained only as a whole.
 */
export const covers = (pattern: Resource, resource: Resource): boolean =>
  pattern.scheme === resource.scheme &&
  pattern.port === resource.port &&
  coversHost(pattern, resource) &&
  isAbsolute(pattern) === isAbsolute(resource) &&
  coversParts(pattern.path, resource.path)

/**
 * May pattern and resource have anything in common? For what is forbidden: where in doubt, yes. Paths are compared
 * without case and composition, as some file systems do, and a pattern without a port means every port.
 */
export const overlaps = (pattern: Resource, resource: Resource): boolean => {
  if (pattern.scheme !== resource.scheme) return false
  if (pattern.port !== "" && pattern.port !== resource.port) return false
  if (!coversHost(pattern, resource) && resource.host?.some(hasStar) !== true) return false
  const [wide, narrow] = [folded(pattern.path), folded(resource.path)]
  if (!narrow.some(hasStar)) return coversParts(wide, narrow)
  const [one, other] = [fixed(wide), fixed(narrow)]
  return one.slice(0, other.length).every((part, index) => part === other[index])
}

const isAbsolute = (resource: Resource): boolean => resource.path[0] === ""
const hasStar = (part: string): boolean => part.includes("*")
const folded = (path: ReadonlyArray<string>) =>
  path.filter((part) => part !== "").map((part) => part.normalize("NFC").toLowerCase())

/** The parts before the first that is not fixed. */
const fixed = (path: ReadonlyArray<string>): ReadonlyArray<string> => {
  const end = path.findIndex(hasStar)
  return end < 0 ? path : path.slice(0, end)
}

const coversHost = (pattern: Resource, resource: Resource): boolean =>
  pattern.host === undefined || resource.host === undefined
    ? pattern.host === resource.host
    : coversParts(pattern.host, resource.host)

const coversParts = (pattern: ReadonlyArray<string>, parts: ReadonlyArray<string>): boolean =>
  wild(pattern, parts, "**", (one, part) => part !== "**" && wild(one, part, "*", (a, b) => a === b))

/** Wildcard matching that goes back to the last star only: at most as many steps as one length times the other. */
const wild = (
  pattern: ArrayLike<string>,
  text: ArrayLike<string>,
  star: string,
  same: (one: string, other: string) => boolean
): boolean => {
  let [p, t, back, mark] = [0, 0, -1, 0]
  while (t < text.length) {
    if (p < pattern.length && pattern[p] === star) [back, mark, p] = [p, t, p + 1]
    else if (p < pattern.length && same(pattern[p]!, text[t]!)) [p, t] = [p + 1, t + 1]
    else if (back < 0) return false
    else [p, mark, t] = [back + 1, mark + 1, mark + 1]
  }
  while (p < pattern.length && pattern[p] === star) p += 1
  return p === pattern.length
}
