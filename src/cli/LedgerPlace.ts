/** The ledger that a command looks into, and the effect that somebody means. Never makes a ledger that is not there. */
import { dirname, resolve } from "node:path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { EffectLedger, type LedgerRecord } from "../actors/EffectLedger.ts"
import { isAddress, shownPlace } from "../actors/EffectLedgerAddress.ts"
import type { LedgerError } from "../actors/EffectLedgerError.ts"
import * as RunDirectory from "../effects/RunDirectory.ts"
import type { RawSettings } from "../effects/Settings.ts"
import { load, type SettingsError } from "../effects/Settings.ts"
import * as Wiring from "../effects/Wiring.ts"
import { nearest } from "../tools/Nearest.ts"
import { type UsageError, usage } from "./Ending.ts"
import { problemAt } from "./Places.ts"

/** What every command about the ledger is told. */
export interface LedgerFlags {
  readonly ledger: unknown
  readonly json: boolean
  readonly color: boolean | undefined
}

export interface OpenLedger {
  readonly ledger: EffectLedger["Service"]
  /** Its name in messages and documents. */
  readonly place: string
}

/** A ledger that is not there was named wrongly; any other trouble is its own. */
const notThere = (error: LedgerError): Layer.Layer<EffectLedger, UsageError | LedgerError> => {
  const failed: Effect.Effect<never, UsageError | LedgerError> =
    error.reason === "missing" ? usage(error.message) : Effect.fail(error)
  return Layer.effect(EffectLedger, failed)
}

/** Runs `use` on the ledger that flags, environment and settings file name. A ledger that is not there is a usage error. */
export const withLedger = <A, E, R>(
  flags: LedgerFlags,
  use: (open: OpenLedger) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | UsageError | LedgerError | SettingsError, Exclude<R, Scope.Scope>> =>
  Effect.gen(function* () {
    const raw = (flags.ledger === undefined ? {} : { ledger: flags.ledger }) as RawSettings
    const named = (yield* load(raw)).settings.ledger ?? RunDirectory.ledger
    if (named === "memory") return yield* usage("--ledger memory: it is gone with the run; name a file or a server")
    const place = shownPlace(named)
    const problem = isAddress(named) ? undefined : problemAt(named, "File")
    if (problem !== undefined) {
      return yield* usage(
        `the effect ledger ${place}: ${problem}; name the one that runs were made with (--ledger FILE)`
      )
    }
    // Built here and closed with it.
    const services = yield* Layer.build(
      Layer.catchTag(Wiring.layerLedgerAt(named, { create: false }), "LedgerError", notThere)
    )
    return yield* use({ ledger: Context.get(services, EffectLedger), place })
  }).pipe(Effect.scoped)

/** A ledger that runs make: `.writ` is made for it, no other directory is. */
export const checkLedgerPlace = ({
  ledger
}: {
  readonly ledger?: string | undefined
}): Effect.Effect<void, UsageError> => {
  if (ledger === undefined || ledger === "memory" || isAddress(ledger)) return Effect.void
  const directory = dirname(resolve(ledger))
  const problem = directory === resolve(RunDirectory.home) ? undefined : problemAt(directory, "Directory")
  return problem === undefined
    ? Effect.void
    : usage(
        `--ledger ${ledger}: the ledger is kept in ${directory}, and ${problem}; make it first, or name another file`
      )
}

/** Characters of a key that tell these apart: 12, or more where that is not enough. */
export const shortLength = (keys: ReadonlyArray<string>): number => {
  let length = 12
  while (length < 64 && new Set(keys.map((key) => key.slice(0, length))).size < new Set(keys).size) length += 4
  return length
}

const few = (keys: ReadonlyArray<string>): string => {
  const length = shortLength(keys)
  const shown = keys.slice(0, 5).map((key) => key.slice(0, length))
  return `${shown.join(", ")}${keys.length > shown.length ? ", …" : ""}`
}

const noSuch = (named: string, records: ReadonlyArray<LedgerRecord>, place: string): string => {
  if (records.length === 0) return `the effect ledger ${place} is empty`
  if (records.some(({ entry }) => entry.runId === named)) {
    return `${named} is a run, not an effect: writ ledger list --run ${named} shows its effects`
  }
  // As much of each key as was typed, so that a slip in it weighs the same everywhere.
  const keys = records.map(({ entry }) => entry.key)
  const near = nearest(named.toLowerCase(), [...new Set(keys.map((key) => key.slice(0, Math.max(4, named.length))))])
  const meant = near === undefined ? [] : keys.filter((key) => key.startsWith(near))
  const hint = meant.length === 0 ? "writ ledger list shows what there is" : `did you mean ${few(meant)}?`
  return `the effect ledger ${place} has no effect ${named}: ${hint}`
}

/** The one effect whose key begins like this. */
export const findEffect = Effect.fnUntraced(function* (
  { ledger, place }: OpenLedger,
  named: string
): Effect.fn.Return<LedgerRecord, UsageError | LedgerError> {
  if (/^[0-9a-f]{64}$/.test(named)) {
    const record = yield* ledger.get(named)
    if (record !== undefined) return record
  }
  const records = yield* ledger.list()
  const prefix = named.toLowerCase()
  const found = prefix === "" ? [] : records.filter(({ entry }) => entry.key.startsWith(prefix))
  if (found.length === 0) return yield* usage(noSuch(named, records, place))
  if (found.length === 1) return found[0]!
  const keys = found.map(({ entry }) => entry.key)
  return yield* usage(`${named} could be any of ${found.length} effects: ${few(keys)}; give more of the key`)
})
