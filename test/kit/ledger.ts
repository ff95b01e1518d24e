/** Intents and outcomes for ledger tests. */
import type { Intent, SettledOutcome } from "../../src/actors/EffectLedgerEntry.ts"
import { argumentsDigest, keyOf } from "../../src/actors/EffectLedgerKey.ts"

/** The intent of call `n` of one run. `changes` leave the key as it is. */
export const intent = (n: number, changes: Partial<Intent> = {}): Intent => {
  const digest = argumentsDigest(`{"n":${n}}`)
  const place = { runId: "run-1", step: "tool-0", ordinal: n, tool: "pay", argumentsDigest: digest }
  return {
    key: keyOf(place),
    runId: "run-1",
    callId: `call-${n}`,
    tool: "pay",
    argumentsDigest: digest,
    mode: "external",
    ...changes
  }
}

export const succeeded = (result: string): SettledOutcome => ({
  ok: true,
  answer: JSON.stringify({ ok: true, result }),
  effect: "present",
  state: "succeeded"
})

export const failed: SettledOutcome = {
  ok: false,
  answer: '{"ok":false,"kind":"execution_failed","errors":[]}',
  kind: "execution_failed",
  effect: "none",
  state: "failed"
}

export const unknown: SettledOutcome = {
  ok: false,
  answer: '{"ok":false,"kind":"timed_out","errors":[]}',
  kind: "timed_out",
  effect: "unknown",
  state: "unknown"
}
