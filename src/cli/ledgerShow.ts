/** `writ ledger show KEY`: everything that is known of one effect. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { inJson } from "./Ending.ts"
import { findEffect, type LedgerFlags, withLedger } from "./LedgerPlace.ts"
import { document, lines } from "./LedgerView.ts"
import { jsonText } from "./Printable.ts"
import * as Screen from "./Screen.ts"

export interface ShowFlags extends LedgerFlags {
  readonly key: string
}

export const showEffect = (flags: ShowFlags) =>
  withLedger(flags, (open) =>
    Effect.gen(function* () {
      const record = yield* findEffect(open, flags.key)
      if (flags.json) return yield* Console.log(jsonText(document(record, open.place)))
      return yield* Console.log(lines(record, open.place, yield* Screen.paintFor(flags.color)))
    })
  ).pipe(inJson(flags.json))
