/**
 * Segments to token ids, so that text stays text: control segments are parsed for special tokens, text segments are not,
 * and where a text contains the spelling of a special token it is cut inside that spelling, because llama.cpp recognises
 * user-defined tokens (`<tool_call>`, `<think>`) even when asked not to. Pure; the model's tokeniser is a parameter.
 */
import type { Segment } from "./Prompt.ts"

/** Token types of the GGUF vocabulary whose spelling must not be reachable from text. */
const guardedTypes = new Set([2, 3, 4])

/** Spellings of tokens that text must never become. */
export interface Markers {
  readonly find: (text: string, from: number) => number
  readonly ids: ReadonlySet<number>
}

/**
 * The markers of a vocabulary. Left out are spellings of white space alone (they open nothing) and of one character
 * (they cannot be cut).
 */
export const markers = (texts: ReadonlyArray<string>, types: ReadonlyArray<number>): Markers => {
  const ids = new Set<number>()
  const byFirst = new Map<string, { readonly lengths: Set<number>; readonly spellings: Set<string> }>()
  for (let id = 0; id < texts.length; id++) {
    const text = texts[id]!
    if (!guardedTypes.has(types[id] ?? 1) || /^[\s\u2581]*$/u.test(text) || firstLength(text) === text.length) continue
    ids.add(id)
    let group = byFirst.get(text[0]!)
    if (group === undefined) byFirst.set(text[0]!, (group = { lengths: new Set(), spellings: new Set() }))
    group.lengths.add(text.length)
    group.spellings.add(text)
  }
  const startsAt = (text: string, at: number): boolean => {
    const group = byFirst.get(text[at]!)
    if (group === undefined) return false
    for (const length of group.lengths) if (group.spellings.has(text.substring(at, at + length))) return true
    return false
  }
  return {
    ids,
    find: (text, from) => {
      for (let at = from; at < text.length; at++) if (startsAt(text, at)) return at
      return -1
    }
  }
}

/** The text in parts none of which contains a marker: each occurrence is cut after its first character. */
export const cut = (text: string, guard: Markers): ReadonlyArray<string> => {
  const parts: Array<string> = []
  let start = 0
  for (let at = guard.find(text, 0); at >= 0; at = guard.find(text, at + 1)) {
    const end = at + firstLength(text.slice(at, at + 2))
    if (end > start) parts.push(text.slice(start, end))
    start = end
  }
  if (start < text.length) parts.push(text.slice(start))
  return parts
}

/** UTF-16 length of the first character. */
const firstLength = (text: string): number => ((text.codePointAt(0) ?? 0) > 0xffff ? 2 : 1)

export interface Tokenizer {
  readonly encode: (text: string, special: boolean, first: boolean) => ReadonlyArray<number>
  readonly guard: Markers
  /** Begins every log, where the model wants it. */
  readonly bos?: number
}

/** Token ids of segments; `first`: they begin the log. Adjacent control segments are tokenised as one text. */
export const tokenize = (tokenizer: Tokenizer, segments: ReadonlyArray<Segment>, first: boolean): Array<number> => {
  const out: Array<number> = []
  const append = (text: string, special: boolean) => {
    if (text === "") return
    for (const id of tokenizer.encode(text, special, first && out.length === 0)) out.push(id)
  }
  let pending = ""
  for (const segment of segments) {
    if (segment.kind === "control") {
      pending += segment.text
      continue
    }
    append(pending, true)
    pending = ""
    for (const part of cut(segment.text, tokenizer.guard)) append(part, false)
  }
  append(pending, true)
  // a template may have spelled the beginning itself
  if (first && out.length > 0 && tokenizer.bos !== undefined && out[0] !== tokenizer.bos) out.unshift(tokenizer.bos)
  return out
}
