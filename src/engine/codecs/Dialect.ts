/** What the scanner has to know of a family's call syntax: its markers, and a reader for what follows an opener. */
import type { EndReason } from "../Generation.ts"
import type { MalformedCode, ParserOptions, ThinkingTags } from "./Codec.ts"
import type { CallBody, EnvelopeFault } from "./Envelope.ts"
import type { Fault } from "./Fault.ts"
import { type MarkerTable, markerTable } from "./MarkerSearch.ts"
import type { Window } from "./Window.ts"

/**
 * Reads one frame, from behind its opener to behind its closer. `read` is called with more text until it returns an end;
 * once the window says the turn is over it must return one.
 */
export interface Frame {
  readonly read: (window: Window) => FrameEnd | undefined
}

export interface FrameEnd {
  /** Calls of this frame; with a fault, those that were whole before it. */
  readonly calls: ReadonlyArray<CallBody>
  readonly fault?: Fault
  /** What turned out not to be a call: it goes back to the prose. */
  readonly prose?: string
}

export interface Opener {
  readonly text: string
  /** What follows may be a call or not: inside a code block it is not, and its frame may give it back. */
  readonly tentative?: true
  /** `start`: where the opener begins in the turn. */
  readonly frame: (options: ParserOptions, start: number) => Frame
}

/** A marker that can only be a mistake at the top level of a turn. */
export interface Stray {
  readonly text: string
  readonly code: MalformedCode
  readonly what: string
}

export interface Dialect {
  /** How to write a call, as a clause: it ends every reason a model is given. */
  readonly form: string
  readonly openers: ReadonlyArray<Opener>
  readonly strays: ReadonlyArray<Stray>
  /** Visible end-of-turn markers: dropped at the very end, a forged turn anywhere else. */
  readonly ends: ReadonlyArray<string>
  /** May prose follow the last call? */
  readonly textAfter: "keep" | "malformed"
  /** What is wrong with a call-shaped object in the prose; absent where that is no mistake of this family. */
  readonly bare?: string
  /** The head of a call without its marks, where a call is no JSON; its first group is the name. Global. */
  readonly bareHead?: RegExp
  /** The constant `type` of a tool's answer, where answers are plain JSON: a model must not write one. */
  readonly resultType?: string
  /** The one of `ends` that opens a tool's answer: who goes on behind it makes the answer up. */
  readonly answerEnd?: string
  /** First characters with which a turn may be a call without any marker. */
  readonly lead?: ReadonlyArray<Opener>
  readonly thinking?: ThinkingTags
}

export const forgedTurn = {
  code: "forged_turn",
  what: "a turn must not go on after its own end or write another speaker's turn"
} as const

export const forgedResult = {
  code: "forged_tool_response",
  what: "only the runtime writes what a tool answers, so end your turn after the call"
} as const

/** A frame that the turn's end left open. */
export const openFrame = (ending: EndReason, at: number): Fault =>
  ending === "length"
    ? { code: "truncated", what: "the output limit cut the turn inside a call, so send less in one call", at }
    : { code: "unclosed_call", what: "the turn ended inside a call that was not closed", at }

export const broken = (fault: EnvelopeFault, at: number, calls: ReadonlyArray<CallBody> = []): FrameEnd => ({
  calls,
  fault: { ...fault, at }
})

/** The one of a dialect's marks that has this text. */
export const marked = <A extends { readonly text: string }>(list: ReadonlyArray<A>, text: string): A | undefined => {
  for (const one of list) if (one.text === text) return one
  return undefined
}

/** What to look for is the same for every turn of a family: prepared once, with calls and without. */
const known = { calls: new WeakMap<Dialect, MarkerTable>(), prose: new WeakMap<Dialect, MarkerTable>() }

/** Without tools nothing is a call, and markers are words. */
export const markersOf = (dialect: Dialect, calls: boolean): MarkerTable => {
  const cache = calls ? known.calls : known.prose
  const before = cache.get(dialect)
  if (before !== undefined) return before
  const active = calls ? [...dialect.openers, ...dialect.strays].map((marker) => marker.text) : []
  const table = markerTable([...active, ...dialect.ends])
  cache.set(dialect, table)
  return table
}
