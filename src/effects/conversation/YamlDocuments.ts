/**
 * YAML documents as JSON values, strictly: what two readers could understand differently, or what grows when it is read, is
 * refused (aliases, tags, directives, duplicate keys, integers a double cannot hold, lone surrogates). Knows no messages.
 */
import { isAlias, isMap, isScalar, isSeq, LineCounter, type Pair, type ParsedNode, parseDocument } from "yaml"
import type { Json } from "../../tools/JsonText.ts"

/** Where in a value: keys and indices from the top. */
export type Path = ReadonlyArray<string | number>

/** Thrown inside the readers of this folder only; they turn it into an error with a place. */
export class Refusal extends Error {
  readonly path: Path

  constructor(path: Path, reason: string) {
    super(reason)
    this.path = [...path]
  }
}

/** One document of a text, its `---` line and the comments around it included: together the pieces are the text. */
export interface Piece {
  readonly text: string
  /** Counts from 1: where the piece begins in its text. */
  readonly line: number
}

const isMarker = (text: string, at: number, mark: string): boolean =>
  text.startsWith(mark, at) && (at + 3 === text.length || /[ \t\r\n]/.test(text[at + 3]!))

const isNothing = (line: string): boolean => /^[ \t]*(?:#.*)?\r?$/.test(line)

/**
 * Cuts a text before every `---` that stands at the beginning of a line. That this is right everywhere, also inside quotes
 * and literal texts, is a rule of YAML. Comments before the first document belong to it.
 */
export const pieces = (text: string): ReadonlyArray<Piece> => {
  const found: Array<Piece> = []
  let start = 0
  let startLine = 1
  let state: "before" | "inside" | "after" = "before"
  let line = 1
  for (let at = 0; at < text.length; line++) {
    const newline = text.indexOf("\n", at)
    const next = newline < 0 ? text.length : newline + 1
    if (isMarker(text, at, "---")) {
      if (state !== "before") {
        found.push({ text: text.slice(start, at), line: startLine })
        start = at
        startLine = line
      }
      state = "inside"
    } else if (isMarker(text, at, "...")) state = "after"
    else if (state !== "inside" && !isNothing(text.slice(at, newline < 0 ? next : newline))) {
      if (text[at] === "%") throw new Refusal([], `line ${line}: directives (%) are not part of the format: remove it`)
      if (state === "after") throw new Refusal([], `line ${line}: a document begins with a line ---`)
      state = "inside"
    }
    at = next
  }
  if (state !== "before") found.push({ text: text.slice(start), line: startLine })
  return found
}

/** A document that was read, and where its values stand. */
export interface YamlDocument {
  readonly value: Json
  /** The line of a value, or of the nearest value around it; counts from 1 in the text the piece was cut from. */
  readonly lineOf: (path: Path) => number
  /** A scalar as it was written, without its quotes: `012` where the value is 12. */
  readonly sourceOf: (path: Path) => string | undefined
}

const maxDepth = 100

const quoted = (text: string): string => JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text)

const refuseExtras = (node: ParsedNode, path: Path): void => {
  if (isAlias(node) || node.anchor !== undefined) {
    throw new Refusal(
      path,
      "anchors (&) and aliases (*) are not part of the format: write the value out, or quote the text"
    )
  }
  if (node.tag !== undefined) {
    throw new Refusal(path, "tags (!) are not part of the format: write the value without one, or quote the text")
  }
}

const wellFormed = (text: string, path: Path): string => {
  if (!text.isWellFormed()) throw new Refusal(path, "lone surrogate: half of a character cannot be kept in a file")
  return text
}

const scalarOf = (value: unknown, source: string | undefined, path: Path): Json => {
  if (typeof value === "string") return wellFormed(value, path)
  if (value === null || typeof value === "boolean") return value
  if (typeof value === "bigint") {
    const number = Number(value)
    if (Number.isSafeInteger(number)) return number
    throw new Refusal(path, `${source}: integers beyond 9007199254740991 lose digits: put it in quotes`)
  }
  if (typeof value === "number" && Number.isFinite(value)) return value
  throw new Refusal(path, `${source}: not a number that JSON has: put it in quotes`)
}

const keyOf = (pair: Pair<ParsedNode, ParsedNode | null>, path: Path): string => {
  const { key } = pair
  refuseExtras(key, path)
  if (isScalar(key) && typeof key.value === "string") return wellFormed(key.value, path)
  const seen = isScalar(key) ? (key.source ?? String(key.value)) : "a list or a map"
  throw new Refusal(path, `a key must be a text, found ${seen === "" ? "nothing" : seen}: put it in quotes`)
}

/** `path` is where the reading is; it is given back as it came. */
const jsonOf = (node: ParsedNode | null, path: Array<string | number>): Json => {
  if (node === null) return null
  refuseExtras(node, path)
  if (path.length > maxDepth) throw new Refusal([], `nested deeper than ${maxDepth} levels`)
  if (isScalar(node)) return scalarOf(node.value, node.source, path)
  if (isSeq(node)) return node.items.map((item, index) => inside(index, item as ParsedNode, path))
  if (!isMap(node)) throw new Refusal(path, "not a value")
  const object: Record<string, Json> = {}
  for (const pair of node.items as ReadonlyArray<Pair<ParsedNode, ParsedNode | null>>) {
    const key = keyOf(pair, path)
    if (Object.hasOwn(object, key)) throw new Refusal([...path, key], `the key ${quoted(key)} is there twice`)
    const value = inside(key, pair.value, path)
    // `__proto__` is a key like any other.
    if (key !== "__proto__") object[key] = value
    else Object.defineProperty(object, key, { value, configurable: true, enumerable: true, writable: true })
  }
  return object
}

const inside = (step: string | number, node: ParsedNode | null, path: Array<string | number>): Json => {
  path.push(step)
  const value = jsonOf(node, path)
  path.pop()
  return value
}

const composed = (text: string, lineCounter: LineCounter) =>
  parseDocument<ParsedNode>(text, {
    version: "1.2",
    schema: "core",
    merge: false,
    intAsBigInt: true,
    // The library compares each key with each: wide maps are checked here, with a table.
    uniqueKeys: false,
    prettyErrors: false,
    lineCounter,
    logLevel: "silent"
  })

/** Reads one piece. Throws a `Refusal`. */
export const read = (piece: Piece): YamlDocument => {
  const lines = new LineCounter()
  const document = composed(piece.text, lines)
  const lineAt = (offset: number): number => piece.line + lines.linePos(offset).line - 1
  const [error] = document.errors
  if (error !== undefined) {
    // Its composer calls itself for each level, and there is no limit to be given.
    if (error.code === "RESOURCE_EXHAUSTION") throw new Refusal([], `nested deeper than ${maxDepth} levels`)
    throw new Refusal([], `line ${lineAt(error.pos[0])}: not YAML: ${error.message}`)
  }
  const lineOf = (path: Path): number => {
    for (let length = path.length; length >= 0; length--) {
      const node = length === 0 ? document.contents : document.getIn(path.slice(0, length), true)
      const range = (node as { readonly range?: readonly [number, number, number] } | undefined | null)?.range
      if (range !== undefined && range !== null) return lineAt(range[0])
    }
    return piece.line
  }
  const sourceOf = (path: Path): string | undefined => {
    const node = document.getIn(path, true)
    return isScalar(node) ? node.source : undefined
  }
  return { value: jsonOf(document.contents, []), lineOf, sourceOf }
}
