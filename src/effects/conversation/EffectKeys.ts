/**
 * The name that the effects of a slot's calls are keyed under: the file, what comes before the slot, and how often a slot of
 * that place has been filled from the start. A turn that calls something that acts says it in the file, before anything acts;
 * so whoever goes on with the file, here or under another name, finds what was done.
 */
import { hash } from "node:crypto"
import { basename } from "node:path"
import * as Effect from "effect/Effect"
import type { EffectLedger } from "../../actors/EffectLedger.ts"
import type { LedgerError } from "../../actors/EffectLedgerError.ts"
import { canonical, type Json } from "../../tools/JsonText.ts"
import { type Message, turnEvents } from "./Conversation.ts"

const contentOf = ({ content = "", role }: Message): Json => [role, content as unknown as Json]

/** The first name of a slot: the file's own, and a digest over path and messages before it. Fit for a directory's name. */
export const baseName = (path: string, before: ReadonlyArray<Message>): string => {
  const stem = basename(path).replace(/\.ya?ml$/i, "")
  const safe = stem.replaceAll(/[^A-Za-z0-9_-]+/g, "-").slice(0, 48)
  const digest = hash("sha256", canonical(["writ.conversation.v1", path, before.map(contentOf)]))
  return `${safe === "" ? "conversation" : safe}-${digest.slice(0, 12)}`
}

/** What a turn of the slot says. */
export const saidIn = (turns: ReadonlyArray<Message>): string | undefined => {
  const events = turns.flatMap(({ trace }) => trace?.events ?? [])
  const under = events.find(({ name }) => name === turnEvents.keyed)?.attributes["under"]
  return typeof under === "string" ? under : undefined
}

const nth = (base: string, at: number): string => (at === 0 ? base : `${base}.${at + 1}`)

/**
 * The name for a slot of which no turn says one. `fresh`: nothing of it is filled, so what was done under a name before was
 * done for a slot that was emptied since.
 */
export const nameFor = Effect.fnUntraced(function* (
  ledger: EffectLedger["Service"],
  base: string,
  fresh: boolean
): Effect.fn.Return<string, LedgerError> {
  let at = 0
  while ((yield* ledger.list({ runId: nth(base, at) })).length > 0) at++
  return nth(base, fresh ? at : Math.max(0, at - 1))
})
