/**
 * What a run remembers of its proposals: which resources it was refused, and which proposals it made. A refusal is an
 * observation, not an invitation to try the same through another tool; the record shows who follows whom.
 */
import type { Touch } from "../tools/Terms.ts"
import { overlaps, read } from "./ResourcePattern.ts"

export interface Memory {
  /** The resource of a refused attempt to change something, with the `seq` of its legality record and the tool. */
  readonly refused: Map<string, { readonly seq: number; readonly tool: string }>
  /** Tool and canonical arguments of calls that act, with the `seq` of the first of them. */
  readonly proposed: Map<string, number>
}

export const newMemory = (): Memory => ({ refused: new Map(), proposed: new Map() })

/** Reading what one may not write is another intention. */
const changes = (touches: ReadonlyArray<Touch>): ReadonlyArray<Touch> => touches.filter(({ verb }) => verb !== "read")

export const rememberRefusal = (memory: Memory, tool: string, touches: ReadonlyArray<Touch>, seq: number): void => {
  for (const { resource } of changes(touches)) {
    if (!memory.refused.has(resource)) memory.refused.set(resource, { seq, tool })
  }
}

/** May both be the same thing, however they are spelled? Where in doubt, yes: then somebody is asked. */
const meets = (one: string, other: string): boolean => {
  if (one === other) return true
  const [a, b] = [read(one), read(other)]
  return typeof a !== "string" && typeof b !== "string" && (overlaps(a, b) || overlaps(b, a))
}

/** The refusal that a call follows: the same resource is to be changed again. */
export const refusalBefore = (
  memory: Memory,
  touches: ReadonlyArray<Touch>
): { readonly seq: number; readonly tool: string } | undefined => {
  for (const { resource } of changes(touches)) {
    for (const [refused, before] of memory.refused) if (meets(refused, resource)) return before
  }
  return undefined
}

/** The `seq` of an earlier proposal that looks the same, or nothing; remembers this one. */
export const resemblance = (
  memory: Memory,
  tool: string,
  canonicalArguments: string,
  seq: number
): number | undefined => {
  const what = `${tool}\n${canonicalArguments}`
  const before = memory.proposed.get(what)
  if (before === undefined) memory.proposed.set(what, seq)
  return before
}
